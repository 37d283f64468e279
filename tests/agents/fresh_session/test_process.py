"""The lines of a client's process."""

import os
import sys
from pathlib import Path

import pytest

from brimline.agents.fresh_session.client import MAX_LINE_BYTES, ClientProcess


def printed_lines(cwd: Path, program: str) -> list[bytes]:
    """Return the first 20 bytes of each line that a Python program prints."""
    command = [sys.executable, "-c", f"import sys; out = sys.stdout.buffer; {program}"]
    with ClientProcess(command, cwd, os.environ, 60.0) as process:
        return [line[:20] for line in process.lines()]


@pytest.mark.parametrize("extra", [1, 1 << 16, MAX_LINE_BYTES])
@pytest.mark.parametrize("end", ["", "\\n"])
def test_no_part_of_a_line_that_is_too_long_is_returned(
    tmp_path: Path, extra: int, end: str
) -> None:
    """Its tail may look like a line of its own."""
    long = f"out.write(b'x' * {MAX_LINE_BYTES + extra - 4} + b'tail')"
    program = f"out.write(b'before\\n'); {long}; out.write(b'\\nafter\\n'); {long}"
    lines = printed_lines(tmp_path, f"{program}; out.write(b'{end}')")
    assert lines == [b"before", b"after"]


def test_longest_line_is_returned_whole(tmp_path: Path) -> None:
    program = f"out.write(b'x' * {MAX_LINE_BYTES} + b'\\n' + b'y' * {MAX_LINE_BYTES})"
    assert printed_lines(tmp_path, program) == [b"x" * 20, b"y" * 20]
