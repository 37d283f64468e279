"""Puts frameworks into virtual environments of their own, in the clients' cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest

from clients.install import (
    CannotInstall,
    cache_folder,
    install_once_per_run,
)

FOLDER = Path(__file__).parent
INSTALL_TIMEOUT_S = 1_800  # an environment of 1 GB, on a machine that is busy


def frameworks(name: str = "frameworks") -> Path:
    """The python that has a list of packages; without it the test is skipped, or fails in CI."""
    try:
        return installed(name)
    except CannotInstall as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"frameworks: {error}")
        pytest.skip(f"frameworks: {error}")


def installed(name: str) -> Path:
    """The same, installed if need be; CannotInstall where that fails."""
    root, pins = cache_folder(), FOLDER / f"{name}.txt"
    target = root / f"{name}-{_version(pins)}-{sys.platform}-{platform.machine()}"
    if not target.exists():
        root.mkdir(parents=True, exist_ok=True)
        with (root / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                install_once_per_run(name, root, lambda: _install(pins, target))
    return target / "bin" / "python"


def _version(pins: Path) -> str:
    """Another list of packages or another Python is another environment."""
    version = hashlib.blake2b(pins.read_bytes(), digest_size=4).hexdigest()
    return f"{version}-py{sys.version_info.major}.{sys.version_info.minor}"


def _install(pins: Path, target: Path) -> None:
    """Install beside the target and move it there whole; what a killed run left is removed."""
    prefix = f".{pins.stem}-new-"
    for left in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    venv.create(new, with_pip=False)
    _pip(new / "bin" / "python", pins)
    new.rename(target)


def _pip(python: Path, pins: Path) -> None:
    """Our pip installs into the other environment, which needs none of its own.

    Most of its modules are never imported: each is compiled when it is.
    """
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-compile")
    pip = [sys.executable, "-m", "pip", "--python", python]
    command = [*pip, "install", *quiet, "--requirement", pins]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(f"pip install: no end in {INSTALL_TIMEOUT_S} s") from error
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().splitlines()[-1:] or ["no message"]
        raise CannotInstall(f"pip install failed: {last[0]}") from error
