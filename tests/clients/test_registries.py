"""The windows that Brimline knows are those in the registries of the pinned clients."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .install import require

pytestmark = pytest.mark.clients

SCRIPT = Path(__file__).parents[2] / "scripts/registries.py"


def test_no_row_of_a_clients_registry_has_another_window() -> None:
    """1,495 rows of Pi and 6,170 of opencode, and those of opencode's modes."""
    for client in ("codex", "gemini", "opencode", "pi"):
        require(client)
    checked = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, timeout=300
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert [line.partition(": ")[2] for line in checked.stdout.splitlines()] == [
        "12 rows, 0 wrong by more than 5%",
        "7 rows, 0 wrong by more than 5%",
        "8,255 rows, 0 wrong by more than 5%",
        "1,495 rows, 0 wrong by more than 5%",
    ]
