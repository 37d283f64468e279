"""Parsing the input of Claude Code's status line, whatever it contains."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.claude.hooks import read_status_line
from brimline.agents.hook_adapter import StatusInput
from brimline.context.client_report import MissCause, PromptCache, Quota, Quotas, SpendLimit
from brimline.errors import MalformedJson

Json = dict[str, Any]

COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def body(usage: Any = None, size: Any = 200_000, percent: Any = None, **more: Any) -> bytes:
    context = {"current_usage": usage, "context_window_size": size, "used_percentage": percent}
    fields = {"session_id": "s", "cwd": "/project", "version": "2.1.325", "context_window": context}
    return json.dumps({**fields, **more}).encode()


def usage_of(*counts: Any, **more: Any) -> dict[str, Any]:
    return {"output_tokens": 77, **dict(zip(COUNTS, counts, strict=True)), **more}


def sent_tokens(status: StatusInput) -> int | None:
    usage = status.context_window.current_usage
    return None if usage is None else sum(getattr(usage, name) for name in COUNTS)


CALL = usage_of(10, 80_000, 9_990)
NO_COUNT, NO_SIZE = "client's usage is invalid", "client's window is invalid"
SOUND: dict[str, tuple[bytes, int | None]] = {
    "a call": (body(CALL, percent=45), 90_000),
    "rounded": (body(CALL, percent=45.4), 90_000),
    "before the first call": (body(), None),
    "after a compaction": (body(usage_of(0, 0, 0), percent=0), 0),
    "little": (body(usage_of(900, 0, 0), percent=0), 900),
    "more than a window, and pinned": (body(usage_of(0, 300_000, 0), percent=100), 300_000),
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
    "usage of an epoch time": (body(usage_of(1_763_164_800, 0, 0), percent=45), None, NO_COUNT),
    "negative usage": (body(usage_of(-1, 50, 0)), None, NO_COUNT),
    "usage of text": (body(usage_of("9", 0, 0)), None, NO_COUNT),
    "usage of parts": (body(usage_of(1.5, 0, 0)), None, NO_COUNT),
    "usage that is no number": (body(usage_of(float("nan"), 0, 0)), None, NO_COUNT),
    "a count is missing": (body({"input_tokens": 9}), None, NO_COUNT),
    "a list of usage": (body([1, 2, 3]), None, NO_COUNT),
    "no context at all": (body(context_window="full"), None, NO_COUNT),
    "a window of 0": (body(CALL, 0), 90_000, NO_SIZE),
    "a window of text": (body(CALL, "200000"), 90_000, NO_SIZE),
    "a window of an epoch time": (body(CALL, 1_763_164_800), 90_000, NO_SIZE),
    "all of it": (body(usage_of("9", 0, 0), -1, float("nan")), None, NO_COUNT),
}  # fmt: skip


@pytest.mark.parametrize(("data", "holds"), SOUND.values(), ids=SOUND)
def test_valid_input_is_read_unchanged(data: bytes, holds: int | None) -> None:
    status = read_status_line(data)
    assert (sent_tokens(status.input), status.reason) == (holds, None)


@pytest.mark.parametrize(("data", "holds", "wrong"), WRONG.values(), ids=WRONG)
def test_invalid_field_is_dropped_and_named(data: bytes, holds: int | None, wrong: str) -> None:
    status = read_status_line(data)
    assert (sent_tokens(status.input), status.reason) == (holds, wrong)
    assert (status.input.session_id, status.input.cwd) == ("s", "/project")


@pytest.mark.parametrize(
    ("data", "called"),
    [
        (body(), False),
        (body(cost={"total_cost_usd": 0}, context_window={"total_input_tokens": 0}), False),
        (body(usage_of(0, 0, 0)), True),
        (body(CALL), True),
        (body(cost={"total_cost_usd": 0.25}), True),
        (body(context_window={"total_input_tokens": 10**9}), True),
        (body(context_window={"total_output_tokens": 9}), True),
        (body(context_window={"total_output_tokens": "9"}), False),
    ],
)
def test_call_is_known_from_usage_cost_or_totals(data: bytes, called: bool) -> None:
    status = read_status_line(data)
    assert (status.called, status.reason) == (called, None)


@pytest.mark.parametrize("dollars", [-1, float("nan"), float("inf"), "1.25", [], 1e300])
def test_invalid_cost_is_dropped(dollars: Any) -> None:
    status = read_status_line(body(CALL, percent=45, cost={"total_cost_usd": dollars}))
    assert (status.input.cost.total_cost_usd, status.reason) == (None, None)
    assert sent_tokens(status.input) == 90_000


def test_lone_surrogate_is_no_model_id() -> None:
    status = read_status_line(body(CALL, model={"id": "\ud800", "display_name": "Sonnet"}))
    assert (status.input.model.id, status.input.model.display_name) == (None, "Sonnet")


RESETS_AT = 1_790_003_600
LIMITS = {
    "five_hour": {"used_percentage": 62, "resets_at": RESETS_AT},
    "seven_day": {"used_percentage": 44.5, "resets_at": RESETS_AT},
    "spend_limit": {
        "used_percentage": 108,
        "resets_at": RESETS_AT,
        "used_usd": 216.0,
        "limit_usd": 200,
        "period": "monthly",
    },
}
# As 2.1.325 writes it.
PROMPT_CACHE: dict[str, Any] = {
    "warm": True,
    "caching_observed": True,
    "ttl": "1h",
    "expires_at": RESETS_AT,
    "requests": 4,
    "misses": 1,
    "expected_rebuilds": 0,
    "hit_ratio": 0.75,
    "cache_write_tokens": 52_000,
    "miss_recache_tokens": 26_000,
    "last_miss_at": RESETS_AT - 60,
    "last_miss_cause": {"causes": ["tools_changed"], "tools_added": 1},
    "miss_causes": {"tools_changed": 1},
    "recache_tokens_if_cold": 27_000,
}


def test_quotas_and_cache_are_read() -> None:
    status = read_status_line(body(CALL, rate_limits=LIMITS, prompt_cache=PROMPT_CACHE)).input
    limits, cache = status.rate_limits, status.prompt_cache
    assert limits.five_hour == Quota(62.0, RESETS_AT)
    assert limits.seven_day == Quota(44.5, RESETS_AT)
    assert limits.spend_limit == SpendLimit(108.0, RESETS_AT, 216.0, 200.0, "monthly")
    assert (cache.warm, cache.ttl, cache.expires_at) == (True, "1h", RESETS_AT)
    assert cache.last_miss_cause == MissCause(("tools_changed",))
    assert {**msgspec.to_builtins(cache), "last_miss_cause": None} == {
        **PROMPT_CACHE,
        "last_miss_cause": None,
        "origin": "reported",
        "at": 0.0,
    }


def test_client_without_subscription_or_cache_reports_neither() -> None:
    absent: list[Json] = [{}, {"rate_limits": None, "prompt_cache": None}, {"rate_limits": {}}]
    for more in absent:
        status = read_status_line(body(CALL, percent=45, **more))
        assert (status.input.rate_limits, status.reason) == (Quotas(), None)
        assert status.input.prompt_cache == PromptCache()


def test_null_fields_of_a_cache_are_unknown() -> None:
    nulls = dict.fromkeys(["expires_at", "hit_ratio", "last_miss_at", "last_miss_cause"])
    cache = read_status_line(body(CALL, prompt_cache={**PROMPT_CACHE, **nulls})).input.prompt_cache
    assert (cache.expires_at, cache.last_miss_cause, cache.requests) == (None, None, 4)


IMPOSSIBLE: list[Any] = [-1, float("nan"), float("inf"), "62", True, [], {}, 1e300, 10**300]


@pytest.mark.parametrize("value", [*IMPOSSIBLE, None, RESETS_AT], ids=str)
def test_quota_with_an_impossible_percentage_is_dropped_alone(value: Any) -> None:
    limits = {**LIMITS, "five_hour": {"used_percentage": value, "resets_at": RESETS_AT}}
    status = read_status_line(body(CALL, percent=45, rate_limits=limits))
    assert list(status.input.rate_limits.known) == ["7d", "spend"]
    assert (sent_tokens(status.input), status.reason) == (90_000, None)


@pytest.mark.parametrize("value", [*IMPOSSIBLE, None, 0, 1000 * RESETS_AT], ids=str)
def test_quota_without_the_time_of_its_reset_is_dropped(value: Any) -> None:
    limits = {**LIMITS, "seven_day": {"used_percentage": 5, "resets_at": value}}
    status = read_status_line(body(CALL, percent=45, rate_limits=limits))
    assert list(status.input.rate_limits.known) == ["5h", "spend"]


@pytest.mark.parametrize("field", [*PROMPT_CACHE, "at", "origin"])
@pytest.mark.parametrize("value", ["\ud800", [[]], {"a": {}}, -1, float("nan")], ids=repr)
def test_invalid_field_of_a_cache_is_dropped_alone(field: str, value: Any) -> None:
    data = body(CALL, percent=45, prompt_cache={**PROMPT_CACHE, field: value})
    status = read_status_line(data)
    cache = msgspec.to_builtins(status.input.prompt_cache)
    unchanged = {"requests", "warm", "ttl"} - {field}
    assert {name: cache[name] for name in unchanged} == {
        name: PROMPT_CACHE[name] for name in unchanged
    }
    no_cause = msgspec.to_builtins(MissCause())
    assert cache[field] in (None, 0.0, "reported", no_cause)
    assert (sent_tokens(status.input), status.reason) == (90_000, None)


@pytest.mark.parametrize(
    "causes", [["x" * 41], ["\u001b[31m"], ["a b"], [""], ["a\n"], ["ok"] * 17, "ok", [5]]
)
def test_causes_that_are_no_short_words_are_dropped(causes: Any) -> None:
    cache = {**PROMPT_CACHE, "last_miss_cause": {"causes": causes}}
    status = read_status_line(body(CALL, prompt_cache=cache))
    assert status.input.prompt_cache.last_miss_cause is None


@pytest.mark.parametrize(
    "data",
    [b"", b"garbage", b"[1]", b"3", b"NaN", b'{"session_id":5}', b"{}", b"[" * 100_000, b"\xff",
     b'{"session_id":"\\ud800"}', b'{"a":' + b"9" * 5_000 + b"}"],
)  # fmt: skip
def test_input_without_a_session_is_rejected(data: bytes) -> None:
    with pytest.raises(MalformedJson):
        read_status_line(data)


@given(anything, anything, anything, anything)
def test_any_figures_give_valid_counts_or_none(
    usage: Any, size: Any, percent: Any, more: Any
) -> None:
    fields = dict.fromkeys(["model", "cost", "rate_limits", "prompt_cache"], more)
    status = read_status_line(body(usage, size, percent, **fields))
    assert status.input.session_id == "s"
    assert sent_tokens(status.input) is None
    window = status.input.context_window.context_window_size
    assert window is None or (type(window) is int and 0 < window < 10**8)
    msgspec.json.encode(status)


@given(st.binary() | anything.map(lambda value: json.dumps(value).encode()))
def test_invalid_input_raises_only_a_decode_error(data: bytes) -> None:
    with pytest.raises(MalformedJson):
        read_status_line(data)
