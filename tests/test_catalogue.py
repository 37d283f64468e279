"""The model catalogue is what its script makes from the installed genai-prices."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.windows import Catalogue, catalogue

SCRIPT = Path(__file__).parent.parent / "scripts" / "catalogue.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """The names of the script."""
    return runpy.run_path(str(SCRIPT))


def test_is_not_stale() -> None:
    """`--check` passes: the file is what the script would write."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_makes_what_is_read(script: dict[str, Any]) -> None:
    """What the script makes is what the package reads."""
    made: Catalogue = script["build"]()
    assert made == catalogue()
    assert msgspec.json.decode(script["render"](made), type=Catalogue) == made


def test_one_model_a_line(script: dict[str, Any]) -> None:
    """The file has one model a line, sorted, so that a change can be read."""
    text: str = script["render"](catalogue()).decode()
    rows = [line for line in text.splitlines() if line.startswith("    ")]
    assert len(rows) == len(catalogue().exact) + len(catalogue().prefix)
    assert list(catalogue().exact) == sorted(catalogue().exact)


def test_replies_by_the_longest_prefix(script: dict[str, Any]) -> None:
    """The longest prefix tells the longest reply; an unknown model has none."""
    reply = script["reply"]
    assert reply("claude-opus-4-5", 200_000) == 64_000
    assert reply("claude-opus-4-1-20250805", 200_000) == 32_000
    assert reply("my-local-model", 200_000) is None


def test_reply_fits_its_window(script: dict[str, Any]) -> None:
    """A reply that is as long as the window cannot be, and is not claimed."""
    assert script["reply"]("claude-opus-4-5", 8_192) is None


def test_names_of_the_models() -> None:
    """Ids are lower case and without a provider's path, as they are looked up."""
    for name in (*catalogue().exact, *catalogue().prefix):
        assert name == name.lower()
        assert "/" not in name


def test_own_rows_say_so(script: dict[str, Any]) -> None:
    """Our own rows have their origin, the others do not."""
    own = {name for name, row in catalogue().prefix.items() if row.origin}
    assert own == set(script["OWN"])
    assert catalogue().made_from.startswith("genai-prices ")
