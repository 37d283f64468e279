"""Programs of the machine that tests need, installed by its package manager if they are missing."""

import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

INSTALLERS = (
    ("apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"),
    ("dnf", "install", "-y"),
    ("apk", "add"),
    ("brew", "install"),
)


def require_program(name: str, *other_names: str) -> str:
    """A program, installed if possible; without it the test is skipped, or fails in CI."""
    names, said = (name, *other_names), ""
    if _find(names) is None:
        # One lock for all programs: a package manager serves one at a time.
        lock_path = Path(tempfile.gettempdir()) / f"brimline-install-{os.getuid()}.lock"
        with lock_path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _find(names) is None:
                said = _install(name)
    return _find(names) or give_up(f"install {name} with the system's package manager\n{said}")


def _find(names: Iterable[str]) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


def require_unpacked(package: str, program: str, place: str = "usr/bin") -> Path:
    """The folder of a program: the machine's, or that of Debian's package, which is not installed.

    So no service is started. Without it the test is skipped, or fails in CI.
    """
    if (installed := shutil.which(program)) is not None:
        return Path(installed).parent
    folder = Path(tempfile.gettempdir()) / f"brimline-{package}-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / place / program).exists() and shutil.which("apt-get"):
            _unpack(package, folder)
    if not (folder / place / program).exists():
        give_up(f"install {program} with the system's package manager")
    return folder / place


@functools.cache
def _unpack(package: str, folder: Path) -> None:
    download = ["apt-get", "download", package]
    if subprocess.run(download, cwd=folder, capture_output=True, check=False).returncode:
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        subprocess.run(download, cwd=folder, capture_output=True, check=False)
    for file in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(file), str(folder)], check=False)
        file.unlink()


def give_up(why: str) -> NoReturn:
    """Skip the test, or fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


@functools.cache  # a failed try is not repeated by each test
def _install(name: str) -> str:
    """Try the machine's package manager; return what it said."""
    for command in INSTALLERS:
        may = os.geteuid() == 0 or command[0] == "brew"
        if may and shutil.which(command[0]):
            done = subprocess.run([*command, name], capture_output=True, check=False)
            if done.returncode and command[0] == "apt-get":  # its list of packages may be old
                subprocess.run(["apt-get", "update"], capture_output=True, check=False)
                done = subprocess.run([*command, name], capture_output=True, check=False)
            return (done.stdout + done.stderr).decode(errors="replace")
    return ""
