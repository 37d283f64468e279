"""What a client told its status line, whatever that was."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.claude.status_line import read_status_line
from brimline.agents.hook_payloads import StatusInput

COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def body(usage: Any = None, size: Any = 200_000, percent: Any = None, **more: Any) -> bytes:
    """What a client writes."""
    context = {"current_usage": usage, "context_window_size": size, "used_percentage": percent}
    told = {"session_id": "s", "cwd": "/project", "version": "2.1.325", "context_window": context}
    return json.dumps({**told, **more}).encode()


def used(*counts: Any, **more: Any) -> dict[str, Any]:
    """The usage of a call."""
    return {"output_tokens": 77, **dict(zip(COUNTS, counts, strict=True)), **more}


def sent(told: StatusInput) -> int | None:
    """What the last call sent, by what was taken."""
    usage = told.context_window.current_usage
    return None if usage is None else sum(getattr(usage, name) for name in COUNTS)


CALL = used(10, 80_000, 9_990)
NO_COUNT, NO_SIZE = "client's usage is invalid", "client's window is invalid"
SOUND: dict[str, tuple[bytes, int | None]] = {
    "a call": (body(CALL, percent=45), 90_000),
    "rounded": (body(CALL, percent=45.4), 90_000),
    "before the first call": (body(), None),
    "after a compaction": (body(used(0, 0, 0), percent=0), 0),
    "little": (body(used(900, 0, 0), percent=0), 900),
    "more than a window, and pinned": (body(used(0, 300_000, 0), percent=100), 300_000),
    "no percentage": (body(CALL), 90_000),
    "no window": (body(CALL, None, percent=45), 90_000),
    "an older client": (b'{"session_id":"s"}', None),
    "fields of a newer client": (body(CALL, percent=45, vim={"mode": "NORMAL"}), 90_000),
}
WRONG: dict[str, tuple[bytes, int | None, str]] = {
    "an epoch time": (body(CALL, percent=1_763_164_800), 90_000, "client says 1763164800%"),
    "0 % beside live usage": (body(CALL, percent=0), 90_000, "client says 0%"),
    "another percentage": (body(CALL, percent=89), 90_000, "client says 89%"),
    "negative": (body(CALL, percent=-3), 90_000, "client says -3%"),
    "not a number": (body(CALL, percent=float("nan")), 90_000, "client says nan%"),
    "infinite": (body(CALL, percent=float("inf")), 90_000, "client says inf%"),
    "very long": (body(CALL, percent=10**300), 90_000, "client says 1000000000000000%"),
    "text": (body(CALL, percent="45"), 90_000, "client's percentage is invalid"),
    "true": (body(CALL, percent=True), 90_000, "client's percentage is invalid"),
    "usage of an epoch time": (body(used(1_763_164_800, 0, 0), percent=45), None, NO_COUNT),
    "negative usage": (body(used(-1, 50, 0)), None, NO_COUNT),
    "usage of text": (body(used("9", 0, 0)), None, NO_COUNT),
    "usage of parts": (body(used(1.5, 0, 0)), None, NO_COUNT),
    "usage that is no number": (body(used(float("nan"), 0, 0)), None, NO_COUNT),
    "a count is missing": (body({"input_tokens": 9}), None, NO_COUNT),
    "a list of usage": (body([1, 2, 3]), None, NO_COUNT),
    "no context at all": (body(context_window="full"), None, NO_COUNT),
    "a window of 0": (body(CALL, 0), 90_000, NO_SIZE),
    "a window of text": (body(CALL, "200000"), 90_000, NO_SIZE),
    "a window of an epoch time": (body(CALL, 1_763_164_800), 90_000, NO_SIZE),
    "all of it": (body(used("9", 0, 0), -1, float("nan")), None, NO_COUNT),
}  # fmt: skip


@pytest.mark.parametrize(("told", "holds"), SOUND.values(), ids=SOUND)
def test_sound(told: bytes, holds: int | None) -> None:
    """What can be is taken as it is, and nothing is said about it."""
    found = read_status_line(told)
    assert (sent(found.input), found.wrong) == (holds, None)


@pytest.mark.parametrize(("told", "holds", "wrong"), WRONG.values(), ids=WRONG)
def test_wrong(told: bytes, holds: int | None, wrong: str) -> None:
    """What cannot be is left out and named; the rest is taken."""
    found = read_status_line(told)
    assert (sent(found.input), found.wrong) == (holds, wrong)
    assert (found.input.session_id, found.input.cwd) == ("s", "/project")


@pytest.mark.parametrize(
    ("told", "called"),
    [
        (body(), False),
        (body(cost={"total_cost_usd": 0}, context_window={"total_input_tokens": 0}), False),
        (body(used(0, 0, 0)), True),
        (body(CALL), True),
        (body(cost={"total_cost_usd": 0.25}), True),
        (body(context_window={"total_input_tokens": 10**9}), True),
        (body(context_window={"total_output_tokens": 9}), True),
        (body(context_window={"total_output_tokens": "9"}), False),
    ],
)
def test_called(told: bytes, called: bool) -> None:
    """A call was made where anything but a usage of null is told, or any total."""
    found = read_status_line(told)
    assert (found.called, found.wrong) == (called, None)


@pytest.mark.parametrize("dollars", [-1, float("nan"), float("inf"), "1.25", [], 1e300])
def test_no_cost(dollars: Any) -> None:
    """A cost that cannot be is none; the figure is as good as before."""
    found = read_status_line(body(CALL, percent=45, cost={"total_cost_usd": dollars}))
    assert (found.input.cost.total_cost_usd, found.wrong) == (None, None)
    assert sent(found.input) == 90_000


def test_text_that_is_none() -> None:
    """Half a character is no name of a model: it could be neither stored nor shown."""
    found = read_status_line(body(CALL, model={"id": "\ud800", "display_name": "Sonnet"}))
    assert (found.input.model.id, found.input.model.display_name) == (None, "Sonnet")


@pytest.mark.parametrize(
    "told",
    [b"", b"garbage", b"[1]", b"3", b"NaN", b'{"session_id":5}', b"{}", b"[" * 100_000, b"\xff",
     b'{"session_id":"\\ud800"}', b'{"a":' + b"9" * 5_000 + b"}"],
)  # fmt: skip
def test_no_session(told: bytes) -> None:
    """What names no session is refused, however it is broken."""
    with pytest.raises(msgspec.DecodeError):
        read_status_line(told)


@given(anything, anything, anything, anything)
def test_anything(usage: Any, size: Any, percent: Any, more: Any) -> None:
    """Whatever the figures are, a session is taken with counts that can be, or none."""
    found = read_status_line(body(usage, size, percent, model=more, cost=more))
    assert found.input.session_id == "s"
    assert sent(found.input) is None
    window = found.input.context_window.context_window_size
    assert window is None or (type(window) is int and 0 < window < 10**8)
    msgspec.json.encode(found)


@given(st.binary() | anything.map(lambda value: json.dumps(value).encode()))
def test_any_bytes(told: bytes) -> None:
    """What is no status line's input raises nothing else."""
    with pytest.raises(msgspec.DecodeError):
        read_status_line(told)
