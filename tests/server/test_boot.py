"""Modules that the daemon must not import before it serves, because they slow its start."""

import subprocess
import sys

import pytest

SCRIPT = "import sys; import brimline.server.daemon; print(*sorted(sys.modules))"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("brimline.install.plan", id="the recipes of setup"),
        pytest.param("brimline.tui", id="the terminal UI"),
    ],
)
def test_module_is_not_imported_at_start(imported_modules: set[str], name: str) -> None:
    assert "brimline.server.daemon" in imported_modules
    assert name not in imported_modules


@pytest.fixture(scope="module")
def imported_modules() -> set[str]:
    """The modules that importing the daemon loads."""
    words = [sys.executable, "-c", SCRIPT]
    result = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return set(result.stdout.split())
