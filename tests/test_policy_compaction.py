"""The compaction policy: by what is held or what it costs; never too late, never for ever."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidPolicy
from brimline.policy import Basis, CompactionPolicy, Decision
from brimline.tracker import Reading, ReadingState
from brimline.usage import Usage, estimate
from brimline.windows import Window


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def reading(
    usage: Usage | None = None, window: int | None = 200_000, state: ReadingState = "measured"
) -> Reading:
    """A reading with this usage as its last call's."""
    return Reading(
        sent=usage.sent if usage else None,
        held=usage.held if usage else None,
        effective=usage.effective if usage else None,
        window=None if window is None else Window(window, "set", "for the test"),
        limit=None,
        percent=None,
        percent_raw=None,
        percent_of_limit=None,
        client_shows=None,
        source="SDK",
        at=None,
        state=state,
        cycle=0,
    )


def holding(tokens: int, cached: int = 0, window: int | None = 200_000) -> Reading:
    """A reading that holds so much, so much of it read from the cache."""
    return reading(Usage(tokens - cached, cached, 0, 0), window)


# The worked examples of the design.


@pytest.mark.parametrize(
    ("tokens", "cached", "effective", "compact"),
    [(95_000, 0, 95_000, True), (95_000, 80_000, 23_000, False), (50_000, 0, 50_000, False)],
)
def test_worked_examples(tokens: int, cached: int, effective: int, compact: bool) -> None:
    """95k of 100k is over 90k; with 80k of it from the cache it is 23k, and is not."""
    policy = CompactionPolicy(at=0.9, basis="effective")
    decision = policy.decide(holding(tokens, cached, window=100_000))
    assert (decision.compact, decision.tokens, decision.threshold) == (compact, effective, 90_000)


def test_hundred_thousand_with_eighty_cached() -> None:
    """100k with 80k cached is 28k of cost."""
    decision = CompactionPolicy(basis="effective").decide(holding(100_000, 80_000))
    assert decision == Decision(False, "effective 28,000 is below 180,000", 28_000, 180_000)


def test_the_cache_is_no_room() -> None:
    """By what is held the same 95k is over, cached or not."""
    assert CompactionPolicy().should_compact(holding(95_000, 80_000, window=100_000))


# The threshold.


@pytest.mark.parametrize(
    ("at", "tokens", "compact"),
    [
        (0.9, 179_999, False),
        (0.9, 180_000, True),
        (0.5, 99_999, False),
        (0.5, 100_000, True),
        (150_000, 149_999, False),
        (150_000, 150_000, True),
    ],
)
def test_threshold(at: float, tokens: int, compact: bool) -> None:
    """A float is a share of the window, an integer is tokens; to reach it is enough."""
    decision = CompactionPolicy(at).decide(holding(tokens))
    assert (decision.compact, decision.tokens) == (compact, tokens)
    assert "has reached" in decision.why or "is below" in decision.why


def test_the_reply_is_held_too() -> None:
    """What counts is what the next call starts with: the last reply with it."""
    assert CompactionPolicy().should_compact(reading(Usage(1_000, 170_000, 0, 9_000)))


def test_tokens_need_no_window() -> None:
    """A threshold in tokens holds where nobody knows the window."""
    policy = CompactionPolicy(at=50_000)
    assert policy.should_compact(holding(50_000, window=None))
    assert not policy.should_compact(holding(49_999, window=None))


# What is about to be sent.


def test_pending_is_seen_before_the_call() -> None:
    """The larger of last usage and the estimate of the whole prompt counts."""
    policy = CompactionPolicy()
    assert policy.decide(holding(20_000), pending=185_000).tokens == 185_000
    assert policy.decide(holding(150_000), pending=20_000).tokens == 150_000
    assert policy.should_compact(holding(20_000), pending=185_000)


def test_added_comes_on_top() -> None:
    """A tool result is added to what is held, as tokens or as a text."""
    policy, text = CompactionPolicy(), "word " * 70_000
    assert policy.decide(holding(100_000), added=79_999).tokens == 179_999
    assert policy.should_compact(holding(100_000), added=80_000)
    assert policy.decide(holding(10_000), added=text).tokens == 10_000 + estimate(text)
    assert policy.decide(holding(10_000), pending=text).tokens == estimate(text)


def test_added_and_pending() -> None:
    """With both the larger prompt counts."""
    policy = CompactionPolicy()
    assert policy.decide(holding(50_000), pending=60_000, added=5_000).tokens == 60_000
    assert policy.decide(holding(50_000), pending=60_000, added=15_000).tokens == 65_000


def test_what_is_added_is_not_cached() -> None:
    """By cost, what is new counts in full: added, or pending beyond what is held."""
    policy, before = CompactionPolicy(basis="effective"), holding(100_000, 80_000)
    assert policy.decide(before, added=30_000).tokens == 58_000
    assert policy.decide(before, pending=130_000).tokens == 58_000
    assert policy.decide(before, pending=90_000).tokens == 28_000


# The window.


def test_effective_never_passes_the_window() -> None:
    """However cheap the prompt is, what leaves no room for a reply is compacted before."""
    policy = CompactionPolicy(basis="effective")
    assert not policy.should_compact(holding(192_000, 190_000))
    decision = policy.decide(holding(192_001, 190_000))
    why = "192,001 leave less than 8,000 for the reply in a window of 200,000"
    assert decision == Decision(True, why, 192_001, 192_000)
    assert policy.should_compact(holding(150_000, 149_000), added=50_000)
    assert policy.should_compact(holding(150_000, 149_000), pending=199_000)


def test_tokens_beyond_the_window() -> None:
    """A threshold in tokens that is larger than the window does not let it be passed."""
    assert CompactionPolicy(at=500_000).should_compact(holding(199_000))


@pytest.mark.parametrize(
    ("reply", "window", "most"),
    [
        (None, 200_000, 192_000),
        (None, 1_000_000, 968_000),
        (0, 200_000, 200_000),
        (16_384, 200_000, 183_616),
        (64_000, 200_000, 168_000),
        (8_192, 8_192, 4_096),
    ],
)
def test_room_for_the_reply(reply: int | None, window: int, most: int) -> None:
    """The caller's own room, else a twenty-fifth; at most 32,000, and half of the window."""
    policy = CompactionPolicy(at=1_000_000, reply=reply)
    assert not policy.should_compact(holding(most, window=window))
    assert policy.should_compact(holding(most + 1, window=window))


# What is unknown.


def test_unknown_reading() -> None:
    """Before a reply and after a compaction there is nothing to decide by, and it says so."""
    decision = CompactionPolicy().decide(reading(), added=500_000)
    assert not decision.compact
    assert (decision.tokens, decision.threshold) == (None, 180_000)
    assert "unknown until the next reply" in decision.why


def test_unknown_window() -> None:
    """A share of an unknown window is unknown, and it says so."""
    decision = CompactionPolicy().decide(holding(5_000_000, window=None))
    assert not decision.compact
    assert (decision.tokens, decision.threshold) == (5_000_000, None)
    assert "the window is unknown" in decision.why


def test_pending_is_enough() -> None:
    """What is about to be sent can be decided on before anything was measured."""
    for basis in ("held", "effective"):
        policy = CompactionPolicy(basis=basis)
        assert policy.should_compact(reading(), pending=180_000)
        assert policy.should_compact(reading(), pending=250_000)
        assert not policy.should_compact(reading(), pending=179_999)
    assert not CompactionPolicy().should_compact(reading(window=None), pending=180_000)


def test_cost_alone_is_unknown() -> None:
    """A reading that does not tell the cost still tells when the window is full."""
    policy = CompactionPolicy(basis="effective")
    for held, compact in ((185_000, False), (195_000, True)):
        told = Reading(
            held, held, None, Window(200_000, "set", ""), None, None, None, None, None, "SDK",
            None, "measured", 0,
        )  # fmt: skip
        assert policy.should_compact(told) is compact


def test_not_while_compacting() -> None:
    """A compaction that is under way is not begun again, not even at the window."""
    full = reading(Usage(199_999, 0, 0, 0), state="compacting")
    assert CompactionPolicy().decide(full).why == "a compaction is under way"
    assert not CompactionPolicy().should_compact(full)


# Not too soon, not for ever.


def test_cool_down() -> None:
    """Within the cool-down there is no second compaction."""
    clock = Clock()
    policy = CompactionPolicy(cooldown=60, clock=clock)
    assert policy.should_compact(holding(181_000))
    policy.compacted()
    clock.now += 59
    decision = policy.decide(holding(181_000))
    assert not decision.compact
    assert decision.why == "the last compaction was 59 s ago, the cool-down is 60 s"
    clock.now += 1
    assert policy.should_compact(holding(181_000))


def test_no_cool_down_at_the_window() -> None:
    """What would not fit is compacted, however fresh the last one is."""
    policy = CompactionPolicy(cooldown=3_600, clock=Clock())
    policy.compacted()
    assert not policy.should_compact(holding(181_000))
    assert policy.should_compact(holding(199_000))


@pytest.mark.parametrize("tokens", [181_000, 199_000])
def test_compactions_that_do_not_help(tokens: int) -> None:
    """After three in a row it refuses and says so, also at the window, until one has helped."""
    policy = CompactionPolicy(in_a_row=3)
    for _ in range(3):
        assert policy.should_compact(holding(tokens))
        policy.compacted()
    decision = policy.decide(holding(tokens))
    assert not decision.compact
    assert decision.why == "compaction had no effect, 3 in a row: another would not help"
    assert not policy.should_compact(holding(20_000))
    assert policy.should_compact(holding(tokens))


def test_a_result_that_never_fits() -> None:
    """One tool result too large for the window is not compacted for again and again."""
    policy = CompactionPolicy(in_a_row=2)
    for _ in range(2):
        assert policy.should_compact(holding(10_000), added=250_000)
        policy.compacted()
    assert not policy.should_compact(holding(10_000), added=250_000)


def test_an_estimate_is_no_proof() -> None:
    """That a compaction helped is told by a reading, not by what the caller expects."""
    policy = CompactionPolicy(in_a_row=1)
    policy.compacted()
    assert not policy.should_compact(reading(), pending=10_000)
    assert not policy.should_compact(holding(185_000))
    assert not policy.should_compact(holding(10_000))
    assert policy.should_compact(holding(185_000))


# Bad arguments.

BAD: list[tuple[str, Any]] = [
    ("at", 0),
    ("at", 1),
    ("at", -5),
    ("at", 0.0),
    ("at", 1.01),
    ("at", 90.0),
    ("at", math.nan),
    ("at", math.inf),
    ("at", "0.9"),
    ("at", None),
    ("at", True),
    ("basis", "sent"),
    ("basis", None),
    ("basis", []),
    ("cooldown", -1),
    ("cooldown", math.nan),
    ("cooldown", math.inf),
    ("cooldown", 10**400),
    ("cooldown", "60"),
    ("cooldown", None),
    ("cooldown", True),
    ("in_a_row", 0),
    ("in_a_row", 2.0),
    ("in_a_row", None),
    ("in_a_row", True),
    ("reply", -1),
    ("reply", 0.5),
    ("reply", "8k"),
    ("reply", False),
]


@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda value: repr(value)[:12])
def test_policy_that_cannot_be(field: str, value: Any) -> None:
    """An argument that could never hold is refused by name."""
    with pytest.raises(InvalidPolicy) as caught:
        CompactionPolicy(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("value", [-1, 1.5, math.nan, True, b"text", ["text"]], ids=repr)
@pytest.mark.parametrize("field", ["pending", "added"])
def test_estimate_that_cannot_be(field: str, value: Any) -> None:
    """What is about to be sent is a text or a count, and a refusal changes nothing."""
    policy = CompactionPolicy()
    with pytest.raises(InvalidPolicy) as caught:
        policy.decide(holding(1_000), **{field: value})
    assert caught.value.field == field


# Any policy, any reading.

COUNTS = st.integers(0, 300_000)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS)
TOLD = st.none() | COUNTS | st.text(max_size=20)
BASES: st.SearchStrategy[Basis] = st.sampled_from(["held", "effective"])
ATS = st.floats(0.01, 1.0) | st.integers(2, 400_000)


@given(ATS, BASES, USAGES, st.integers(1, 400_000), TOLD, TOLD)
def test_the_window_is_never_passed(
    at: float,
    basis: Basis,
    usage: Usage,
    window: int,
    pending: str | int | None,
    added: str | int | None,
) -> None:
    """What a fresh policy lets through fits into the window, whatever it goes by."""
    policy = CompactionPolicy(at, basis)
    if not policy.should_compact(reading(usage, window), pending, added):
        assert usage.held + (_count(added) or 0) <= window
        assert (_count(pending) or 0) <= window


def _count(told: str | int | None) -> int | None:
    return estimate(told) if isinstance(told, str) else told


@given(ATS, BASES, USAGES, COUNTS, COUNTS, st.sampled_from(["pending", "added"]))
def test_more_is_no_reason_to_wait(
    at: float, basis: Basis, usage: Usage, one: int, other: int, field: str
) -> None:
    """What is to be compacted before is so with more to send, too."""
    told: list[dict[str, Any]] = [{field: min(one, other)}, {field: max(one, other)}]
    less, more = (CompactionPolicy(at, basis).should_compact(reading(usage), **t) for t in told)
    assert more or not less


@given(ATS, BASES, USAGES | st.none(), TOLD)
def test_deciding_is_not_doing(
    at: float, basis: Basis, usage: Usage | None, pending: str | int | None
) -> None:
    """To ask twice gives the same answer twice: only a compaction counts."""
    policy = CompactionPolicy(at, basis, cooldown=5.0, in_a_row=1)
    first = policy.decide(reading(usage), pending)
    assert policy.decide(reading(usage), pending) == first


@given(
    st.integers(1, 4),
    st.floats(0, 100),
    st.lists(st.tuples(st.none() | COUNTS, COUNTS | st.none(), st.floats(0, 50))),
)
def test_never_for_ever(
    in_a_row: int, cooldown: float, steps: list[tuple[int | None, int | None, float]]
) -> None:
    """Between two readings below the threshold there are so many compactions at most."""
    clock = Clock()
    policy = CompactionPolicy(cooldown=cooldown, in_a_row=in_a_row, clock=clock)
    row = 0
    for held, added, passed in steps:
        clock.now += passed
        told = reading() if held is None else holding(held)
        decision = policy.decide(told, added=added)
        if decision.compact:
            policy.compacted()
            row += 1
        elif held is not None and held + (added or 0) < 180_000:
            row = 0
        assert row <= in_a_row
