"""The status line of the compiled hook client without a daemon."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import hook_adapter
from brimline.context.usage import format_percent, percent_raw
from brimline.context.usage import format_tokens as usual
from brimline.hooks.client.payload import reduce_body

from .agent import Agent
from .short_status import MAX_TOKENS, short_status, shorten

COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
OFF = " | daemon off"
tokens = st.integers(0, 3_000_000)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def status_input(usage: Any, window: Any = 200_000, **other: Any) -> bytes:
    context = {"current_usage": usage, "context_window_size": window, **other}
    return json.dumps({"session_id": "s", "context_window": context}).encode()


def usage_of(*counts: Any) -> dict[str, Any]:
    return {"output_tokens": 77, **dict(zip(COUNTS, counts, strict=True))}


UNKNOWN = "ctx unknown"
NO_SIZE = "ctx 9 of an unknown window"
LINES: dict[str, tuple[bytes, str]] = {
    "a call": (status_input(usage_of(10, 80_000, 9_990)), "ctx 45.0% 90K/200K"),
    "a large window": (status_input(usage_of(0, 300_000, 0), 1_000_000), "ctx 30.0% 300K/1M"),
    "a fraction of a million": (
        status_input(usage_of(0, 300_000, 0), 1_250_000),
        "ctx 24.0% 300K/1.25M",
    ),
    "halves go up": (status_input(usage_of(1_250, 0, 0), 1_000_000), "ctx 0.1% 1.3K/1M"),
    "a little": (status_input(usage_of(999, 0, 0)), "ctx 0.5% 999/200K"),
    "full": (status_input(usage_of(200_000, 0, 0)), "ctx 100.0% 200K/200K"),
    "a small window": (status_input(usage_of(9_949, 0, 0), 32_000), "ctx 31.1% 9.9K/32K"),
    "before the first call": (status_input(None), UNKNOWN),
    "after a compaction": (status_input(usage_of(0, 0, 0)), UNKNOWN),
    "more than the window": (
        status_input(usage_of(0, 300_000, 0)),
        "ctx 300K of an unknown window",
    ),
    "a claimed percentage": (
        status_input(usage_of(90_000, 0, 0), used_percentage=1_763_164_800),
        "ctx 45.0% 90K/200K",
    ),
    "tokens of an epoch time": (status_input(usage_of(1_794_725_180, 0, 0)), UNKNOWN),
    "a very long number": (
        status_input(usage_of(0, 0, 0)).replace(b": 0", b": 9" + b"9" * 5_000),
        UNKNOWN,
    ),
    "negative": (status_input(usage_of(-1, 50, 0)), UNKNOWN),
    "negative zero": (status_input(usage_of(9, 0, 0)).replace(b": 0", b": -0"), "ctx 0.0% 9/200K"),
    "no integer": (status_input(usage_of(1.5, 0, 0)), UNKNOWN),
    "true": (status_input(usage_of(True, 0, 0)), UNKNOWN),
    "no number": (status_input(usage_of("9", 0, 0)), UNKNOWN),
    "not a number": (status_input(usage_of(float("nan"), 0, 0)), UNKNOWN),
    "no cache": (status_input({"input_tokens": 9}), UNKNOWN),
    "no usage": (status_input([1, 2, 3]), UNKNOWN),
    "no window": (status_input(usage_of(9, 0, 0), None), NO_SIZE),
    "a window of 0": (status_input(usage_of(9, 0, 0), 0), NO_SIZE),
    "a window of text": (status_input(usage_of(9, 0, 0), "200000"), NO_SIZE),
    "space around it": (
        b"\n " + status_input(usage_of(90_000, 0, 0)) + b"\n",
        "ctx 45.0% 90K/200K",
    ),
    "the last of two": (
        b'{"context_window":1,"context_window":' + status_input(usage_of(9, 0, 0))[37:],
        "ctx 0.0% 9/200K",
    ),
    "no usage at all": (b'{"context_window":{"context_window_size":200000}}', UNKNOWN),
    "an older client": (b'{"session_id":"s"}', ""),
    "another shape": (b'{"context_window":1}', ""),
    "a list": (b"[]", ""),
}

# The lines as a client prints them.
CASES = {
    name: (body, f"{line}{OFF}\n".encode() if line else b"") for name, (body, line) in LINES.items()
}


def shown_line(body: bytes) -> str:
    """Return the line without its suffix."""
    line = short_status(reduce_body(body), OFF.removeprefix(" | "))
    return line.decode().removesuffix("\n").removesuffix(OFF)


@pytest.mark.parametrize(("body", "line"), CASES.values(), ids=CASES)
def test_client_shows_percent_and_tokens_or_unknown(
    compiled_agent: Agent, body: bytes, line: bytes
) -> None:
    assert compiled_agent.run(body, "statusline").stdout == line


def test_client_and_daemon_have_the_same_token_limit() -> None:
    assert MAX_TOKENS == hook_adapter.MAX_TOKENS


@given(tokens)
def test_tokens_are_formatted_as_elsewhere(count: int) -> None:
    assert shorten(count) == usual(count)


@given(tokens, tokens, tokens, tokens)
def test_percent_is_rounded_as_elsewhere(new: int, read: int, written: int, window: int) -> None:
    sent, line = (
        new + read + written,
        shown_line(status_input(usage_of(new, read, written), window)),
    )
    if 0 < sent <= window:
        percent = percent_raw(sent, window)
        assert percent is not None
        assert line == f"ctx {format_percent(percent)} {usual(sent)}/{usual(window)}"
    else:
        assert "%" not in line


@given(anything, anything, anything)
def test_invalid_usage_gives_a_line_without_a_figure(usage: Any, window: Any, percent: Any) -> None:
    line = shown_line(status_input(usage, window, used_percentage=percent))
    assert line.startswith("ctx ")
    assert "%" not in line


@given(st.binary() | anything.map(lambda value: json.dumps(value).encode()))
def test_invalid_stdin_gives_no_line(body: bytes) -> None:
    assert shown_line(body) == ""
