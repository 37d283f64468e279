"""The compaction policy by context or by cost: never too late, never forever."""

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.policy.compaction import Basis, CompactionPolicy, Decision
from brimline.context.token_estimate import estimate
from brimline.context.tracker import Reading, ReadingState
from brimline.context.usage import IMAGE_TOKENS, Usage
from brimline.context.window import Window
from brimline.errors import InvalidPolicy, InvalidState


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
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
    """A reading that holds this many tokens, some of them read from the cache."""
    return reading(Usage(tokens - cached, cached, 0, 0), window)


# The worked examples of the design.


@pytest.mark.parametrize(
    ("tokens", "cached", "effective", "compact"),
    [(95_000, 0, 95_000, True), (95_000, 80_000, 23_000, False), (50_000, 0, 50_000, False)],
)
def test_worked_examples(tokens: int, cached: int, effective: int, compact: bool) -> None:
    """95k of 100k is over 90k; with 80k of it from the cache the cost is 23k, and is not."""
    policy = CompactionPolicy(at=0.9, basis="effective")
    decision = policy.decide(holding(tokens, cached, window=100_000))
    assert (decision.compact, decision.tokens, decision.threshold) == (compact, effective, 90_000)


def test_cost_of_100k_with_80k_cached_is_28k() -> None:
    decision = CompactionPolicy(basis="effective").decide(holding(100_000, 80_000))
    assert decision == Decision(False, "effective 28,000 is not above 180,000", 28_000, 180_000)


def test_cached_tokens_count_in_the_context() -> None:
    assert CompactionPolicy().should_compact(holding(95_000, 80_000, window=100_000))


# The threshold.


@pytest.mark.parametrize(
    ("at", "tokens", "compact"),
    [
        (0.9, 180_000, False),
        (0.9, 180_001, True),
        (0.5, 100_000, False),
        (0.5, 100_001, True),
        (1.0, 192_000, False),
        (150_000, 150_000, False),
        (150_000, 150_001, True),
    ],
)
def test_float_threshold_is_a_share_and_integer_is_tokens(
    at: float, tokens: int, compact: bool
) -> None:
    decision = CompactionPolicy(at).decide(holding(tokens))
    assert (decision.compact, decision.tokens) == (compact, tokens)
    assert ("is not above" in decision.why) is not compact


def test_last_reply_counts_in_the_context() -> None:
    assert CompactionPolicy().should_compact(reading(Usage(1_000, 170_000, 0, 9_001)))


def test_threshold_in_tokens_needs_no_window() -> None:
    policy = CompactionPolicy(at=50_000)
    assert policy.should_compact(holding(50_001, window=None))
    assert not policy.should_compact(holding(50_000, window=None))


# What is about to be sent.


def test_larger_of_last_usage_and_pending_prompt_counts() -> None:
    policy = CompactionPolicy()
    assert policy.decide(holding(20_000), pending=185_000).tokens == 185_000
    assert policy.decide(holding(150_000), pending=20_000).tokens == 150_000
    assert policy.should_compact(holding(20_000), pending=185_000)


def test_added_tokens_or_text_count_on_top_of_the_context() -> None:
    policy, text = CompactionPolicy(), "word " * 70_000
    assert policy.decide(holding(100_000), added=79_999).tokens == 179_999
    assert policy.should_compact(holding(100_000), added=80_001)
    assert policy.decide(holding(10_000), added=text).tokens == 10_000 + estimate(text)
    assert policy.decide(holding(10_000), pending=text).tokens == estimate(text)


def test_pending_messages_are_estimated_by_their_texts() -> None:
    policy, text = CompactionPolicy(), "word " * 7_000
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 4_000_000}}
    messages = [
        {"role": "user", "content": text},
        {"role": "user", "content": [image, {"type": "text", "text": text}]},
    ]
    tokens = policy.decide(reading(), pending=messages).tokens
    assert tokens is not None
    assert 2 * estimate(text) + IMAGE_TOKENS <= tokens <= 2 * estimate(text) + IMAGE_TOKENS + 20


def test_pending_messages_may_be_objects_of_an_sdk() -> None:
    picture = {"image_url": {"url": f"data:image/png;base64,{'A' * 90_000}"}, "detail": 1}
    message = SimpleNamespace(role="user", content=["word " * 700, picture])
    tokens = CompactionPolicy().decide(reading(), pending=[message]).tokens
    assert tokens == estimate("user") + estimate("word " * 700) + IMAGE_TOKENS + estimate("1")


@pytest.mark.parametrize("beginning", ["data: the figures follow. ", "Write ;base64, before it. "])
def test_text_that_only_mentions_an_image_counts_in_full(beginning: str) -> None:
    text = beginning + "word " * 10_000
    assert CompactionPolicy().decide(reading(), pending=[text]).tokens == estimate(text)


def test_policy_continues_from_its_stored_state() -> None:
    now = [100.0]
    policy = CompactionPolicy(at=150_000, cooldown=60, in_a_row=2, clock=lambda: now[0])
    policy.compacted()
    now[0] += 20
    restored = CompactionPolicy.from_state(policy.state(), clock=lambda: 5_000.0)
    assert restored.rule == policy.rule
    assert " was 20 s ago" in restored.decide(holding(160_000)).why
    restored.compacted()
    assert "no effect, 2 in a row" in restored.decide(holding(160_000)).why


@pytest.mark.parametrize(("stored_s_ago", "shown"), [(30, 50), (-3_600, 20)])
def test_cool_down_goes_on_while_a_policy_is_stored(stored_s_ago: int, shown: int) -> None:
    """A clock that was set back does not make the cool-down longer."""
    now = [100.0]
    policy = CompactionPolicy(at=150_000, cooldown=60, clock=lambda: now[0])
    policy.compacted()
    now[0] += 20
    state = json.loads(policy.state())
    state["saved_at"] -= stored_s_ago
    restored = CompactionPolicy.from_state(json.dumps(state), clock=lambda: 5_000.0)
    assert f" was {shown} s ago" in restored.decide(holding(160_000)).why


def test_compaction_that_helped_starts_the_count_again() -> None:
    policy = CompactionPolicy(at=150_000, in_a_row=1)
    policy.compacted()
    assert not policy.should_compact(holding(20_000))
    policy.compacted()
    assert not policy.should_compact(holding(160_000))


def test_policy_without_compactions_is_stored_too() -> None:
    assert CompactionPolicy.from_state(CompactionPolicy().state()).should_compact(holding(190_000))


@pytest.mark.parametrize("state", [b"{}", "no JSON", b"\xff"])
def test_other_state_is_refused(state: Any) -> None:
    with pytest.raises(InvalidState, match="not a policy state"):
        CompactionPolicy.from_state(state)


def test_larger_of_added_and_pending_counts() -> None:
    policy = CompactionPolicy()
    assert policy.decide(holding(50_000), pending=60_000, added=5_000).tokens == 60_000
    assert policy.decide(holding(50_000), pending=60_000, added=15_000).tokens == 65_000


def test_new_tokens_count_in_full_by_cost() -> None:
    policy, before = CompactionPolicy(basis="effective"), holding(100_000, 80_000)
    assert policy.decide(before, added=30_000).tokens == 58_000
    assert policy.decide(before, pending=130_000).tokens == 58_000
    assert policy.decide(before, pending=90_000).tokens == 28_000


# The window.


def test_cheap_prompt_without_room_for_a_reply_is_compacted() -> None:
    policy = CompactionPolicy(basis="effective")
    assert not policy.should_compact(holding(192_000, 190_000))
    decision = policy.decide(holding(192_001, 190_000))
    why = "192,001 leave less than 8,000 for the reply in a window of 200,000"
    assert decision == Decision(True, why, 192_001, 192_000)
    assert policy.should_compact(holding(150_000, 149_000), added=50_000)
    assert policy.should_compact(holding(150_000, 149_000), pending=199_000)


def test_threshold_beyond_the_window_does_not_exceed_it() -> None:
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
def test_room_for_the_reply_is_set_or_a_bounded_share(
    reply: int | None, window: int, most: int
) -> None:
    policy = CompactionPolicy(at=1_000_000, reply=reply)
    assert not policy.should_compact(holding(most, window=window))
    assert policy.should_compact(holding(most + 1, window=window))


# What is unknown.


def test_unknown_reading_gives_no_decision_and_a_reason() -> None:
    decision = CompactionPolicy().decide(reading(), added=500_000)
    assert not decision.compact
    assert (decision.tokens, decision.threshold) == (None, 180_000)
    assert "unknown until the next reply" in decision.why


def test_share_of_an_unknown_window_gives_no_decision_and_a_reason() -> None:
    decision = CompactionPolicy().decide(holding(5_000_000, window=None))
    assert not decision.compact
    assert (decision.tokens, decision.threshold) == (5_000_000, None)
    assert "the window is unknown" in decision.why


def test_policy_without_a_window_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    policy = CompactionPolicy()
    for tokens in (190_000, 199_000):
        assert not policy.should_compact(holding(tokens, window=None))
    (message,) = caplog.messages
    assert message.startswith("cannot decide whether to compact 190000 tokens: the window is unk")


def test_pending_prompt_alone_gives_a_decision() -> None:
    for basis in ("held", "effective"):
        policy = CompactionPolicy(basis=basis)
        assert policy.should_compact(reading(), pending=180_001)
        assert policy.should_compact(reading(), pending=250_000)
        assert not policy.should_compact(reading(), pending=180_000)
    assert not CompactionPolicy().should_compact(reading(window=None), pending=180_000)


def test_unknown_cost_still_compacts_at_the_window() -> None:
    policy = CompactionPolicy(basis="effective")
    for tokens, compact in ((185_000, False), (195_000, True)):
        partial_reading = Reading(
            tokens, tokens, None, Window(200_000, "set", ""), None, None, None, None, None, "SDK",
            None, "measured", 0,
        )  # fmt: skip
        assert policy.should_compact(partial_reading) is compact


def test_no_compaction_during_a_compaction() -> None:
    full = reading(Usage(199_999, 0, 0, 0), state="compacting")
    assert CompactionPolicy().decide(full).why == "a compaction is under way"
    assert not CompactionPolicy().should_compact(full)


# Not too soon, not for ever.


def test_no_second_compaction_within_the_cool_down() -> None:
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


def test_cool_down_does_not_apply_at_the_window() -> None:
    policy = CompactionPolicy(cooldown=3_600, clock=Clock())
    policy.compacted()
    assert not policy.should_compact(holding(181_000))
    assert policy.should_compact(holding(199_000))


@pytest.mark.parametrize("tokens", [181_000, 199_000])
def test_three_useless_compactions_stop_the_policy_until_one_helps(tokens: int) -> None:
    policy = CompactionPolicy(in_a_row=3)
    for _ in range(3):
        assert policy.should_compact(holding(tokens))
        policy.compacted()
    decision = policy.decide(holding(tokens))
    assert not decision.compact
    assert decision.why == "compaction had no effect, 3 in a row: another would not help"
    assert not policy.should_compact(holding(20_000))
    assert policy.should_compact(holding(tokens))


def test_result_too_large_for_the_window_is_not_compacted_for() -> None:
    decision = CompactionPolicy().decide(holding(10_000), added=250_000)
    assert (decision.compact, decision.too_large) == (False, True)
    assert "250,000 more do not fit into a window of 200,000: make them smaller" in decision.why


def test_result_that_does_not_fit_beside_what_a_compaction_left_is_too_large() -> None:
    policy = CompactionPolicy()
    assert policy.decide(holding(150_000), added=150_000).compact
    policy.compacted()
    assert policy.decide(reading(), added=150_000).too_large is False
    decision = policy.decide(holding(60_000), added=150_000)
    assert (decision.compact, decision.too_large) == (False, True)
    assert "beside the 60,000 that a compaction left" in decision.why
    again = CompactionPolicy.from_state(policy.state())
    assert again.decide(holding(61_000), added=150_000) == decision
    assert not policy.decide(holding(60_000), added=100_000).too_large


def test_counter_counts_the_texts_instead_of_the_estimate() -> None:
    policy = CompactionPolicy(counter=len)
    decision = policy.decide(holding(10_000), added=[{"content": "x" * 700}, {"content": 1}])
    assert decision.tokens == 10_701
    again = CompactionPolicy.from_state(policy.state(), counter=len)
    assert again.decide(holding(10_000), added="x" * 700).tokens == 10_700


TEXT = "word " * 1_000


def estimated(policy: CompactionPolicy, held: int = 20_000) -> float:
    """What the policy takes the text for, as a multiple of the estimate."""
    tokens = policy.decide(holding(held), added=TEXT).tokens
    assert tokens is not None
    return (tokens - held) / estimate(TEXT)


def test_estimate_is_corrected_by_what_was_billed() -> None:
    policy = CompactionPolicy()
    assert estimated(policy) == 1.0
    billed = 20_000 + round(1.5 * estimate(TEXT))
    assert estimated(policy, billed) == pytest.approx(1.5, abs=0.01)
    again = CompactionPolicy.from_state(policy.state())
    assert estimated(again, billed) == pytest.approx(1.5, abs=0.01)
    lower = estimated(policy, billed + estimate(TEXT))
    assert 1.3 < lower < 1.45


@pytest.mark.parametrize("share", [0.5, 3.0], ids=["less", "more than the text was sent"])
def test_estimate_is_not_corrected_downwards_or_by_other_content(share: float) -> None:
    policy = CompactionPolicy()
    assert estimated(policy) == 1.0
    assert estimated(policy, 20_000 + round(share * estimate(TEXT))) == 1.0


def test_estimate_of_all_that_is_sent_is_corrected_after_a_compaction() -> None:
    policy = CompactionPolicy()
    policy.compacted()
    policy.decide(reading(), pending=TEXT)
    sent = round(1.4 * estimate(TEXT))
    assert estimated(policy, sent) == pytest.approx(1.4, abs=0.01)


def test_only_a_reading_proves_that_a_compaction_helped() -> None:
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
    ("counter", 5),
]


@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda value: repr(value)[:12])
def test_invalid_argument_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        CompactionPolicy(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("value", [-1, 1.5, math.nan, True, b"text", {"text"}], ids=repr)
@pytest.mark.parametrize("field", ["pending", "added"])
def test_invalid_estimate_is_refused_and_changes_nothing(field: str, value: Any) -> None:
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
def test_allowed_prompt_always_fits_the_window(
    at: float,
    basis: Basis,
    usage: Usage,
    window: int,
    pending: str | int | None,
    added: str | int | None,
) -> None:
    policy = CompactionPolicy(at, basis)
    decision = policy.decide(reading(usage, window), pending, added)
    if not decision.compact and not decision.too_large:
        assert usage.held + (_count(added) or 0) <= window
        assert (_count(pending) or 0) <= window


def _count(amount: str | int | None) -> int | None:
    return estimate(amount) if isinstance(amount, str) else amount


@given(ATS, BASES, USAGES, COUNTS, COUNTS, st.sampled_from(["pending", "added"]))
def test_more_to_send_never_avoids_a_compaction(
    at: float, basis: Basis, usage: Usage, first: int, second: int, field: str
) -> None:
    estimates: list[dict[str, Any]] = [{field: min(first, second)}, {field: max(first, second)}]
    less, more = (CompactionPolicy(at, basis).decide(reading(usage), **t) for t in estimates)
    assert more.compact or more.too_large or not less.compact


@given(ATS, BASES, USAGES | st.none(), TOLD)
def test_repeated_decision_is_the_same(
    at: float, basis: Basis, usage: Usage | None, pending: str | int | None
) -> None:
    policy = CompactionPolicy(at, basis, cooldown=5.0, in_a_row=1)
    first = policy.decide(reading(usage), pending)
    assert policy.decide(reading(usage), pending) == first


@given(
    st.integers(1, 4),
    st.floats(0, 100),
    st.lists(st.tuples(st.none() | COUNTS, COUNTS | st.none(), st.floats(0, 50))),
)
def test_number_of_compactions_above_the_threshold_is_bounded(
    in_a_row: int, cooldown: float, steps: list[tuple[int | None, int | None, float]]
) -> None:
    clock = Clock()
    policy = CompactionPolicy(cooldown=cooldown, in_a_row=in_a_row, clock=clock)
    row = 0
    for held, added, passed in steps:
        clock.now += passed
        current = reading() if held is None else holding(held)
        decision = policy.decide(current, added=added)
        if decision.compact:
            policy.compacted()
            row += 1
        elif held is not None and held + (added or 0) < 180_000:
            row = 0
        assert row <= in_a_row
