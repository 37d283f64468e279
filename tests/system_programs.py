"""Programs of the machine that tests need, installed by its package manager if they are missing."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

INSTALLERS = (
    ("apt-get", "install", "-y", "--no-install-recommends"),
    ("dnf", "install", "-y"),
    ("apk", "add"),
    ("brew", "install"),
)


def require_program(name: str) -> str:
    """A program, installed if possible; without it the test is skipped, or fails in CI."""
    with (Path(tempfile.gettempdir()) / f"brimline-{name}-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if shutil.which(name) is None:
            _install(name)
    program = shutil.which(name)
    if program is not None:
        return program
    why = f"install {name} with the system's package manager"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def _install(name: str) -> None:
    """Try the machine's package managers; failures are ignored."""
    for command in INSTALLERS:
        may = os.geteuid() == 0 or command[0] == "brew"
        if may and shutil.which(command[0]):
            subprocess.run([*command, name], capture_output=True, check=False)
            return
