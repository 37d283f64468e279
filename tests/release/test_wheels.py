"""The released wheels: each is installed into fresh environments and tried."""

import email
import json
import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path

import pytest

from .wheels import MACHINE, manylinux, run, wheel_of

pytestmark = pytest.mark.slow

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MAX_CORE_PACKAGES, MAX_CORE_BYTES = 10, 15_000_000
LIBRARY_PROGRAM = """
from brimline import DaemonSession, Tracker
tracker = Tracker(model="claude-sonnet-4-5", report_to=DaemonSession("my-agent"))
tracker.observe({"input_tokens": 90_000, "output_tokens": 700})
print(tracker.reading.percent)
"""


def find_pythons() -> dict[str, str]:
    """The supported Pythons of pyenv or on the PATH, by version; others cannot be tried here."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found: dict[str, str] = {}
    for version in PYTHONS:
        on_path = shutil.which(f"python{version}") or ""
        is_shim = on_path.startswith(f"{pyenv}/shims")  # it may start no Python at all
        own = next(pyenv.glob(f"versions/{version}.*/bin/python"), None)
        if path := str(own or "") or ("" if is_shim else on_path):
            found[version] = path
    return found


class Environment:
    """A virtual environment with one distribution, and an empty home."""

    def __init__(self, root: Path, wheel: Path, python: str) -> None:
        self.bin = root / "venv/bin"
        self.home = root / "home"
        self.home.mkdir()
        uv = ("-m", "uv", "--quiet", "--no-python-downloads")
        run(sys.executable, *uv, "venv", "--python", python, root / "venv")
        self.install = (*uv, "pip", "install", "--python", self.bin / "python")
        run(sys.executable, *self.install, wheel)

    def brimline(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / "brimline", *arguments],
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @contextmanager
    def daemon(self) -> Generator[str]:
        """The address of a daemon in the background."""
        started = self.brimline("serve", "--background", "--port", "any")
        assert started.returncode == 0, started.stderr
        try:
            yield json.loads(self.brimline("serve", "--status", "--json").stdout)["address"]
        finally:
            assert self.brimline("serve", "--stop").returncode == 0


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_every_wheel_contains_the_page_and_only_compiled_ones_the_hook_client(dist: Path) -> None:
    wheels = sorted(dist.glob("*.whl"))
    assert len(wheels) == 2 * len({"any", manylinux("x86_64"), manylinux(MACHINE)})
    for wheel in wheels:
        names = zipfile.ZipFile(wheel).namelist()
        assert "brimline/api/page/index.html" in names, wheel.name
        assert any(name.endswith("data/share/man/man1/brimline.1") for name in names), wheel.name
        compiled = "brimline/hooks/client/brimline-hook" in names
        assert compiled != wheel.name.endswith("-any.whl"), wheel.name


def test_core_needs_msgspec_alone_and_has_the_rest_as_an_extra(dist: Path) -> None:
    metadata = metadata_of(wheel_of(dist, "brimline_core", "any"))
    needed = metadata.get_all("Requires-Dist", [])
    assert [one for one in needed if "extra ==" not in one] == ["msgspec>=0.20"]
    complete = metadata_of(wheel_of(dist, "brimline", "any")).get_all("Requires-Dist", [])
    assert len(needed) == len(complete)
    assert metadata["Name"] == "brimline-core"


@pytest.mark.parametrize("python", find_pythons().values(), ids=find_pythons())
def test_complete_wheel_runs_the_commands_and_serves_the_page(
    dist: Path, tmp_path: Path, python: str
) -> None:
    installed = Environment(tmp_path, wheel_of(dist, "brimline", manylinux(MACHINE)), python)
    assert installed.brimline("--version").stdout.startswith("brimline ")
    assert installed.brimline("status", "--json").stdout == "[]\n"
    with installed.daemon():
        link = installed.brimline("open", "--print").stdout.splitlines()[-1]
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(link, timeout=10) as page:
            assert b"<title>Brimline" in page.read()


def test_pure_wheel_works_without_a_compiler(dist: Path, tmp_path: Path) -> None:
    installed = Environment(tmp_path, wheel_of(dist, "brimline", "any"), sys.executable)
    assert installed.brimline("status", "--json").stdout == "[]\n"
    with installed.daemon() as address:
        assert address.startswith("http://127.0.0.1:")


def test_core_is_small_tracks_and_says_what_its_commands_need(dist: Path, tmp_path: Path) -> None:
    wheel = wheel_of(dist, "brimline_core", manylinux(MACHINE))
    installed = Environment(tmp_path, wheel, sys.executable)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    assert len(list(packages.glob("*.dist-info"))) < MAX_CORE_PACKAGES
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
    assert size < MAX_CORE_BYTES
    assert run(installed.bin / "python", "-c", LIBRARY_PROGRAM) == "45.0\n"
    assert installed.brimline("status", "--json").stdout == "[]\n"
    for command in (["serve"], ["serve", "--background"], ["setup", "claude"]):
        refused = installed.brimline(*command)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.endswith("run `pip install 'brimline-core[daemon]'`\n")
        assert len(refused.stderr.splitlines()) == 1
    run(sys.executable, *installed.install, f"{wheel}[daemon]")
    with installed.daemon() as address:
        assert address.startswith("http://127.0.0.1:")
