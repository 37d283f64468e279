"""The wheels, built once per test run, also with several workers."""

import fcntl
import os
from pathlib import Path

import pytest

from .wheels import build_wheels


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheels of both distributions."""
    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "dist"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            build_wheels(folder)
            (folder / "done").touch()
    return folder
