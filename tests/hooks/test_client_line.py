"""The status line that stdin alone tells."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.hooks.alone import shorten, status
from brimline.usage import shorten as usual
from brimline.usage import whole_percent

from .agent import Agent

COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
tokens = st.integers(0, 3_000_000)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def told(usage: Any, window: Any = 200_000, **other: Any) -> bytes:
    """What a client gives a status line."""
    context = {"current_usage": usage, "context_window_size": window, **other}
    return json.dumps({"session_id": "s", "context_window": context}).encode()


def used(*counts: Any) -> dict[str, Any]:
    """The usage of a call."""
    return {"output_tokens": 77, **dict(zip(COUNTS, counts, strict=True))}


CASES: dict[str, tuple[bytes, bytes]] = {
    "a call": (told(used(10, 80_000, 9_990)), b"ctx 45% 90K/200K\n"),
    "a large window": (told(used(0, 300_000, 0), 1_000_000), b"ctx 30% 300K/1M\n"),
    "halves go up": (told(used(1_000, 0, 0)), b"ctx 1% 1K/200K\n"),
    "full": (told(used(200_000, 0, 0)), b"ctx 100% 200K/200K\n"),
    "before the first call": (told(None), b"ctx -\n"),
    "after a compaction": (told(used(0, 0, 0)), b"ctx ?\n"),
    "other figures": (told(None, total_input_tokens=9, used_percentage=45), b"ctx -\n"),
    "more than the window": (told(used(200_001, 0, 0)), b"ctx ?\n"),
    "an epoch time": (told(used(1_794_725_180, 0, 0)), b"ctx ?\n"),
    "negative": (told(used(-1, 50, 0)), b"ctx ?\n"),
    "no integer": (told(used(1.5, 0, 0)), b"ctx ?\n"),
    "true": (told(used(True, 0, 0)), b"ctx ?\n"),
    "no number": (told(used("9", 0, 0)), b"ctx ?\n"),
    "not a number": (told(used(float("nan"), 0, 0)), b"ctx ?\n"),
    "no cache": (told({"input_tokens": 9}), b"ctx ?\n"),
    "no usage": (told([1, 2, 3]), b"ctx ?\n"),
    "no window": (told(used(9, 0, 0), None), b"ctx ?\n"),
    "a window of 0": (told(used(9, 0, 0), 0), b"ctx ?\n"),
    "a window of text": (told(used(9, 0, 0), "200000"), b"ctx ?\n"),
    "space around it": (b"\n " + told(used(90_000, 0, 0)) + b"\n", b"ctx 45% 90K/200K\n"),
    "no usage at all": (b'{"context_window":{"context_window_size":200000}}', b""),
    "an older client": (b'{"session_id":"s"}', b""),
    "a list": (b"[]", b""),
}


@pytest.mark.parametrize(("body", "line"), CASES.values(), ids=CASES)
def test_line(body: bytes, line: bytes) -> None:
    """Per cent and tokens of the last call, or what is not known; no impossible figure."""
    assert status(body) == line


@pytest.mark.parametrize("case", ["a call", "before the first call", "after a compaction"])
def test_line_of_a_client(agent: Agent, case: str) -> None:
    """Each client shows it when there is no daemon."""
    body, line = CASES[case]
    assert agent.run(body, "statusline").out == line


@given(tokens)
def test_tokens(count: int) -> None:
    """Tokens are written as everywhere else."""
    assert shorten(count) == usual(count)


@given(tokens, tokens, tokens, tokens)
def test_percent(new: int, read: int, written: int, window: int) -> None:
    """The figure is that of the rest of Brimline, or none."""
    sent, line = new + read + written, status(told(used(new, read, written), window))
    if 0 < sent <= window:
        shown = f"ctx {whole_percent(sent, window)}% {usual(sent)}/{usual(window)}\n"
        assert line == shown.encode()
    else:
        assert line == b"ctx ?\n"


@given(anything, anything)
def test_any_usage(usage: Any, window: Any) -> None:
    """Whatever stands there, the line is one of the few that there are."""
    assert status(told(usage, window)) in (b"ctx -\n", b"ctx ?\n")


@given(st.binary() | anything.map(lambda value: json.dumps(value).encode()))
def test_any_stdin(body: bytes) -> None:
    """Whatever stdin is, nothing is raised and nothing is made up."""
    assert status(body) == b""
