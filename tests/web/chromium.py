"""The Chromium of this machine, as the tests of the page run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from system_programs import give_up, require_program

ROOT = Path(__file__).parent.parent.parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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
    return require_program(*NAMES)


def require_page() -> None:
    """The page, built from the current sources if needed."""
    script = str(ROOT / "scripts" / "page.py")
    completed = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False
    )
    if completed.returncode:
        give_up(completed.stderr.strip())


def require_axe() -> str:
    """The source of axe-core as pinned in package-lock.json."""
    if not AXE.exists():
        give_up("fetch axe-core: `python scripts/page.py --check` does")
    return AXE.read_text()
