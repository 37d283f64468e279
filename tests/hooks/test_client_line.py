"""The status line that stdin alone tells."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.hooks.alone import APART, NO_COUNT, SIZES, shorten, status
from brimline.hooks.statusline import read
from brimline.hooks.statusline import told as told_rules
from brimline.usage import shorten as usual
from brimline.usage import whole_percent
from brimline.windows import clients

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


UNKNOWN = "ctx unknown, 200K window | * client's usage is no count"
NO_SIZE = "ctx 9 of an unknown window | * client's window is no size"
LINES: dict[str, tuple[bytes, str]] = {
    "a call": (told(used(10, 80_000, 9_990)), "ctx 45% 90K/200K window"),
    "its own per cent": (
        told(used(10, 80_000, 9_990), used_percentage=45),
        "ctx 45% 90K/200K window",
    ),
    "a large window": (told(used(0, 300_000, 0), 1_000_000), "ctx 30% 300K/1M window"),
    "halves go up": (told(used(1_000, 0, 0)), "ctx 1% 1K/200K window"),
    "a little": (told(used(999, 0, 0), used_percentage=0), "ctx <1% 999/200K window"),
    "full": (told(used(200_000, 0, 0)), "ctx 100% 200K/200K window"),
    "before the first call": (told(None), "ctx no call yet, 200K window"),
    "before it, no window": (told(None, None), "ctx no call yet"),
    "after a compaction": (told(used(0, 0, 0)), "ctx unknown until the next reply, 200K window"),
    "other figures": (
        told(None, total_input_tokens=0, used_percentage=45),
        "ctx no call yet, 200K window",
    ),
    "totals of a call": (
        told(None, total_input_tokens=9),
        "ctx unknown until the next reply, 200K window",
    ),
    "a window that is stuck": (
        told(used(0, 300_000, 0), used_percentage=100),
        "ctx 30%* 300K/1M window | * client says 200K window",
    ),
    "more than any window": (
        told(used(0, 3_000_000, 0)),
        "ctx 3M of an unknown window | * client says 200K window",
    ),
    "a small window": (told(used(20_000, 0, 0), 32_000), "ctx 63% 20K/32K window"),
    "an epoch time": (
        told(used(90_000, 0, 0), used_percentage=1_763_164_800),
        "ctx 45%* 90K/200K window | * client says 1763164800%",
    ),
    "0 % in use": (
        told(used(90_000, 0, 0), used_percentage=0),
        "ctx 45%* 90K/200K window | * client says 0%",
    ),
    "per cent of text": (
        told(used(90_000, 0, 0), used_percentage="45"),
        "ctx 45%* 90K/200K window | * client's percentage is no number",
    ),
    "tokens of an epoch time": (told(used(1_794_725_180, 0, 0)), UNKNOWN),
    "negative": (told(used(-1, 50, 0)), UNKNOWN),
    "no integer": (told(used(1.5, 0, 0)), UNKNOWN),
    "true": (told(used(True, 0, 0)), UNKNOWN),
    "no number": (told(used("9", 0, 0)), UNKNOWN),
    "not a number": (told(used(float("nan"), 0, 0)), UNKNOWN),
    "no cache": (told({"input_tokens": 9}), UNKNOWN),
    "no usage": (told([1, 2, 3]), UNKNOWN),
    "no window": (told(used(9, 0, 0), None), "ctx 9 of an unknown window"),
    "a window of 0": (told(used(9, 0, 0), 0), NO_SIZE),
    "a window of text": (told(used(9, 0, 0), "200000"), NO_SIZE),
    "space around it": (b"\n " + told(used(90_000, 0, 0)) + b"\n", "ctx 45% 90K/200K window"),
    "no usage at all": (b'{"context_window":{"context_window_size":200000}}', ""),
    "an older client": (b'{"session_id":"s"}', ""),
    "a list": (b"[]", ""),
}


CASES = {name: (body, f"{line}\n".encode()) for name, (body, line) in LINES.items()}
"""The same as a client prints it."""


def shown(body: bytes, columns: bytes = b"") -> str:
    """The line without its end."""
    return status(body, columns).decode().removesuffix("\n")


@pytest.mark.parametrize(("body", "line"), LINES.values(), ids=LINES)
def test_line(body: bytes, line: str) -> None:
    """What the last call sent of which window; no impossible figure, and none of 0 %."""
    assert shown(body) == line


@pytest.mark.parametrize(("body", "line"), LINES.values(), ids=LINES)
def test_line_of_the_daemon(body: bytes, line: str) -> None:
    """What is wrong is said as the daemon says it, which knows the window from the model."""
    try:
        wrong = read(body).wrong
    except msgspec.DecodeError:
        assert line == ""
    else:
        said = line.partition("* client")[2]
        assert said.endswith(" window") or (wrong or "client").removeprefix("client") == said


@pytest.mark.parametrize("case", ["a call", "before the first call", "after a compaction"])
def test_line_of_a_client(agent: Agent, case: str) -> None:
    """Each client shows it when there is no daemon."""
    body, line = CASES[case]
    assert agent.run(body, "statusline").out == line


def test_width_of_a_client(agent: Agent) -> None:
    """Each client asks its environment how wide the terminal is."""
    narrow = replace(agent, env={"COLUMNS": "20"})
    assert narrow.run(CASES["a call"][0], "statusline").out == b"ctx 45% of window\n"


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (b"", "ctx 45%* 90K/200K window | $1.25 | * client says 0%"),
        (b"51", "ctx 45%* 90K/200K window | $1.25 | * client says 0%"),
        (b"50", "ctx 45%* 90K/200K window | $1.25"),
        (b"31", "ctx 45%* 90K/200K window"),
        (b"23", "ctx 45%* of window"),
        (b"5", "ctx 45%* of window"),
        (b"4", "ctx 45%* of window"),
        (b"1", "ctx 45%* of window"),
        (b"0", "ctx 45%* 90K/200K window | $1.25 | * client says 0%"),
        (b"wide", "ctx 45%* 90K/200K window | $1.25 | * client says 0%"),
        (b"9" * 5_000, "ctx 45%* 90K/200K window | $1.25 | * client says 0%"),
    ],
    ids=lambda value: repr(value)[:8],
)
def test_width(columns: bytes, line: str) -> None:
    """What has no room is left out from the end; the figure stays, and says what it is of."""
    usage, context = used(90_000, 0, 0), {"used_percentage": 0}
    context |= {"current_usage": usage, "context_window_size": 200_000}
    body = json.dumps({"context_window": context, "cost": {"total_cost_usd": 1.25}})
    assert shown(body.encode(), columns) == line


@pytest.mark.parametrize("dollars", [0, "1", -1, float("nan"), [], None])
@pytest.mark.parametrize("whole", [True, False])
def test_no_cost(dollars: Any, whole: bool) -> None:
    """A cost that cannot be is none."""
    cost = dollars if whole else {"total_cost_usd": dollars}
    told_cost = json.loads(told(used(90_000, 0, 0))) | {"cost": cost}
    assert shown(json.dumps(told_cost).encode()) == "ctx 45% 90K/200K window"


def test_unknown_after_a_call() -> None:
    """Where a session has cost something, no call is denied."""
    paid = json.loads(told(None)) | {"cost": {"total_cost_usd": 1.25}}
    unknown = "ctx unknown until the next reply"
    assert shown(json.dumps(paid).encode()) == f"{unknown}, 200K window | $1.25"
    assert shown(json.dumps(paid).encode(), b"20") == unknown


def test_known_numbers() -> None:
    """What it knows without importing it is what the rest of Brimline knows."""
    assert clients().sizes["claude"] == SIZES
    assert (NO_COUNT, APART) == (told_rules.NO_COUNT, told_rules.APART)


@given(tokens)
def test_tokens(count: int) -> None:
    """Tokens are written as everywhere else."""
    assert shorten(count) == usual(count)


@given(tokens, tokens, tokens, tokens)
def test_percent(new: int, read: int, written: int, window: int) -> None:
    """The figure is that of the rest of Brimline."""
    sent, line = new + read + written, shown(told(used(new, read, written), window))
    if 0 < sent <= window:
        percent = whole_percent(sent, window) or "<1"
        assert line == f"ctx {percent}% {usual(sent)}/{usual(window)} window"
    else:
        assert line.endswith("window") or "no size" in line
        assert "%" not in line or "%*" in line


@given(anything, anything, anything)
def test_any_usage(usage: Any, window: Any, percent: Any) -> None:
    """Whatever stands there, the line comes, and no figure is made of what is none."""
    line = shown(told(usage, window, used_percentage=percent))
    assert line.startswith("ctx ")
    assert "%" not in line.partition("|")[0]


@given(st.binary() | anything.map(lambda value: json.dumps(value).encode()))
def test_any_stdin(body: bytes) -> None:
    """Whatever stdin is, nothing is raised and nothing is made up."""
    assert status(body) == b""
