"""What the daemon loads before it serves: each module that it does not need yet is boot time."""

import subprocess
import sys

import pytest

SCRIPT = "import sys; import brimline.server.daemon; print(*sorted(sys.modules))"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("brimline.setup.plan", id="the recipes of setup"),
        pytest.param("brimline.tui", id="the terminal UI"),
    ],
)
def test_not_loaded(loaded: set[str], name: str) -> None:
    """It boots without this."""
    assert "brimline.server.daemon" in loaded
    assert name not in loaded


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that its import brings."""
    words = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())
