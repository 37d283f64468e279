"""Settings of clients: JSON with comments, from files that may be anything."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.transcripts.client_settings import read_settings, strip_comments
from brimline.files.regular_file import MAX_SETTINGS_BYTES

PATIENCE_S = 60


class Settings(msgspec.Struct):
    """Some settings."""

    size: int = 0


@pytest.mark.parametrize(
    "text",
    [
        b'{"size": 5}',
        b'\xef\xbb\xbf{"size": 5}',
        b'{"size": 5,}',
        b'{"size": 5, /* why */ "other": [1, 2, ], } // the end',
        b'// "{"\n{"size": 5, "url": "https://x/*y*/,]", "quote": "\\"//,}"}',
        b'{"size": 5} /* not closed',
        b'/***/{"size": 5}/* a * b **/',
    ],
)
def test_comments_and_trailing_commas(text: bytes) -> None:
    """What people write into settings is read; what stands in a string stays there."""
    assert read_settings(text, Settings) == Settings(5)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists) | st.text())
def test_strict_json_is_left_as_it_is(value: object) -> None:
    """A document without comments is changed in nothing."""
    text = msgspec.json.encode(value)
    assert strip_comments(text) == text


@pytest.mark.parametrize("part", ["/* ", "/*", '\\\\"', '"', "//", ",]", "/**", ", "])
def test_hostile_settings_are_given_up(part: str) -> None:
    """Millions of openings without an end do not keep a thread, and the GIL, for hours."""
    script = (
        "from brimline.agents.transcripts.client_settings import strip_comments\n"
        f"strip_comments(b'{part}' * (8 << 20 >> len(b'{part}').bit_length()))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_S)


def test_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    """A file of the limit is read, one byte more is not."""
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"size": 5}'.ljust(MAX_SETTINGS_BYTES))
    assert read_settings(path, Settings) == Settings(5)
    path.write_bytes(b'{"size": 5}'.ljust(MAX_SETTINGS_BYTES + 1))
    assert read_settings(path, Settings) is None


def test_fifo_is_not_waited_for(tmp_path: Path) -> None:
    """What is no file tells nothing."""
    os.mkfifo(tmp_path / "settings.json")
    assert read_settings(tmp_path / "settings.json", Settings) is None
