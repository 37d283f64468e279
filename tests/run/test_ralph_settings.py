"""The one key that is read from a Ralph YAML file."""

import os
from pathlib import Path

import pytest

from brimline.errors import InvalidSettings
from brimline.run.ralph import read_window

REAL = """\
# Ralph
cli:
  backend: "claude"
  args: ["-p", "event_loop: {}"]

event_loop:
  prompt_file: "PROMPT.md"          # what to do
  completion_promise: "LOOP_COMPLETE # really"
  max_iterations: 100
  nested:
    context_window_tokens: 1
  notes: |
    context_window_tokens: 2
  context_window_tokens: 128000     # for non-default models
  max_runtime_seconds: 14400

hats:
  builder:
    context_window_tokens: 3
"""


def read_text(tmp_path: Path, text: str) -> int | None:
    """The window that a file sets."""
    path = tmp_path / "ralph.yml"
    path.write_text(text)
    return read_window(path)


def test_window_of_real_file_is_read(tmp_path: Path) -> None:
    assert read_text(tmp_path, REAL) == 128_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("cli:\n  backend: claude\n", None),
        ("event_loop:\n", None),
        ("event_loop:\n  max_iterations: 5\n", None),
        ("context_window_tokens: 5\n", None),
        ("hats:\n  a:\n    event_loop:\n      context_window_tokens: 5\n", None),
        ("event_loop:\n  context_window_tokens:\n", None),
        ("event_loop:\n  context_window_tokens: null\n", None),
        ("event_loop:\n  context_window_tokens: ~\n", None),
        ("event_loop:\n    context_window_tokens: 5", 5),
        ("---\n'event_loop':\n \"context_window_tokens\": 5\n", 5),
        ("event_loop: # the loop\n\n  # the window\n  context_window_tokens: 5 # small\n", 5),
        ("event_loop:\r\n  context_window_tokens: 5\r\n", 5),
    ],
)
def test_window_is_read(tmp_path: Path, text: str, expected: int | None) -> None:
    assert read_text(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "line", "field", "problem"),
    [
        ("event_loop: {context_window_tokens: 5}", 1, "event_loop", "expected one key per line"),
        ("event_loop: *base\n", 1, "event_loop", "got '*base'"),
        ("event_loop:\n\tcontext_window_tokens: 5\n", 2, "event_loop", "got a tab"),
        ("event_loop:\n  <<: *base\n", 2, "event_loop", "merge keys (<<) are not supported"),
        *[
            (
                f"event_loop:\n  context_window_tokens: {value}\n",
                2,
                "event_loop.context_window_tokens",
                f"expected a whole number above 0: got {value!r}",
            )
            for value in ("0", "-5", "128k", "1.5", "'128000'", "128_000", "[1]", "&a 5")
        ],
    ],
)
def test_unsupported_layout_raises_with_line(
    tmp_path: Path, text: str, line: int, field: str, problem: str
) -> None:
    with pytest.raises(InvalidSettings) as caught:
        read_text(tmp_path, text)
    assert caught.value.place == f"{tmp_path / 'ralph.yml'}:{line}"
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_missing_file_raises(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yml")
    for path in (tmp_path / "none.yml", tmp_path, tmp_path / "fifo.yml"):
        with pytest.raises(InvalidSettings) as caught:
            read_window(path)
        assert caught.value.place == str(path)
    (tmp_path / "bad.yml").write_bytes(b"\xff")
    with pytest.raises(InvalidSettings):
        read_window(tmp_path / "bad.yml")
