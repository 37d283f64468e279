"""The Chromium of this machine, as the tests of the page run it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parent.parent.parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALLER = ("apt-get", "install", "-y", "--no-install-recommends", "chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"


def require_chromium() -> str:
    """A Chromium, installed if possible; without one the test is skipped, or fails in CI."""
    with (Path(tempfile.gettempdir()) / f"brimline-chromium-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if find_chromium() is None and os.geteuid() == 0 and shutil.which(INSTALLER[0]):
            subprocess.run(INSTALLER, capture_output=True, check=False)
    return find_chromium() or _missing("install chromium with the system's package manager")


def find_chromium() -> str | None:
    """The first Chromium in PATH."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def require_page() -> None:
    """The page, built from the current sources if needed."""
    script = str(ROOT / "scripts" / "page.py")
    completed = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False
    )
    if completed.returncode:
        _missing(completed.stderr.strip())


def require_axe() -> str:
    """The source of axe-core as pinned in package-lock.json."""
    if not AXE.exists():
        _missing("fetch axe-core: `python scripts/page.py --check` does")
    return AXE.read_text()


def _missing(why: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
