"""Cache misses: which calls are one, how many tokens, at what cost, and why."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.cache_misses import (
    CAUSES_OF_WORDS,
    MAX_APART_S,
    CacheMiss,
    MissFinder,
    compute_prompt_cache,
    find_misses,
    with_reported_causes,
)
from brimline.context.client_report import PromptCache, ReportedMiss
from brimline.context.events import (
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Edited,
    Rewound,
    SessionSeen,
    Trimmed,
    compaction_thread,
)
from brimline.context.prices import find_price
from brimline.context.tracker import CallHistory, Session, Thread, drop_old_calls, fold
from brimline.context.usage import Usage

CLAUDE, GPT, GEMINI = "claude-opus-4-6", "gpt-5.4", "gemini-2.5-pro"
START = 1_790_000_000.0
MILLION = 1_000_000

Tokens = tuple[int, int, int, int]  # input, cache read, cache write, output


def call(
    number: int,
    tokens: Tokens,
    idle: float = 10.0,
    model: str | None = CLAUDE,
    written_1h: int = 0,
    thread: str = "main",
) -> Call:
    """The call with a number; each starts `idle` seconds after the one before."""
    usage = Usage(*tokens, cache_write_1h=written_1h)
    at = START + number * idle
    return Call(at=at, id=f"c{number}", usage=usage, model=model, thread=thread)


def thread_of(events: Iterable[AnyEvent], name: str = "main") -> Thread:
    seen = SessionSeen(agent="claude", records_compactions=True)
    return fold(Session(), [seen, *events]).threads.get(name, Thread(name))


def misses(
    *calls: Tokens, idle: float = 10.0, model: str | None = CLAUDE, written_1h: int = 0
) -> list[CacheMiss]:
    events = [
        call(number, tokens, idle, model, min(written_1h, tokens[2]))
        for number, tokens in enumerate(calls, 1)
    ]
    return find_misses(thread_of(events))


def only(found: list[CacheMiss]) -> CacheMiss:
    assert len(found) == 1
    return found[0]


WARM = (10, 0, 50_000, 200)  # wrote 50,000 tokens, of which the next call can read all
HIT = (10, 50_000, 1_000, 300)
COLD = (10, 0, 52_000, 300)


def test_call_that_reads_what_the_one_before_wrote_is_no_miss() -> None:
    assert misses(WARM, HIT, (10, 51_000, 900, 100)) == []


def test_tokens_written_again_are_counted_with_place_and_time() -> None:
    miss = only(misses(WARM, HIT, (10, 20_000, 32_000, 100), (10, 52_000, 500, 100)))
    assert (miss.call, miss.number, miss.tokens) == ("c3", 3, 31_000)
    assert (miss.at, miss.idle_s) == (START + 30, 10)


def test_first_call_is_no_miss() -> None:
    assert misses(WARM) == []
    assert misses((60_000, 0, 0, 10), model=GPT) == []


def test_new_tokens_are_no_miss() -> None:
    """Only what was in the cache counts, however much a call adds."""
    assert misses(WARM, (90_000, 50_000, 80_000, 10)) == []


def test_small_rest_that_was_not_read_is_no_miss() -> None:
    assert misses(WARM, (10, 48_976, 2_000, 10)) == []
    assert only(misses(WARM, (10, 48_975, 2_000, 10))).tokens == 1_025


@pytest.mark.parametrize(
    ("model", "read", "tokens"),
    [(GPT, 48_052, None), (GPT, 48_051, 2_049), (GEMINI, 41_908, None), (GEMINI, 41_907, 8_193)],
)
def test_blocks_that_an_automatic_cache_did_not_read_are_no_miss(
    model: str, read: int, tokens: int | None
) -> None:
    """Such a cache reports no writes: all that was sent could be left, but for two blocks."""
    found = misses((20_000, 30_100, 0, 10), (51_000 - read, read, 0, 10), model=model)
    assert [miss.tokens for miss in found] == ([] if tokens is None else [tokens])


def test_provider_that_reports_no_cache_has_no_misses() -> None:
    assert misses(*[(50_000 + 100 * n, 0, 0, 10) for n in range(5)], model=GPT) == []


def test_automatic_cache_misses_once_it_was_seen_to_work() -> None:
    found = misses((50_000, 0, 0, 1), (400, 49_920, 0, 1), (41_000, 9_600, 0, 1), model=GPT)
    assert only(found).tokens == 50_320 - 9_600


def test_failed_call_is_passed_over() -> None:
    found = misses(WARM, (0, 0, 0, 0), HIT, (0, 0, 0, 0), (10, 0, 52_000, 10))
    assert [(miss.number, miss.tokens) for miss in found] == [(5, 51_000)]
    assert found[0].idle_s == 20


def test_new_words_of_a_smaller_prompt_are_not_counted() -> None:
    """The last reply is new in the prompt: it was never in the cache."""
    miss = only(misses(WARM, (10, 20_000, 5_000, 10), (10, 3_000, 20_990, 10)))
    assert miss.tokens == 24_000 - 10 - 3_000


# Costs


def price_of(model: str) -> tuple[float, float, float, float]:
    price = find_price(model, "2026-09-21", 0)
    assert price
    return price.input, price.cached, price.cache_write, price.cache_write_1h


def test_five_minute_writes_cost_their_difference_to_reads() -> None:
    _, read, write, _ = price_of(CLAUDE)
    assert only(misses(WARM, COLD)).cost == pytest.approx(50_000 * (write - read) / MILLION)


def test_one_hour_writes_cost_more() -> None:
    _, read, _, write_1h = price_of(CLAUDE)
    cost = only(misses(WARM, COLD, written_1h=90_000)).cost
    assert cost == pytest.approx(50_000 * (write_1h - read) / MILLION)


def test_mixed_buckets_are_priced_in_the_order_of_the_prompt() -> None:
    """The hour's writes come first, then five minutes, then what is not cached."""
    full, read, write, write_1h = price_of(CLAUDE)
    miss = only(misses(WARM, (15_000, 0, 40_000, 10), written_1h=25_000))
    dollars = 25_000 * write_1h + 15_000 * write + 10_000 * full - 50_000 * read
    assert miss.cost == pytest.approx(dollars / MILLION)


def test_input_that_was_cached_before_costs_its_difference_to_reads() -> None:
    full, read, _, _ = price_of(GPT)
    miss = only(misses((50_000, 9_600, 0, 1), (51_000, 9_600, 0, 1), model=GPT))
    assert miss.cost == pytest.approx(50_000 * (full - read) / MILLION)


@pytest.mark.parametrize("model", [None, "a-model-of-our-own"])
def test_cost_is_unknown_without_a_price(model: str | None) -> None:
    miss = only(misses(WARM, COLD, model=model))
    assert (miss.tokens, miss.cost) == (50_000, None)


# Causes


@pytest.mark.parametrize(
    ("idle", "written_1h", "is_idle"),
    [(300, 0, False), (301, 0, True), (3_600, 50_000, False), (3_601, 50_000, True)],
)
def test_cause_is_idle_once_the_lifetime_has_passed(
    idle: float, written_1h: int, is_idle: bool
) -> None:
    found = misses(WARM, (10, 5_000, 47_000, 1), idle=idle, written_1h=written_1h)
    assert (only(found).cause == "idle longer than the cache lives") is is_idle


def test_cause_is_idle_for_an_automatic_cache_after_five_minutes() -> None:
    calls: tuple[Tokens, ...] = ((50_000, 9_600, 0, 1), (51_000, 9_600, 0, 1))
    assert only(misses(*calls, idle=301, model=GPT)).cause == "idle longer than the cache lives"
    assert only(misses(*calls, idle=299, model=GPT)).cause == "dropped by the provider"


def switched(idle: float) -> list[CacheMiss]:
    calls = [call(1, WARM, idle), call(2, (10, 0, 52_000, 10), idle, "claude-sonnet-4-6")]
    return find_misses(thread_of(calls))


def test_cause_is_the_model_switch_unless_the_cache_was_gone_already() -> None:
    assert only(switched(10)).cause == "model switch"
    assert only(switched(4_000)).cause == "idle longer than the cache lives"


def test_cache_of_another_model_is_not_expected_of_the_next() -> None:
    """A model that reports no cache has no misses after the switch to it."""
    calls = [call(1, WARM), call(2, HIT)]
    calls += [call(n, (50_000 + n, 0, 0, 10), model="local") for n in range(3, 6)]
    assert [miss.cause for miss in find_misses(thread_of(calls))] == ["model switch"]


def test_cause_is_the_start_of_the_prompt_if_nothing_was_read() -> None:
    assert only(misses(WARM, COLD)).cause == "tools or instructions changed"
    assert only(misses(WARM, (10, 16_000, 36_000, 1))).cause == "unknown"


@pytest.mark.parametrize(("model", "read"), [(CLAUDE, 0), (CLAUDE, 50_000), (GPT, 9_600)])
def test_cause_is_unknown_without_times(model: str, read: int) -> None:
    """The cache may have expired."""
    written = 5_000 if model == CLAUDE else 0
    usages = [Usage(9, 50_000, written, 300), Usage(60_000 - written, read, written, 300)]
    events = [Call(id=f"c{n}", usage=usage, model=model) for n, usage in enumerate(usages)]
    miss = only(find_misses(thread_of(events)))
    assert (miss.cause, miss.at, miss.idle_s) == ("unknown", None, None)


def test_clock_that_went_back_is_no_idle_time() -> None:
    assert only(misses(WARM, COLD, idle=-5)).idle_s == 0


def test_cause_is_a_context_edit_if_the_prompt_shrank() -> None:
    found = misses(WARM, (10, 20_000, 15_000, 1))
    assert (only(found).cause, only(found).tokens) == ("context edit", 14_810)


# A prompt that went on: 59,610 tokens were sent, and 1,000 came back, of them 400 of reasoning.
LAST = Usage(9_610, 50_000, 0, 1_000, 400)


def cause_after(last: Usage, usage: Usage, model: str = GPT) -> str:
    events = [Call(at=START, id="c1", usage=last, model=model)]
    events.append(Call(at=START + 9, id="c2", usage=usage, model=model))
    return only(find_misses(thread_of(events))).cause


@pytest.mark.parametrize(
    ("sent", "reasoning", "cause"),
    [
        (60_610, 400, "dropped by the provider"),
        (60_160, 400, "dropped by the provider"),  # without the reasoning and 50 tokens of marks
        (60_159, 400, "context edit"),
        (60_560, None, "dropped by the provider"),
        (60_559, None, "unknown"),  # of the reply, an unknown part was reasoning
        (59_609, None, "context edit"),
    ],
)
def test_best_effort_cache_dropped_a_prompt_that_went_on(
    sent: int, reasoning: int | None, cause: str
) -> None:
    last = Usage(LAST.input, LAST.cache_read, 0, LAST.output, reasoning)
    assert cause_after(last, Usage(sent - 9_600, 9_600, 0, 10)) == cause


def test_prompt_of_which_nothing_was_read_may_have_another_start() -> None:
    assert cause_after(LAST, Usage(61_000, 0, 0, 10)) == "unknown"


def test_cache_that_reports_writes_dropped_the_last_of_them() -> None:
    """All was read that the call before had read, but nothing of what it wrote."""
    last = Usage(10, 50_000, 5_000, 300)
    assert cause_after(last, Usage(10, 50_000, 6_000, 9), CLAUDE) == "dropped by the provider"
    assert cause_after(last, Usage(10, 49_999, 6_000, 9), CLAUDE) == "unknown"


@pytest.mark.parametrize(
    ("before_1h", "now_1h", "read", "cause"),
    [
        (0, 6_000, 50_000, "request options changed"),
        (0, 6_000, 49_999, "unknown"),
        (0, 0, 50_000, "dropped by the provider"),
        (5_000, 6_000, 50_000, "dropped by the provider"),
    ],
)
def test_what_lives_for_five_minutes_is_not_read_by_a_call_that_asks_for_an_hour(
    before_1h: int, now_1h: int, read: int, cause: str
) -> None:
    last = Usage(10, 50_000, 5_000, 300, cache_write_1h=before_1h)
    now = Usage(10, read, 6_000, 9, cache_write_1h=now_1h)
    assert cause_after(last, now, CLAUDE) == cause


def continued(*events: AnyEvent, tokens: Tokens = (10, 15_000, 45_000, 1)) -> list[CacheMiss]:
    """The misses of a call after these events, which came after three calls."""
    calls = [call(1, (10, 15_000, 25_000, 1)), call(2, (10, 40_000, 20_000, 1))]
    known = SessionSeen(version="2.1.1", effort="low")
    before = [known, *calls, call(3, (10, 60_000, 30_000, 1))]
    return find_misses(thread_of([*before, *events, call(4, tokens)]))


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (Rewound(to="c2"), "rewind"),
        (Trimmed(), "context edit"),
        (Edited(call="c4", kind="clear_tool_uses"), "context edit"),
        (SessionSeen(version="2.1.2"), "resume"),
        (SessionSeen(is_resumed=True), "resume"),
        (SessionSeen(effort="high"), "effort switch"),
    ],
)
def test_cause_is_what_the_client_recorded(event: AnyEvent, cause: str) -> None:
    found = continued(event, tokens=(10, 15_000, 80_000, 1))
    assert [(miss.number, miss.cause) for miss in found] == [(4, cause)]


def test_rewind_can_read_what_the_call_before_it_had_left() -> None:
    """Not more: what was sent after that is gone, and the new words were never cached."""
    assert continued(Rewound(to="c1"), tokens=(10, 40_000, 9_000, 1)) == []
    assert only(continued(Rewound(to="c2"), tokens=(10, 40_000, 25_000, 1))).tokens == 20_000


def test_rewind_to_the_start_can_read_only_the_system_prompt() -> None:
    assert continued(Rewound(to=None), tokens=(10, 15_000, 70_000, 1)) == []
    assert only(continued(Rewound(to=None), tokens=(10, 0, 70_000, 1))).tokens == 15_000


def test_rewind_counts_more_than_other_changes_and_a_compaction_most() -> None:
    trimmed = continued(Rewound(to="c2"), Trimmed(), tokens=(10, 0, 65_000, 1))
    assert (only(trimmed).cause, only(trimmed).tokens) == ("rewind", 60_000)
    assert continued(Rewound(to="c2"), Compacted()) == []


# Compactions


FIRST = (10, 15_000, 60_000, 1)  # read a system prompt that another session had cached


def after(event: AnyEvent, tokens: Tokens, idle: float = 10.0) -> list[CacheMiss]:
    events = [call(1, FIRST), call(2, (10, 75_000, 20_000, 1)), event, call(3, tokens, idle)]
    return find_misses(thread_of(events))


@pytest.mark.parametrize("event", [Compacted(), Cleared()])
def test_new_context_after_a_compaction_is_no_miss(event: AnyEvent) -> None:
    """The summary was never in the cache; the system prompt was, and is read."""
    assert after(event, (10, 15_000, 20_000, 1)) == []


@pytest.mark.parametrize(("event", "cause"), [(Compacted(), "compaction"), (Cleared(), "clear")])
def test_system_prompt_that_is_lost_at_a_compaction_is_a_miss(event: AnyEvent, cause: str) -> None:
    miss = only(after(event, (10, 0, 35_000, 1)))
    assert (miss.tokens, miss.cause) == (15_000, cause)


def test_compaction_after_the_lifetime_is_a_miss_of_the_idle_time() -> None:
    miss = only(after(Compacted(), (10, 0, 35_000, 1), idle=4_000))
    assert (miss.tokens, miss.cause) == (15_000, "idle longer than the cache lives")


def test_system_prompt_is_unknown_until_a_first_call_reads_it() -> None:
    """Before that, no token is known to have survived a compaction."""
    cycle = [call(1, COLD), Compacted(at=1.0), call(2, COLD), Compacted(at=2.0)]
    events = [*cycle, call(3, (10, 30_000, 9_000, 1)), Compacted(at=3.0), call(4, COLD)]
    miss = only(find_misses(thread_of(events)))
    assert (miss.number, miss.tokens) == (4, 30_000)


def test_system_prompt_that_a_new_context_reads_is_expected_of_the_next() -> None:
    """Also if the context before it held nothing else."""
    events = [call(1, (10, 0, 15_000, 1)), Cleared(), call(2, (10, 15_000, 500, 1)), Cleared()]
    miss = only(find_misses(thread_of([*events, call(3, (10, 0, 16_000, 1))])))
    assert (miss.number, miss.tokens, miss.cause) == (3, 15_000, "clear")


def test_system_prompt_of_another_model_is_not_expected_after_a_compaction() -> None:
    """Though the first call of the new model read as much as the old one had left."""
    new = "claude-sonnet-4-6"
    switched = [call(1, FIRST), call(2, (10, 75_000, 1_000, 1), model=new)]
    events = [*switched, Compacted(), call(3, (10, 0, 35_000, 1), model=new)]
    assert find_misses(thread_of(events)) == []


def test_calls_that_write_summaries_are_no_misses() -> None:
    """They do not continue each other."""
    name = compaction_thread()
    calls = [call(n, COLD, thread=name) for n in range(4)]
    assert find_misses(thread_of(calls, name)) == []


def test_first_call_in_memory_is_no_miss_and_numbers_go_on() -> None:
    calls = [call(n, COLD if n % 2 else HIT) for n in range(1, 10)]
    whole = thread_of(calls)
    kept = drop_old_calls(whole, 4)
    assert kept.dropped.count
    found = find_misses(kept)
    assert found == [miss for miss in find_misses(whole) if miss.number > kept.dropped.count + 1]


# Properties


tokens = st.integers(0, 300_000)
usages = st.tuples(tokens, tokens, tokens, tokens)


@given(st.lists(usages, max_size=12), st.sampled_from([CLAUDE, GPT, GEMINI]), st.floats(0, 9_000))
def test_miss_is_never_more_than_what_was_sent_and_not_read(
    calls: list[Tokens], model: str, idle: float
) -> None:
    found = misses(*calls, idle=idle, model=model)
    for miss in found:
        full, read, written, _ = calls[miss.number - 1]
        before = next(sum(c[:3]) for c in reversed(calls[: miss.number - 1]) if sum(c[:3]))
        assert 0 < miss.tokens <= min(full + written, before - read)
        assert miss.cost is None or miss.cost >= 0


@given(st.lists(usages, max_size=12))
def test_calls_one_by_one_give_the_same_misses(tokens_of_calls: list[Tokens]) -> None:
    calls = [call(number, tokens) for number, tokens in enumerate(tokens_of_calls, 1)]
    finder = MissFinder()
    one_by_one = [miss for each in calls if (miss := finder.add(each))]
    assert one_by_one == find_misses(Thread("main", CallHistory(calls)))


# What the client reports.

TWO_MISSES = (WARM, HIT, (10, 20_000, 32_000, 100), (10, 52_000, 500, 100), (10, 0, 53_000, 9))


def reported(*reports: tuple[float, str]) -> list[CacheMiss]:
    """The two misses, at 300 and 500 seconds, with these reports."""
    found = misses(*TWO_MISSES, idle=100.0)
    assert [miss.at for miss in found] == [START + 300, START + 500]
    misses_reported = [ReportedMiss(START + at, tuple(words.split())) for at, words in reports]
    return with_reported_causes(found, misses_reported)


def test_reported_cause_replaces_the_likely_one_of_the_miss_nearest_in_time() -> None:
    first, second = reported((302, "model_changed effort_changed"))
    assert (first.cause, first.reported) == ("model switch", "model_changed, effort_changed")
    assert first.cause_text == "model switch (reported by the client)"
    assert (second.cause_text, second.reported) == ("tools or instructions changed", None)
    both = reported((302, "model_changed"), (499, "likely_server_side"))
    assert [miss.cause for miss in both] == ["model switch", "dropped by the provider"]


def test_word_without_a_counterpart_is_kept() -> None:
    first, _ = reported((300, "moon_phase"))
    assert (first.cause, first.cause_text) == ("unknown", "moon_phase (reported by the client)")
    first, _ = reported((300, "moon_phase ttl_expired_1h"))
    assert first.cause == "idle longer than the cache lives"


@pytest.mark.parametrize("report", [(300, "unknown"), (300, ""), (301 - MAX_APART_S * 2, "x")])
def test_report_without_a_cause_or_far_from_every_miss_changes_nothing(
    report: tuple[float, str],
) -> None:
    assert reported(report) == reported()


def test_miss_without_a_time_has_no_reported_cause() -> None:
    (miss, _) = misses(*TWO_MISSES)
    timeless = CacheMiss(miss.call, 3, None, 9, None, None, "unknown")
    assert with_reported_causes([timeless], [ReportedMiss(START, ("x",))]) == [timeless]


def test_each_word_of_the_client_has_one_of_our_causes() -> None:
    assert all(word.islower() for word in CAUSES_OF_WORDS)
    assert "unknown" not in CAUSES_OF_WORDS.values()


# What follows from the calls.


def cache_of(*calls: Call) -> PromptCache | None:
    return compute_prompt_cache(thread_of(calls))


def test_cache_expires_after_the_lifetime_of_what_was_written_last() -> None:
    short = cache_of(call(1, WARM), call(2, HIT))
    assert short is not None
    assert (short.origin, short.ttl, short.warm) == ("computed", "5m", True)
    assert (short.at, short.expires_at) == (START + 20, START + 320)
    assert short.recache_tokens_if_cold == 51_010
    long = cache_of(call(1, WARM, written_1h=50_000), call(2, (10, 50_000, 0, 5)))
    assert long is not None
    assert (long.ttl, long.expires_at) == ("1h", START + 20 + 3_600)


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [call(1, (5_000, 0, 0, 9))],
        [call(1, WARM), call(2, (5_000, 0, 0, 9))],
        [call(1, (10, 0, 50_000, 9), model=GPT)],
        [call(1, (10, 0, 50_000, 9), model=None)],
        [Call(id="c", usage=Usage(10, 0, 50_000, 9), model=CLAUDE)],
    ],
    ids=["no call", "no cache", "left the cache", "no fixed lifetime", "no model", "no time"],
)
def test_end_of_the_cache_is_unknown_without_its_lifetime_or_use(calls: list[Call]) -> None:
    assert cache_of(*calls) is None


def test_stored_cost_of_a_miss_is_taken() -> None:
    """A session without a file is restored from the store, with the prices of that time."""
    calls = [call(1, (10, 0, 50_000, 5)), call(2, (10, 0, 60_000, 5))]
    stored = msgspec.structs.replace(calls[1], stored_miss_cost=0.25)
    assert only(find_misses(thread_of([calls[0], stored]))).cost == 0.25
