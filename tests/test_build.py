"""Builds: a wheel for this platform with a compiler, else one for any."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from web.chromium import require_page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src", "brimline")
TRANSCRIPTS = PACKAGE / "agents" / "transcripts"
PAGE = PACKAGE / "api" / "page"
MADE = ["brimline-hook", "libline_filter.crc", "libline_filter.so"]
PARTS = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src", "docs/reference")
SLOWER = "not compiled, Brimline will be slower: "


class Project:
    """A copy of the project that can be built."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.root.mkdir()
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, self.root / part)
        self.output = ""

    @property
    def compiled(self) -> list[str]:
        """The compiled files in the source folder."""
        return sorted(path.name for path in (self.root / PACKAGE).rglob("*") if path.name in MADE)

    def build(self, target: str, **env: str) -> Path:
        """Build a target as pip does, without a network and without caches."""
        completed = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", "out"],
            cwd=self.root,
            env={"PATH": os.environ["PATH"], **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        self.output = completed.stdout
        (built,) = (self.root / "out").iterdir()
        return built


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the project with its compiled files."""
    return Project(tmp_path)


@pytest.fixture
def compiler() -> str:
    """A C compiler; without one a test is skipped, or fails under CI=true."""
    path = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if path is None and os.environ.get("CI") == "true":
        pytest.fail("there is no C compiler")
    return path or pytest.skip("there is no C compiler")


def picker_of(wheel: Path, folder: Path) -> str:
    """The line filter that an installed wheel uses."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    program = (
        "from brimline.agents.transcripts import line_filter\n"
        "print(line_filter.FASTEST_LINE_FILTER.__name__)"
    )
    command = [sys.executable, "-c", program]
    env = {"PYTHONPATH": str(folder), "PATH": os.environ["PATH"]}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_wheel_with_a_compiler_is_for_this_platform_and_uses_the_compiled_filter(
    project: Project, compiler: str, tmp_path: Path
) -> None:
    wheel = project.build("wheel", CC=compiler)
    assert "-py3-none-" in wheel.name
    assert "-any" not in wheel.name
    assert picker_of(wheel, tmp_path / "installed") == "CompiledLineFilter\n"
    assert SLOWER not in project.output
    with zipfile.ZipFile(wheel) as archive:
        mode = archive.getinfo("brimline/hooks/client/brimline-hook").external_attr >> 16
    assert mode & 0o111, "the hook client cannot be run"


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"BRIMLINE_NO_COMPILER": "1"}, "BRIMLINE_NO_COMPILER is set"),
        ({"PATH": "/nowhere"}, "no C compiler found"),
        ({"CC": "/nowhere/cc"}, "/nowhere/cc cannot be run: No such file or directory"),
        ({"CC": "false --really"}, "false failed: exit code 1"),
        ({"CC": "sh -c 'echo no room >&2; exit 2'"}, "sh failed: no room"),
    ],
    ids=["switched off", "none", "not there", "fails", "fails and says why"],
)
def test_wheel_without_a_compiler_is_for_any_platform_and_says_it_is_slower(
    project: Project, tmp_path: Path, env: dict[str, str], why: str
) -> None:
    (project.root / TRANSCRIPTS / "libline_filter.so").write_bytes(b"of yesterday")
    wheel = project.build("wheel", **env)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert SLOWER + why in project.output.splitlines()
    assert picker_of(wheel, tmp_path / "installed") == "PythonLineFilter\n"
    assert project.compiled == []


def test_wheel_contains_the_built_page(project: Project) -> None:
    assert (project.root / PACKAGE / "api/page/index.html").is_file(), "`make page` builds it"
    with zipfile.ZipFile(project.build("wheel", BRIMLINE_NO_COMPILER="1")) as archive:
        names = archive.namelist()
    assert "brimline/api/page/index.html" in names
    assert any(name.startswith("brimline/api/page/assets/") for name in names)


def test_build_fails_without_the_page_and_without_its_sources(project: Project) -> None:
    shutil.rmtree(project.root / PAGE)
    with pytest.raises(subprocess.CalledProcessError) as failed:
        project.build("wheel", BRIMLINE_NO_COMPILER="1")
    assert "a wheel needs the dashboard" in failed.value.stdout
    assert list((project.root / "out").glob("*.whl")) == []


def test_build_fails_if_the_page_is_out_of_date_and_there_is_no_node(project: Project) -> None:
    require_page()
    shutil.copytree(ROOT / PAGE, project.root / PAGE, dirs_exist_ok=True)
    for part in ("web", "scripts"):
        ignored = shutil.ignore_patterns("node_modules", "__pycache__")
        shutil.copytree(ROOT / part, project.root / part, ignore=ignored)
    project.build("wheel", BRIMLINE_NO_NODE="1", BRIMLINE_NO_COMPILER="1").unlink()
    with (project.root / "web/index.html").open("a") as file:
        file.write("<!-- changed -->")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        project.build("wheel", BRIMLINE_NO_NODE="1", BRIMLINE_NO_COMPILER="1")
    assert "BRIMLINE_NO_NODE is set" in failed.value.stdout
    assert list((project.root / "out").glob("*.whl")) == []


def test_editable_install_has_the_library_beside_its_source(
    project: Project, compiler: str
) -> None:
    wheel = project.build("wheel:editable", CC=compiler)
    assert project.compiled == MADE
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if Path(name).name in MADE]
    project.build("wheel:editable", BRIMLINE_NO_COMPILER="1")
    assert project.compiled == []


def test_sdist_has_the_source_and_nothing_compiled(project: Project) -> None:
    (project.root / TRANSCRIPTS / "libline_filter.so").write_bytes(b"of yesterday")
    with tarfile.open(project.build("sdist")) as archive:
        names = {Path(name).name for name in archive.getnames()}
    ours = {"client.c", "payload.h", "hatch_build.py", "line_filter.c"}
    assert ours <= names
    assert not set(MADE) & names


def test_compiler_gives_no_warnings(project: Project, compiler: str) -> None:
    strict = f"{compiler} -Wall -Wextra -Wpedantic -Wconversion -Werror"
    project.build("wheel", CC=strict)
    assert SLOWER not in project.output
