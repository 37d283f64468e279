"""Build what is released: `python scripts/wheels.py --out dist [--only PLATFORM ...]`.

Two distributions contain the same code: `brimline`, with all that its commands need, and
`brimline-core`, for programs that use only the library. Each has a source archive, a wheel in pure
Python, and a wheel for every platform below, compiled by Zig's C compiler on any machine. Wheels
for Linux are checked with auditwheel.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tomlkit
from packaging.requirements import Requirement

import page

ROOT = Path(__file__).parent.parent
PARTS = (
    *("pyproject.toml", "hatch_build.py", "constraints.txt", "Makefile"),
    *("README.md", "CHANGELOG.md", "LICENSE", "src", "web", "scripts"),
    "docs/reference/brimline.1",
)
NOT_COPIED = ("__pycache__", "node_modules", "libline_filter.*", "brimline-hook")
CORE = "brimline-core"
DISTRIBUTIONS = ("brimline", CORE)
ANY = "any"
ZIG_TARGETS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64.manylinux2014_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
}
"""The target of Zig by a wheel's platform tag."""


class NotReleasable(Exception):
    """Why a wheel must not be released."""


@dataclass(frozen=True)
class Project:
    """A copy of the project in which one distribution is built."""

    root: Path
    out: Path

    def build(self, kind: str, **env: str) -> Path:
        """Build a wheel or an sdist; raises CalledProcessError."""
        with tempfile.TemporaryDirectory(dir=self.root) as folder:
            command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder]
            subprocess.run(command, cwd=self.root, env=os.environ | env, check=True, stdout=2)
            (built,) = Path(folder).iterdir()
            return Path(shutil.copy(built, self.out))

    def build_wheel(self, platform: str) -> Path:
        """Build and check the wheel for a platform, or the one in pure Python."""
        if platform == ANY:
            return self.build("wheel", BRIMLINE_NO_COMPILER="1")
        compiler = f"{sys.executable} -m ziglang cc -target {ZIG_TARGETS[platform]} -s"
        wheel = self.build("wheel", CC=compiler, BRIMLINE_WHEEL_PLATFORM=platform)
        if wheel.name.endswith("-any.whl"):
            raise NotReleasable(f"{wheel.name} should be for {platform}: nothing was compiled")
        if "linux" in platform:
            check_linux_wheel(wheel, platform)
        return wheel


def copy_project(distribution: str, folder: Path, root: Path = ROOT) -> Path:
    """Copy what a build needs; the metadata is that of the distribution."""
    project = folder / distribution
    project.mkdir()
    for part in PARTS:
        if (root / part).is_dir():
            ignored = shutil.ignore_patterns(*NOT_COPIED)
            shutil.copytree(root / part, project / part, ignore=ignored)
        else:
            (project / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / part, project / part)
    if distribution == CORE:
        config = project / "pyproject.toml"
        config.write_text(core_config(config.read_text()))
    return project


def core_config(config: str) -> str:
    """The pyproject.toml of brimline-core: few dependencies, and an extra with the others."""
    document = tomlkit.parse(config).unwrap()
    project = document["project"]
    core = document["tool"]["brimline"]["core-dependencies"]
    few = [one for one in project["dependencies"] if Requirement(one).name in core]
    project["name"] = CORE
    project["optional-dependencies"]["daemon"] = [
        one for one in project["dependencies"] if one not in few
    ]
    project["dependencies"] = few
    return tomlkit.dumps(document)


def check_linux_wheel(wheel: Path, platform: str) -> None:
    """Ask auditwheel whether the wheel runs on all systems that its tag promises."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    told = " ".join((shown.stdout + shown.stderr).split())
    found = re.search(r'consistent with the following platform tag: "(\w+)"', told)
    if found is None or not is_as_portable(found[1], platform.partition(".")[0]):
        raise NotReleasable(f"auditwheel does not confirm {platform} for {wheel.name}: {told}")


def is_as_portable(found: str, promised: str) -> bool:
    """Whether a wheel with the tag that was found runs wherever the promised tag does."""
    parts = re.compile(r"(many|musl)linux_(\d+)_(\d+)_(\w+)")
    one, other = parts.fullmatch(found), parts.fullmatch(promised)
    if one is None or other is None or (one[1], one[4]) != (other[1], other[4]):
        return False
    return (int(one[2]), int(one[3])) <= (int(other[2]), int(other[3]))


def build_all(out: Path, platforms: list[str]) -> Iterator[Path]:
    """Build every distribution for the platforms, with its source archive."""
    page.build()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for distribution in DISTRIBUTIONS:
            project = Project(copy_project(distribution, Path(folder)), out.resolve())
            yield project.build("sdist")
            for platform in platforms:
                yield project.build_wheel(platform)


def main(arguments: list[str]) -> int:
    """Build, and print the name and size of every file."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder (default: dist)")
    parser.add_argument(
        "--only", nargs="+", choices=[ANY, *ZIG_TARGETS], default=[ANY, *ZIG_TARGETS]
    )
    options = parser.parse_args(arguments)
    try:
        for built in build_all(options.out, options.only):
            print(f"{built.stat().st_size:>10,}  {built.name}", flush=True)
    except (NotReleasable, page.NotBuilt, subprocess.CalledProcessError) as error:
        print(f"cannot build: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
