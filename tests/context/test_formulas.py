"""The historic formulas, on the worked examples of their designs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.events import AnyEvent, Call, Cleared, Compacted, Rewound
from brimline.context.formulas import (
    FORMULAS,
    Components,
    audit,
    effective,
    formula_series,
    last_input,
    latest,
    max_cache_read_plus_sums,
    percent_error,
    result_sums,
    sum_cache_creation,
    sum_components,
)
from brimline.context.tracker import Session, Thread, fold, main_thread, read
from brimline.context.usage import Usage, percent

# Calls with the sums of the first design's test run: 12 in, 93 out, 32,060 written.
ARBITER = (
    Usage(input=4, cache_read=0, cache_write=16_500, output=30),
    Usage(input=3, cache_read=16_500, cache_write=10_800, output=28),
    Usage(input=2, cache_read=27_300, cache_write=4_500, output=25),
    Usage(input=3, cache_read=34_966, cache_write=260, output=10),
)


def thread_of(events: list[AnyEvent]) -> Thread:
    return main_thread(fold(Session(), events)) or Thread("main")


def calls(*usages: Usage) -> list[AnyEvent]:
    return [Call(id=f"msg_{n}", usage=usage) for n, usage in enumerate(usages)]


def test_worked_example_of_the_arbiter() -> None:
    """34,966 alone; 35,071 with the sums is 17.5 %; 32,165 by cache creation is 16.1 %."""
    raw = sum_components(ARBITER)
    assert raw == Components(34_966, 12, 93, 32_060, 4)
    assert percent(raw.max_cache_read, 200_000) == 17.5
    assert max_cache_read_plus_sums(ARBITER) == 35_071
    assert percent(35_071, 200_000) == 17.5
    assert sum_cache_creation(ARBITER) == 32_165
    assert percent(32_165, 200_000) == 16.1


def test_copies_of_a_call_count_once_in_sums() -> None:
    once, twice = calls(*ARBITER), [event for event in calls(*ARBITER) for _ in range(3)]
    assert audit(thread_of(once)) == audit(thread_of(twice))
    assert audit(thread_of(twice)).components.unique_calls == 4


def test_worked_example_of_codelet() -> None:
    """100k with 80k cached is 28k effective, 50k without a cache is 50k."""
    assert effective([Usage(20_000, 80_000, 0, 9)]) == 28_000
    assert effective([Usage(50_000, 0, 0, 9)]) == 50_000


@pytest.mark.parametrize(("cached", "compacts"), [(0, True), (80_000, False)])
def test_codelet_compacts_95k_of_100k_only_without_a_cache(cached: int, compacts: bool) -> None:
    usage = Usage(95_000 - cached, cached, 0, 0)
    assert latest([usage]) == 95_000
    assert (effective([usage]) > 0.9 * 100_000) is compacts


def test_last_input_is_what_the_cache_leaves() -> None:
    assert last_input(ARBITER) == 3


def test_result_sums_count_the_conversation_with_every_call() -> None:
    assert result_sums(ARBITER) == 16_504 + 27_303 + 31_802 + 35_229
    assert latest(ARBITER) == 35_229


def test_audit_has_every_formula_and_the_raw_components() -> None:
    audited = audit(thread_of(calls(*ARBITER)))
    assert audited.by_name == {
        "latest": 35_229,
        "max_cache_read_plus_sums": 35_071,
        "sum_cache_creation": 32_165,
        "last_input": 3,
        "result_sums": 110_838,
        "effective": 35_229 - 34_966 * 9 // 10,
    }
    assert list(audited.by_name) == list(FORMULAS)
    assert audited.components == sum_components(ARBITER)


def test_audit_before_the_first_call_is_unknown() -> None:
    audited = audit(Thread("main"))
    assert set(audited.by_name) == set(FORMULAS)
    assert set(audited.by_name.values()) == {None}
    assert audited.components == Components(0, 0, 0, 0, 0)


def test_only_latest_falls_after_a_compaction() -> None:
    events = [
        *calls(Usage(5, 0, 150_000, 900), Usage(5, 150_000, 4_000, 900)),
        Compacted(before=155_000),
        Call(id="next", usage=Usage(5, 20_000, 10_000, 100)),
    ]
    values = audit(thread_of(events)).by_name
    assert values["latest"] == 30_005
    assert values["max_cache_read_plus_sums"] == 151_915
    assert values["sum_cache_creation"] == 165_915


def test_audit_counts_from_the_last_clear_on() -> None:
    first, second = calls(Usage(5, 0, 150_000, 900), Usage(7, 0, 20_000, 100))
    audited = audit(thread_of([first, Cleared(), second]))
    assert audited.components == Components(0, 7, 100, 20_000, 1)
    assert audited.by_name["result_sums"] == 20_007


def test_latest_equals_the_reading_after_a_rewind() -> None:
    events = [*calls(Usage(10, 0, 0, 1), Usage(20, 0, 0, 1)), Rewound(to="msg_0")]
    session = fold(Session(), events)
    thread = session.threads["main"]
    assert read(session, thread, "transcript").sent == 10
    assert audit(thread).by_name["latest"] == 10


COUNTS = st.integers(0, 1_000_000)


@given(st.lists(st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS), min_size=1, max_size=8))
def test_formulas_are_counts_and_sums_not_below_their_last_part(usages: list[Usage]) -> None:
    values = {name: formula(usages) for name, formula in FORMULAS.items()}
    assert all(value >= 0 for value in values.values())
    assert values["result_sums"] >= values["latest"] >= values["last_input"]
    assert values["latest"] >= values["effective"]


def test_error_is_in_percent_of_the_truth_if_both_are_known() -> None:
    assert percent_error(150, 100) == 50.0
    assert percent_error(8, 62_661) == -100.0
    assert (percent_error(None, 100), percent_error(1, None), percent_error(1, 0)) == (
        None,
        None,
        None,
    )


@given(
    st.lists(
        st.builds(
            Usage,
            *(st.integers(min_value=0, max_value=200_000) for _ in range(4)),
        ),
        max_size=12,
    )
)
def test_series_has_the_value_after_each_call(usages: list[Usage]) -> None:
    series = formula_series(usages)
    assert set(series) == set(FORMULAS)
    for name, formula in FORMULAS.items():
        assert series[name] == [formula(usages[: n + 1]) for n in range(len(usages))]
