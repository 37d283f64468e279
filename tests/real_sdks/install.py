"""Puts LiteLLM and Google ADK into a virtual environment of their own, in the clients' cache."""

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
    INSTALL_TIMEOUT_S,
    CannotInstall,
    cache_folder,
    install_once_per_run,
)

PINS = Path(__file__).with_name("frameworks.txt")


def frameworks() -> Path:
    """The python that has them; without it the test is skipped, or fails under CI=true."""
    try:
        return installed()
    except CannotInstall as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"frameworks: {error}")
        pytest.skip(f"frameworks: {error}")


def installed() -> Path:
    """The same, installed if need be; CannotInstall where that fails."""
    root = cache_folder()
    target = root / f"frameworks-{_version()}-{sys.platform}-{platform.machine()}"
    if not target.exists():
        root.mkdir(parents=True, exist_ok=True)
        with (root / ".frameworks.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                install_once_per_run("frameworks", root, lambda: _install(target))
    return target / "bin" / "python"


def _version() -> str:
    """Another list of packages or another Python is another environment."""
    pins = hashlib.blake2b(PINS.read_bytes(), digest_size=4).hexdigest()
    return f"{pins}-py{sys.version_info.major}.{sys.version_info.minor}"


def _install(target: Path) -> None:
    """Install beside the target and move it there whole; what a killed run left is removed."""
    for left in target.parent.glob(".frameworks-new-*"):
        shutil.rmtree(left, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=".frameworks-new-", dir=target.parent))
    venv.create(new, with_pip=False)
    _pip(new / "bin" / "python")
    new.rename(target)


def _pip(python: Path) -> None:
    """Our pip installs into the other environment, which needs none of its own."""
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
    pip = [sys.executable, "-m", "pip", "--python", python]
    command = [*pip, "install", *quiet, "--requirement", PINS]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(f"pip install: no end in {INSTALL_TIMEOUT_S} s") from error
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().splitlines()[-1:] or ["no message"]
        raise CannotInstall(f"pip install failed: {last[0]}") from error
