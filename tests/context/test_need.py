"""What a session needs of a person, and the order of every list."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.client_report import PromptCache, Quota, Quotas
from brimline.context.need import (
    ACTIVE_FOR_S,
    KINDS,
    NEEDS_FOR_S,
    Need,
    NeedFacts,
    assess,
    describe_to_agent,
    next_change,
)

NOW = 1_800_000_000.0
MODEL = "claude-sonnet-4-5"
WARM = PromptCache(ttl="5m", expires_at=NOW + 290, recache_tokens_if_cold=217_000)
CACHE = PromptCache(ttl="5m", expires_at=NOW + 119, recache_tokens_if_cold=217_000)


def facts(called_at: float | None = NOW - 10, **more: Any) -> NeedFacts:
    return NeedFacts(name="3f1a0000", called_at=called_at, **more)


def need(**more: Any) -> Need | None:
    return assess(facts(**more), NOW).need


def text(**more: Any) -> str:
    found = need(**more)
    assert found is not None
    return found.text


def test_session_below_its_last_level_needs_nothing() -> None:
    assert need(fullness="medium", percent_of_limit=60.0, calls_left=9, handoff="none") is None


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"handoff": "none"}, "Compacts with the next call; it has no handoff."),
        ({"handoff": "draft"}, "Compacts with the next call; its handoff is a draft."),
        ({"handoff": "fresh"}, "Compacts with the next call; its handoff is fresh."),
        ({"handoff": "old"}, "Compacts with the next call; its handoff is old."),
        (
            {"handoff": "old", "calls_since_handoff": 40},
            "Compacts with the next call; its handoff is 40 calls old.",
        ),
        ({}, "Compacts with the next call; nothing keeps a handoff of it."),
        (
            {"handoff": "none", "is_limit_enforced": False},
            "Its window is full; it has no handoff.",
        ),
    ],
)
def test_session_at_its_limit(known: dict[str, Any], expected: str) -> None:
    assert need(fullness="limit", percent_of_limit=100.0, **known) == Need("limit", expected)


def test_session_whose_next_call_reaches_the_limit_is_at_its_limit() -> None:
    found = need(fullness="high", percent_of_limit=99.0, calls_left=0, handoff="fresh")
    assert found == Need("limit", "Compacts with the next call; its handoff is fresh.")


def test_compaction_comes_before_the_limit() -> None:
    found = need(is_compacting=True, fullness="limit", handoff="fresh")
    assert found == Need("compacting", "It is compacting; its handoff is fresh.")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (
            {"calls_left": 7, "handoff": "none"},
            "About 7 calls left: ask for a handoff (`brimline handoff --ask 3f1a0000`).",
        ),
        (
            {"calls_left": 1, "handoff": "old"},
            "About 1 call left: ask for another handoff (`brimline handoff --ask 3f1a0000`).",
        ),
        (
            {"percent_of_limit": 84.25, "handoff": "draft"},
            "At 84.2% of its limit: ask for a handoff (`brimline handoff --ask 3f1a0000`).",
        ),
        ({"calls_left": 7}, "About 7 calls left: have it write down where it stands."),
        ({}, "Above its last level: have it write down where it stands."),
    ],
)
def test_session_above_its_last_level(known: dict[str, Any], expected: str) -> None:
    assert need(fullness="high", **known) == Need("level", expected)


def test_fresh_handoff_is_enough_above_the_last_level() -> None:
    assert need(fullness="high", calls_left=7, handoff="fresh") is None


@pytest.mark.parametrize(("used", "is_need"), [(89.9, False), (90.0, True)])
def test_quota_that_is_nearly_used_up(used: float, is_need: bool) -> None:
    quotas = Quotas(NOW, five_hour=Quota(used, NOW + 60), seven_day=Quota(50.0, NOW + 60))
    assert (need(quotas=quotas) is not None) == is_need
    if is_need:
        assert text(quotas=quotas).startswith("Five-hour quota at 90.0%, resets at ")


def test_quota_that_is_most_used_is_named_with_the_day_of_its_reset() -> None:
    quotas = Quotas(NOW, Quota(91.0, NOW + 60), Quota(99.0, NOW + 4 * 86_400))
    assert text(quotas=quotas).startswith("Seven-day quota at 99.0%, resets on ")


def test_reset_of_a_quota_names_its_zone_to_remote_readers() -> None:
    quotas = Quotas(NOW, five_hour=Quota(95.0, NOW + 60))
    here, elsewhere = text(quotas=quotas), text(quotas=quotas, has_remote_readers=True)
    assert elsewhere == f"{here[:-1]}{time.strftime(' %Z', time.localtime(NOW + 60))}."


def test_quota_that_was_reset_is_no_need() -> None:
    assert need(quotas=Quotas(NOW, five_hour=Quota(99.0, NOW))) is None


def test_cache_that_is_about_to_go_cold() -> None:
    expected = "The cache goes cold in 2 minutes: the next call then writes 217K again"
    assert text(prompt_cache=CACHE) == f"{expected}."
    assert text(prompt_cache=CACHE, model="claude-sonnet-4-5") == f"{expected} ($1.63)."


@pytest.mark.parametrize(
    "cache",
    [
        PromptCache(ttl="5m", expires_at=NOW + 121, recache_tokens_if_cold=217_000),
        PromptCache(ttl="1h", expires_at=NOW + 601, recache_tokens_if_cold=217_000),
        PromptCache(ttl="5m", expires_at=NOW, recache_tokens_if_cold=217_000),
        PromptCache(ttl="5m", expires_at=NOW + 60, recache_tokens_if_cold=49_999),
        PromptCache(ttl="5m", expires_at=NOW + 60),
        PromptCache(ttl="5m"),
    ],
)
def test_cache_that_is_warm_cold_small_or_unknown_is_no_need(cache: PromptCache) -> None:
    assert need(prompt_cache=cache) is None


def test_cache_that_lives_for_an_hour_has_longer_notice() -> None:
    cache = PromptCache(ttl="1h", expires_at=NOW + 600, recache_tokens_if_cold=217_000)
    assert text(prompt_cache=cache).startswith("The cache goes cold in 10 minutes")
    last = PromptCache(ttl="1h", expires_at=NOW + 20, recache_tokens_if_cold=217_000)
    assert text(prompt_cache=last).startswith("The cache goes cold in a minute")


@pytest.mark.parametrize(
    ("unread", "expected"),
    [(1, "1 message waits for its next prompt."), (2, "2 messages wait for its next prompt.")],
)
def test_unread_message(unread: int, expected: str) -> None:
    assert need(unread=unread) == Need("message", expected)


def test_message_that_nothing_will_deliver_is_a_need_with_the_reason() -> None:
    why = "Brimline has no hooks for other."
    one, two = text(unread=1, undeliverable=why), text(unread=2, undeliverable=why)
    assert one == f"1 message waits, and nothing will deliver it: {why}"
    assert two == f"2 messages wait, and nothing will deliver them: {why}"
    assert need(undeliverable=why) is None


def test_session_without_a_call_for_a_day_needs_nothing_however_full_it_is() -> None:
    for called_at in (NOW - NEEDS_FOR_S, None):  # None: it has ended
        assessed = assess(facts(fullness="limit", unread=1, called_at=called_at), NOW)
        assert (assessed.need, assessed.is_near_limit) == (None, False)
        old = assess(facts(fullness="limit", percent_of_limit=99.0, called_at=called_at), NOW)
        assert [end.is_urgent for end in old.ends] == [False]
    assert assess(facts(fullness="high", called_at=NOW - NEEDS_FOR_S + 1), NOW).is_near_limit
    assert not assess(facts(fullness="medium"), NOW).is_near_limit


FIVE_HOURS = Quotas(NOW, Quota(62.0, NOW + 900), Quota(40.0, NOW + 9_000))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, []),
        ({"percent_raw": 41.0}, ["of window 41.0%"]),
        ({"percent_raw": 41.0, "percent_of_limit": 48.2}, ["of limit 48.2%"]),
        ({"percent_of_limit": 48.2, "calls_left": 30}, ["about 30 calls, of limit 48.2%"]),
        ({"percent_of_limit": 99.0, "calls_left": 1}, ["about 1 call, of limit 99.0%"]),
        ({"is_compacting": True}, ["compacting"]),
        # The one of which most is used up comes first, and a cache last,
        (
            {"percent_of_limit": 48.2, "quotas": FIVE_HOURS},
            ["5h 62.0%", "of limit 48.2%"],
        ),
        (
            {"percent_of_limit": 48.2, "prompt_cache": CACHE, "called_at": NOW - 200},
            ["then 217K again", "of limit 48.2%"],
        ),
        ({"cost": 3.2, "budget": 5.0}, ["$3.20 of $5.00, 64.0%"]),
        ({"cost": None, "budget": 5.0}, []),
        ({"cost": 3.2}, []),
        (
            {"percent_of_limit": 48.2, "quotas": FIVE_HOURS, "cost": 3.2, "budget": 5.0},
            ["$3.20 of $5.00, 64.0%", "5h 62.0%", "of limit 48.2%"],
        ),
        # but before all of them what is urgent.
        (
            {"percent_of_limit": 95.0, "cost": 4.5, "budget": 5.0},
            ["$4.50 of $5.00, 90.0%", "of limit 95.0%"],
        ),
        (
            {"percent_of_limit": 60.0, "fullness": "high", "quotas": FIVE_HOURS},
            ["of limit 60.0%", "5h 62.0%"],
        ),
    ],
)
def test_ends_are_the_nearest_first(known: dict[str, Any], expected: list[str]) -> None:
    assert [end.text for end in assess(facts(**known), NOW).ends] == expected


@pytest.mark.parametrize(("cost", "is_urgent"), [(4.49, False), (4.5, True), (7.0, True)])
def test_budget_that_is_nearly_used_up_is_urgent_and_no_need(cost: float, is_urgent: bool) -> None:
    assessed = assess(facts(cost=cost, budget=5.0), NOW)
    assert (assessed.need, [end.is_urgent for end in assessed.ends]) == (None, [is_urgent])


def test_end_has_its_time() -> None:
    quota, cache = assess(facts(quotas=FIVE_HOURS, prompt_cache=WARM, model=MODEL), NOW).ends
    assert (quota.kind, quota.at, quota.used) == ("quota", NOW + 900, 62.0)
    assert (cache.kind, cache.at, cache.is_urgent) == ("cache", NOW + 290, False)
    assert cache.text == "then 217K again ($1.63)"


def test_cold_cache_and_reset_quota_are_no_ends() -> None:
    assert assess(facts(quotas=FIVE_HOURS, prompt_cache=WARM), NOW + 90_000).ends == []


def test_need_or_rank_changes_without_an_event() -> None:
    assert next_change(None, CACHE, NOW) is None
    assert next_change(NOW - 10, None, NOW) == NOW - 10 + ACTIVE_FOR_S
    assert next_change(NOW - ACTIVE_FOR_S, None, NOW) == NOW - ACTIVE_FOR_S + NEEDS_FOR_S
    assert next_change(NOW - NEEDS_FOR_S, None, NOW) is None
    warm = PromptCache(ttl="5m", expires_at=NOW + 300)
    assert next_change(NOW, warm, NOW) == NOW + 180
    assert next_change(NOW, CACHE, NOW) == NOW + 60
    assert next_change(NOW, CACHE, NOW + 100) == NOW + 119


@pytest.mark.parametrize(
    ("known", "cause"),
    [
        ({}, "."),
        ({"kept_percent": 92.0}, ": what stays takes 92.0% of the limit."),
        (
            {"kept_percent": 92.0, "kept_part": ("memory files", 61_000)},
            ": what stays takes 92.0% of the limit, 61K of it memory files.",
        ),
        (
            {"kept_percent": 12.0, "kept_part": ("memory files", 61_000)},
            ": what stays takes 12.0% of the limit, and a few calls fill the rest.",
        ),
    ],
)
def test_loop_of_compactions_is_named_with_its_cause(known: dict[str, Any], cause: str) -> None:
    """Before everything else: the agent does not get on, and each compaction costs."""
    found = need(loop=3, is_compacting=True, fullness="limit", **known)
    assert found == Need("loop", f"Compacted 3 times in a row{cause}")


PERCENTS = st.none() | st.floats(0, 150)
FACTS = st.builds(
    NeedFacts,
    name=st.just("s"),
    called_at=st.none() | st.floats(NOW - 2 * NEEDS_FOR_S, NOW),
    is_compacting=st.booleans(),
    is_limit_enforced=st.booleans(),
    fullness=st.sampled_from([None, "low", "medium", "high", "limit"]),
    percent_raw=PERCENTS,
    percent_of_limit=PERCENTS,
    calls_left=st.none() | st.integers(0, 200),
    handoff=st.sampled_from([None, "none", "fresh", "old", "draft"]),
    unread=st.integers(0, 2),
    undeliverable=st.none() | st.just("Brimline has no hooks for other."),
    prompt_cache=st.none() | st.just(CACHE),
    loop=st.none() | st.integers(2, 9),
    kept_percent=PERCENTS,
    kept_part=st.none() | st.just(("memory files", 61_000)),
    cost=st.none() | st.floats(0, 9),
    budget=st.none() | st.floats(0.01, 9),
)


@given(st.lists(FACTS, max_size=12))
def test_list_has_needs_first_then_active_then_idle_sessions(every: list[NeedFacts]) -> None:
    ranked = sorted(
        ((found.rank, each, found.need) for each in every for found in [assess(each, NOW)]),
        key=lambda row: row[0],
    )
    groups = [group for (group, _, _), _, _ in ranked]
    assert groups == sorted(groups)
    for (group, _, _), each, found in ranked:
        assert (group == 0) == (found is not None)
        is_active = each.called_at is not None and each.called_at + ACTIVE_FOR_S > NOW
        assert group == 0 or (group == 1) == is_active
    kinds = [KINDS.index(found.kind) for _, _, found in ranked if found]
    assert kinds == sorted(kinds)
    for group in (0, 1):
        for kind in range(len(KINDS)):
            near = [each.nearness for key, each, _ in ranked if key[:2] == (group, kind)]
            assert near == sorted(near, reverse=True)
    ages = [each.called_at or 0.0 for key, each, _ in ranked if key[0] == 2]
    assert ages == sorted(ages, reverse=True)


@given(FACTS)
def test_need_is_one_line(each: NeedFacts) -> None:
    found = assess(each, NOW).need
    assert found is None or (found.text.endswith(".") and len(found.text.splitlines()) == 1)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, ""),
        ({"handoff": "none"}, ""),
        ({"handoff": "fresh"}, "Your handoff is fresh."),
        ({"handoff": "old", "calls_since_handoff": 40}, "Your handoff is 40 calls old."),
        ({"handoff": "old", "calls_since_handoff": 1}, "Your handoff is 1 call old."),
    ],
)
def test_agent_is_told_of_a_document_that_it_wrote(known: dict[str, Any], expected: str) -> None:
    assert describe_to_agent(facts(**known), NOW) == expected
