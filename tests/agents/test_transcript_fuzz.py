"""Damaged files of every agent: each is named or read, and none hides the others."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from .transcript_fuzz import MAX_CPU_S, MAX_RSS_MB, FuzzResult

FILES, PARTS = 500, 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_file_ends_a_command_or_changes_other_sessions(part: int, tmp_path: Path) -> None:
    """`make trust ROW=fuzz` does the same for longer."""
    size = FILES // PARTS
    arguments = ["--seed", "29", "--first", str(part * size), "--files", str(size), "--json"]
    # Without coverage's variables: it would take three times as long.
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    script = Path(__file__).parent / "transcript_fuzz.py"
    process = subprocess.run(
        [sys.executable, str(script), *arguments], env=env, capture_output=True, timeout=600
    )
    result = msgspec.json.decode(process.stdout, type=FuzzResult)
    assert not result.failures, "\n\n".join(result.failures)
    assert (process.returncode, result.files) == (0, size)
    assert result.slowest_s < MAX_CPU_S
    assert result.peak_mb < MAX_RSS_MB
