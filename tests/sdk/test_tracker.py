"""Tracker: observations, readings, levels and stored state."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.events import MAIN, AnyEvent
from brimline.context.usage import Usage
from brimline.errors import InvalidPolicy, InvalidState, InvalidUsage, UnrecognisedObject
from brimline.sdk import LevelReached, Tracker

from .answers import MODEL, delta, message, response, start

FIXTURES = Path(__file__).parents[1] / "fixtures"


def levels(tracker: Tracker) -> list[float]:
    """A list that will hold the levels that a tracker reports, in order."""
    reported: list[float] = []

    tracker.on_level(lambda reached: reported.append(reached.level))
    return reported


def test_everything_but_the_window_is_unknown_before_the_first_reply() -> None:
    tracker = Tracker(model=MODEL)
    reading = tracker.reading
    assert reading.window is not None
    assert (reading.sent, reading.held, reading.percent) == (None, None, None)
    assert (reading.state, reading.source, tracker.peak) == ("unknown", "SDK", None)
    assert dict(tracker.threads) == {}


def test_tracker_without_a_model_has_no_window_before_the_first_reply() -> None:
    assert Tracker().reading.window is None


def test_observe_updates_the_reading_and_reports_the_change() -> None:
    tracker = Tracker(model=MODEL, window=200_000)
    assert tracker.observe(message("m1", 50_000))
    reading = tracker.reading
    assert (reading.sent, reading.held, reading.percent) == (50_000, 50_010, 25.0)
    assert reading.state == "measured"
    assert tracker.peak == 50_000


def test_same_call_observed_twice_changes_nothing() -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 50_000))
    before = tracker.state()
    assert not tracker.observe(message("m1", 50_000))
    assert tracker.state() == before


def test_occupancy_is_the_last_call_and_never_a_sum() -> None:
    tracker = Tracker(window=200_000)
    for id, sent in (("m1", 50_000), ("m2", 90_000), ("m3", 85_000)):
        tracker.observe(message(id, sent))
    assert (tracker.reading.sent, tracker.peak) == (85_000, 90_000)
    assert len(tracker.session.threads[MAIN].calls) == 3


def test_window_and_limit_that_are_set_go_before_everything() -> None:
    tracker = Tracker(model=MODEL, window=80_000, limit=60_000)
    tracker.observe(message("m1", 40_000, 0))
    reading = tracker.reading
    assert reading.window is not None
    assert reading.limit is not None
    assert (reading.window.tokens, reading.window.origin) == (80_000, "set")
    assert (reading.limit.tokens, reading.percent_of_limit) == (60_000, 66.7)


def test_long_window_mark_of_the_requested_model_is_kept() -> None:
    tracker = Tracker(model=f"{MODEL}[1m]", agent="claude")
    tracker.observe(message("m1", 50_000))
    assert tracker.reading.window is not None
    assert tracker.reading.window.tokens == 1_000_000
    dated = Tracker(model="claude-sonnet-4-5[1m]")
    dated.observe({**message("m1", 50_000), "model": "claude-sonnet-4-5-20250929"})
    assert dated.reading.window is not None
    assert dated.reading.window.tokens == 1_000_000
    plain = Tracker(model=MODEL, agent="claude")
    plain.observe(message("m1", 50_000))
    assert plain.reading.window is not None
    assert plain.reading.window.tokens == 200_000


def test_levels_of_an_unknown_window_warn_once_per_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = Tracker(model="my-local-model")
    tracker.observe({"input_tokens": 100_000, "output_tokens": 1})
    assert caplog.messages == []  # nobody listens for levels
    tracker.on_level(print)
    for sent in (190_000, 199_000):
        tracker.observe({"input_tokens": sent, "output_tokens": 1})
    assert caplog.messages == ["the window of my-local-model is unknown: no level can be reached"]
    with_window = Tracker(model="my-local-model", window=400_000)
    with_window.on_level(print)
    with_window.observe({"input_tokens": 190_000, "output_tokens": 1})
    assert len(caplog.messages) == 1


def test_usage_without_a_model_is_of_the_requested_one_in_the_main_thread_only() -> None:
    tracker = Tracker(model=MODEL)
    tracker.observe({"input_tokens": 50_000, "output_tokens": 1})
    tracker.observe({"input_tokens": 50_000, "output_tokens": 1}, thread="helper")
    assert tracker.reading.window is not None
    assert tracker.threads["helper"].window is None


def test_reply_of_another_model_has_that_models_window() -> None:
    tracker = Tracker(model="gpt-4o[1m]", agent="claude")
    tracker.observe(message("m1", 50_000))
    assert tracker.session.threads[MAIN].model == MODEL


def test_subagent_has_its_own_window() -> None:
    tracker = Tracker(window=200_000)
    tracker.observe(message("m1", 50_000))
    assert tracker.observe(message("s1", 190_000), thread="helper")
    assert {name: r.sent for name, r in tracker.threads.items()} == {
        MAIN: 50_000,
        "helper": 190_000,
    }
    assert tracker.peak == 50_000


def test_stream_gives_input_at_its_start_and_output_at_its_end() -> None:
    tracker = Tracker(window=200_000)
    assert tracker.observe(start("m1", 60_000))
    assert (tracker.reading.state, tracker.reading.sent) == ("streaming", 60_000)
    assert not tracker.observe({"type": "content_block_delta", "index": 0})
    assert tracker.observe(delta(500))
    assert (tracker.reading.state, tracker.reading.held) == ("measured", 60_500)


def test_concurrent_streams_of_two_threads_are_kept_apart() -> None:
    tracker = Tracker()
    tracker.observe(start("m1", 60_000))
    tracker.observe(start("s1", 20_000), thread="helper")
    tracker.observe(delta(7), thread="helper")
    tracker.observe(delta(5))
    assert tracker.reading.held == 60_005
    assert tracker.threads["helper"].held == 20_007


# Levels.


def test_level_is_reported_once_with_the_current_reading() -> None:
    tracker = Tracker(window=100_000, levels=(50, 65))
    reported: list[tuple[LevelReached, int | None]] = []
    tracker.on_level(lambda reached: reported.append((reached, tracker.reading.sent)))
    for id, sent in (("m1", 40_000), ("m2", 50_000), ("m3", 51_000), ("m4", 66_000)):
        tracker.observe(message(id, sent))
    assert [(r.level, r.thread, r.reading.sent, now) for r, now in reported] == [
        (50.0, MAIN, 50_000, 50_000),
        (65.0, MAIN, 66_000, 66_000),
    ]


def test_default_levels_are_in_time_before_an_early_limit() -> None:
    tracker = Tracker(window=1_000_000, limit=500_000)
    reached = levels(tracker)
    tracker.observe(message("m1", 299_000))
    assert reached == []
    tracker.observe(message("m2", 301_000))
    assert reached == [50.0]


def test_jump_over_two_levels_reports_only_the_higher() -> None:
    tracker = Tracker(window=100_000)
    reported = levels(tracker)
    tracker.observe(message("m1", 90_000))
    assert reported == [65.0]


def test_level_is_reported_again_only_in_a_new_cycle() -> None:
    tracker = Tracker(window=100_000)
    reported = levels(tracker)
    for id, sent in (("m1", 55_000), ("m2", 48_000), ("m3", 56_000)):
        tracker.observe(message(id, sent))
    assert reported == [50.0]
    tracker.observe(message("m4", 20_000))
    assert tracker.reading.cycle == 1
    tracker.observe(message("m5", 57_000))
    assert reported == [50.0, 50.0]


def test_each_thread_has_its_own_levels_and_a_compaction_call_none() -> None:
    tracker = Tracker(window=100_000)
    reported: list[tuple[str, float]] = []
    tracker.on_level(lambda reached: reported.append((reached.thread, reached.level)))
    tracker.observe(message("m1", 55_000))
    tracker.observe(message("s1", 70_000), thread="helper")
    passes = [
        {"type": "compaction", "input_tokens": 99_000, "output_tokens": 5},
        {"type": "message", "input_tokens": 9_000, "output_tokens": 5},
    ]
    tracker.observe(message("m2", 9_000, usage={"iterations": passes}))
    assert reported == [(MAIN, 50.0), ("helper", 65.0)]


def test_exception_of_a_listener_leaves_the_reading_up_to_date() -> None:
    tracker = Tracker(window=100_000)

    def stop(reached: LevelReached) -> None:
        raise RuntimeError("stop here")

    assert tracker.on_level(stop) is stop
    with pytest.raises(RuntimeError, match="stop here"):
        tracker.observe(message("m1", 60_000))
    assert tracker.reading.sent == 60_000
    assert tracker.observe(message("m2", 61_000))


@pytest.mark.parametrize("field", ["window", "limit"])
@pytest.mark.parametrize("value", [0, -5, True, 1.5, "200000"])
def test_invalid_window_or_limit_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidPolicy, match=f"{field} must be an integer above 0"):
        Tracker(**{field: value})


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [("model", 5, "a text"), ("agent", b"me", "a text"), ("report_to", "x", "DaemonSession")],
)
def test_invalid_argument_is_refused_with_what_was_expected(
    field: str, value: Any, expected: str
) -> None:
    with pytest.raises(InvalidPolicy, match=f"{field} must be .*{expected}"):
        Tracker(**{field: value})


def test_listener_that_raises_does_not_silence_the_next() -> None:
    tracker = Tracker(window=100_000)

    @tracker.on_level
    def fail(reached: LevelReached) -> None:
        raise RuntimeError(f"at {reached.level}")

    reported = levels(tracker)
    with pytest.raises(RuntimeError, match="at 50"):
        tracker.observe(message("m1", 55_000))
    assert reported == [50]


def test_reset_and_compaction_of_one_thread_leave_the_others() -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 60_000))
    for number in (1, 2):
        tracker.observe(message(f"s{number}", 9_000), thread=f"sub{number}")
    tracker.reset(thread="sub1")
    tracker.compacted(thread="sub2")
    cycles = {name: (reading.sent, reading.cycle) for name, reading in tracker.threads.items()}
    assert cycles == {"main": (60_000, 0), "sub1": (None, 1), "sub2": (None, 1)}


def test_state_of_an_earlier_brimline_is_read() -> None:
    """Recorded before `overflow`, `sustained`, `cache_write_1h` and other fields were added."""
    saved = Path(__file__).with_name("tracker_state_1.json").read_bytes()
    tracker = Tracker.from_state(saved)
    assert (tracker.reading.sent, tracker.reading.cycle, tracker.peak) == (101_000, 1, 110_000)
    assert tracker.session.agent == "demo"
    assert list(tracker.threads) == ["main", "helper"]
    assert not tracker.observe(message("m4", 4, 10, usage={"cache_read_input_tokens": 100_996}))


def test_tokens_spent_in_a_state_of_version_1_are_kept() -> None:
    """Recorded from a stream before each spending had its own model and id."""
    saved = Path(__file__).with_name("tracker_state_1_spent.json").read_bytes()
    tracker = Tracker.from_state(saved)
    (thread,) = tracker.session.threads.values()
    assert (thread.spent.output, thread.total.output, thread.call_count) == (28, 30, 2)
    again = Tracker.from_state(tracker.state())
    assert again.session.threads[MAIN].spent == thread.spent


@pytest.mark.parametrize("scene", ["subagent-sync", "subagent-background"])
def test_finished_subagent_of_the_agent_sdk_is_no_longer_streaming(scene: str) -> None:
    tracker = Tracker()
    stream = FIXTURES / "claude" / scene / "stream-1.jsonl"
    for line in stream.read_bytes().splitlines():
        tracker.observe(json.loads(line))
    assert len(tracker.threads) == 2
    assert {reading.state for reading in tracker.threads.values()} == {"measured"}


def test_levels_that_do_not_increase_are_refused() -> None:
    with pytest.raises(InvalidPolicy, match="strictly increasing"):
        Tracker(levels=(65, 50))


# Cycles.


def test_reset_starts_a_cycle_rearms_levels_and_keeps_the_peak() -> None:
    tracker = Tracker(window=100_000)
    reported = levels(tracker)
    tracker.observe(message("m1", 55_000))
    tracker.reset()
    reading = tracker.reading
    assert (reading.sent, reading.state, reading.cycle) == (None, "unknown", 1)
    tracker.observe(message("m2", 55_000))
    assert reported == [50.0, 50.0]
    assert tracker.peak == 55_000


def test_stream_cut_off_by_a_reset_does_not_end_in_the_new_cycle() -> None:
    tracker = Tracker()
    tracker.observe(start("m1", 60_000))
    tracker.reset()
    assert not tracker.observe(delta(500))
    assert tracker.reading.sent is None


def test_init_line_of_another_session_is_a_reset() -> None:
    tracker = Tracker()
    init = {"type": "system", "subtype": "init", "session_id": "s1", "model": MODEL}
    tracker.observe(init)
    tracker.observe(message("m1", 55_000))
    assert not tracker.observe(init)
    assert tracker.reading.cycle == 0
    assert tracker.observe({**init, "session_id": "s2"})
    assert (tracker.reading.cycle, tracker.reading.sent) == (1, None)


def test_reported_compaction_starts_a_cycle_and_rearms_levels() -> None:
    tracker = Tracker(window=100_000)
    reported = levels(tracker)
    tracker.observe(message("m1", 60_000))
    tracker.compacted()
    assert (tracker.reading.state, tracker.reading.cycle) == ("unknown", 1)
    tracker.observe(message("m2", 55_000))
    assert (tracker.reading.cycle, reported) == (1, [50.0, 50.0])
    (compaction,) = tracker.session.threads[MAIN].compactions
    assert (compaction.before, compaction.after, compaction.inferred) == (60_010, 55_000, False)


def test_unexplained_fall_is_a_compaction() -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 150_000))
    tracker.observe(message("m2", 20_000))
    (compaction,) = tracker.session.threads[MAIN].compactions
    assert (compaction.inferred, tracker.reading.cycle) == (True, 1)


EDITS = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 130_000}]}


def test_large_fall_by_an_edit_of_the_api_rearms_levels() -> None:
    tracker = Tracker(window=200_000)
    reported = levels(tracker)
    tracker.observe(message("m1", 150_000))
    tracker.observe(message("m2", 20_000, context_management=EDITS))
    (compaction,) = tracker.session.threads[MAIN].compactions
    assert (compaction.inferred, tracker.reading.cycle, tracker.reading.sent) == (False, 1, 20_000)
    for _ in range(2):
        tracker.observe(message("m3", 150_000, context_management=EDITS))
    assert (reported, tracker.reading.cycle) == ([65.0, 65.0], 1)


def test_late_edit_in_a_stream_explains_its_fall() -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 150_000))
    tracker.observe(start("m2", 20_000))
    tracker.observe(delta(5, context_management=EDITS))
    (compaction,) = tracker.session.threads[MAIN].compactions
    assert (compaction.inferred, tracker.reading.cycle) == (False, 1)
    assert (tracker.reading.sent, tracker.reading.state) == (20_000, "measured")


def test_edit_explains_only_the_fall_at_its_own_call() -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 150_000))
    tracker.observe(message("m2", 100_000, context_management=EDITS))
    tracker.observe(message("m3", 20_000))
    inferred = [each.inferred for each in tracker.session.threads[MAIN].compactions]
    assert inferred == [False, True]


def test_compaction_by_the_api_is_billed_separately() -> None:
    passes = [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
    ]
    tracker = Tracker()
    tracker.observe(message("m1", 179_000))
    tracker.observe(message("m2", 23_000, 1_000, usage={"iterations": passes}))
    assert (tracker.reading.held, tracker.reading.cycle) == (24_000, 1)
    assert tracker.threads["compaction"].sent == 180_000


def test_context_is_unknown_after_a_pausing_compaction_of_the_api() -> None:
    passes = [
        {"type": "message", "input_tokens": 150_000, "output_tokens": 20},
        {"type": "compaction", "input_tokens": 3_000, "output_tokens": 900},
    ]
    tracker = Tracker()
    tracker.observe(message("m1", 150_000, 20, usage={"iterations": passes}))
    assert (tracker.reading.state, tracker.reading.sent, tracker.peak) == ("unknown", None, 150_000)
    tracker.observe(message("m1", 150_000, 20, usage={"iterations": passes}))
    tracker.observe(message("m2", 12_000))
    assert (tracker.reading.sent, tracker.reading.cycle) == (12_000, 1)


def test_compacted_response_of_openai_is_a_compaction() -> None:
    tracker = Tracker()
    tracker.observe(response("r1", 150_000))
    edited = {**response("r2", 20_000), "output": [{"type": "compaction", "id": "c"}]}
    tracker.observe(edited)
    assert (tracker.reading.cycle, tracker.reading.sent) == (1, 20_000)
    for _ in range(2):
        tracker.observe({"object": "response.compaction", "id": "r3",
                         "usage": {"input_tokens": 900, "output_tokens": 90}})  # fmt: skip
    assert (tracker.reading.state, tracker.reading.cycle) == ("unknown", 2)
    assert tracker.threads["compaction"].sent == 900


# State.


def test_restored_tracker_continues_and_repeats_no_level() -> None:
    tracker = Tracker(model=MODEL, window=100_000, limit=90_000, levels=(30, 50))
    tracker.observe(message("m1", 55_000))
    tracker.observe(message("s1", 70_000), thread="helper")
    again = Tracker.from_state(tracker.state())
    assert again.reading == tracker.reading
    assert again.threads == tracker.threads
    reported = levels(again)
    again.observe(message("m2", 56_000))
    assert reported == []
    again.reset()
    again.observe(message("m3", 31_000))
    assert reported == [30.0]


def test_state_keeps_cleared_calls_without_a_model() -> None:
    tracker = Tracker()
    for _ in range(3):
        tracker.observe({"input_tokens": 100, "output_tokens": 1})
    tracker.reset()
    tracker.observe({"input_tokens": 50, "output_tokens": 1})
    again = Tracker.from_state(tracker.state())
    assert again.session == tracker.session
    assert again.session.threads[MAIN].sustained_sent == 100


def test_state_is_json() -> None:
    assert json.loads(Tracker().state())["version"] == 2
    assert Tracker.from_state(Tracker(agent="me").state().decode()).session.agent == "me"


@pytest.mark.parametrize(
    "state",
    [b"", b"{}", b"[1]", b"\xff\xff", b'{"type": "brimline-tracker"}', "nonsense"],
)
def test_invalid_state_is_refused_with_the_reason(state: bytes | str) -> None:
    with pytest.raises(InvalidState):
        Tracker.from_state(state)


def test_state_of_a_later_version_is_refused() -> None:
    later = json.loads(Tracker().state()) | {"version": 3}
    with pytest.raises(InvalidState, match="version 3"):
        Tracker.from_state(json.dumps(later))


def observed(calls: int) -> Tracker:
    """A tracker that observed so many calls, without a model in every second answer."""
    tracker = Tracker(window=100_000)
    for number in range(calls):
        model = MODEL if number % 2 else None
        tracker.observe({**message(f"m{number}", 1_000 + number % 900), "model": model})
    return tracker


def test_state_does_not_grow_with_the_number_of_calls() -> None:
    short, long = observed(1_500), observed(6_000)
    assert len(long.state()) < 1.05 * len(short.state())
    again = Tracker.from_state(long.state())
    assert (again.reading, again.peak) == (long.reading, long.peak)
    assert again.session.threads[MAIN].call_count == 6_000
    assert again.session.threads[MAIN].total == long.session.threads[MAIN].total
    again.observe({"input_tokens": 5, "output_tokens": 1})
    assert again.session.threads[MAIN].call_count == 6_001


def test_sums_of_dropped_calls_are_unknown_and_not_too_low(
    caplog: pytest.LogCaptureFixture,
) -> None:
    again = Tracker.from_state(observed(1_500).state())
    with caplog.at_level("INFO", logger="brimline.observe"):
        again.observe(message("last", 9_000))
    (record,) = caplog.records
    fields = vars(record)
    assert (fields["sent"], fields["unique_calls"], fields["sum_input"]) == (9_000, None, None)
    assert fields["formula_max_cache_read_plus_sums"] is None


def test_cost_is_the_sum_of_all_calls_also_of_dropped_ones() -> None:
    tracker = Tracker()
    assert tracker.cost is None
    for number in range(2_000):
        tracker.observe(message(f"m{number}", 1_000, 100))
    assert tracker.cost == pytest.approx(2_000 * (1_000 * 3 + 100 * 15) / 1_000_000)
    again = Tracker.from_state(Tracker.from_state(tracker.state()).state())
    assert again.cost == pytest.approx(tracker.cost)
    again.observe(message("other", 5, 5, model="my-local-model"), thread="helper")
    assert again.cost is None


PASSES = {
    "iterations": [
        {"type": "advisor_message", "model": MODEL, "input_tokens": 70, "output_tokens": 7},
        {"type": "message", "input_tokens": 900, "output_tokens": 10},
    ]
}


def advised(calls: int) -> Tracker:
    """A tracker that observed so many calls, each with an advisor's."""
    tracker = Tracker()
    for number in range(calls):
        tracker.observe(message(f"m{number}", 900, usage=PASSES))
    return tracker


def test_state_does_not_grow_with_the_number_of_spendings() -> None:
    """Older ones are added up with their cost."""
    tracker = advised(1_300)
    assert len(tracker.state()) < 1.05 * len(advised(1_001).state())
    again = Tracker.from_state(Tracker.from_state(tracker.state()).state())
    thread, whole = again.session.threads[MAIN], tracker.session.threads[MAIN]
    assert (thread.spent, thread.total) == (whole.spent, whole.total)
    assert thread.spent == Usage(1_300 * 70, 0, 0, 1_300 * 7)
    assert again.cost == pytest.approx(tracker.cost)


def test_state_that_was_written_with_all_spendings_is_restored() -> None:
    """Earlier versions added up no spendings."""
    written = json.loads(advised(1).state())
    thread = written["session"]["threads"][MAIN]
    thread["spendings"] = [{**thread["spendings"][0], "id": f"m{n}"} for n in range(3_000)]
    again = Tracker.from_state(json.dumps(written))
    spent, cost = again.session.threads[MAIN].spent, again.cost
    assert spent == Usage(3_000 * 70, 0, 0, 3_000 * 7)
    later = Tracker.from_state(again.state())
    assert len(later.session.threads[MAIN].spendings) == 1_001
    assert later.session.threads[MAIN].spent == spent
    assert later.cost == pytest.approx(cost)


# Bad input.


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("input_tokens", -1),
        ("input_tokens", "12"),
        ("input_tokens", float("nan")),
        ("input_tokens", None),
        ("input_tokens", True),
        ("output_tokens", -1),
        ("cache_read_input_tokens", -5),
        ("cache_creation_input_tokens", 1.5),
    ],
)
@pytest.mark.parametrize("how", ["message", "stream", "bare"])
def test_invalid_count_is_named_and_nothing_is_applied(field: str, value: Any, how: str) -> None:
    tracker = Tracker()
    tracker.observe(start("m1", 60_000))
    before = tracker.state()
    bad: dict[str, Any] = {"input_tokens": 5, "output_tokens": 5, field: value}
    answer: dict[str, Any] = {
        "message": {**message("m2", 5), "usage": bad},
        "stream": {"type": "message_start", "message": {**message("m2", 5), "usage": bad}},
        "bare": bad,
    }[how]
    with pytest.raises(InvalidUsage) as raised:
        tracker.observe(answer)
    assert raised.value.field == field
    assert tracker.state() == before
    assert tracker.observe(delta(9))
    assert tracker.reading.held == 60_009


class Unknown:
    """An object of the author's own."""


@pytest.mark.parametrize("observed", [None, 5, "text", [], {}, {"text": "hi"}, Unknown(), object()])
def test_object_of_an_unknown_shape_is_named_with_what_is_supported(observed: object) -> None:
    with pytest.raises(UnrecognisedObject) as raised:
        Tracker().observe(observed)
    assert raised.value.kind in str(raised.value)
    assert "an Anthropic message" in str(raised.value)


def test_error_names_a_type_with_its_module_and_a_dict_by_its_keys() -> None:
    with pytest.raises(UnrecognisedObject) as raised:
        Tracker().observe(Unknown())
    assert raised.value.kind.endswith("test_tracker.Unknown")
    with pytest.raises(UnrecognisedObject, match="a dict with the keys 'text'"):
        Tracker().observe({"text": "hi"})


# Properties.

CALLS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(1, 120_000), st.integers(0, 9_000)),
    max_size=12,
)


@given(CALLS, st.data())
def test_repeating_the_last_observation_changes_nothing(
    calls: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    tracker = Tracker(window=100_000)
    reported = levels(tracker)
    for id, sent, output in calls:
        tracker.observe(message(id, sent, output))
        before, levels_before = tracker.state(), list(reported)
        for _ in range(data.draw(st.integers(0, 3))):
            assert not tracker.observe(message(id, sent, output))
        assert (tracker.state(), reported) == (before, levels_before)


@given(CALLS, st.integers(0, 12))
def test_storing_and_restoring_anywhere_changes_nothing(
    calls: list[tuple[str, int, int]], place: int
) -> None:
    straight, stored = Tracker(window=100_000), Tracker(window=100_000)
    for number, (id, sent, output) in enumerate(calls):
        if number == place:
            stored = Tracker.from_state(stored.state())
        assert straight.observe(message(id, sent, output)) == stored.observe(
            message(id, sent, output)
        )
    assert msgspec.json.decode(stored.state()) == msgspec.json.decode(straight.state())


def test_concurrent_observations_are_all_counted() -> None:
    tracker = Tracker()

    def work(name: str) -> None:
        for number in range(50):
            tracker.observe(message(f"{name}{number}", 1_000 + number), thread=name)

    workers = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {name: len(t.calls) for name, t in tracker.session.threads.items()} == dict.fromkeys(
        "abcd", 50
    )


class Received:
    """Keeps the events that a tracker reports."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []

    def receive(self, events: Sequence[AnyEvent]) -> None:
        self.events += events

    def names(self) -> list[tuple[str, str]]:
        return [(type(event).__name__, getattr(event, "thread", "")) for event in self.events]


def test_everything_new_is_reported_once() -> None:
    received = Received()
    tracker = Tracker(report_to=received)
    for _ in range(2):
        tracker.observe(message("m1", 50_000))
    tracker.observe(start("m1", 50_000))  # an unfinished copy of a finished call
    tracker.observe(message("m2", 30_000), thread="reviewer")
    tracker.compacted()
    tracker.reset()
    assert received.names() == [
        ("Call", MAIN),
        ("Call", "reviewer"),
        ("Compacted", MAIN),
        ("Cleared", "reviewer"),
    ]


def test_window_of_the_tracker_is_reported_before_the_first_event_of_each_thread() -> None:
    received = Received()
    tracker = Tracker(window=100_000, report_to=received)
    for thread in (MAIN, "reviewer", MAIN):
        tracker.observe({"input_tokens": 10, "output_tokens": 1}, thread)
    again = Tracker.from_state(tracker.state(), report_to=received)
    again.observe({"input_tokens": 10, "output_tokens": 1})
    window, call = "WindowReported", "Call"
    assert received.names() == [
        (window, MAIN),
        (call, MAIN),
        (window, "reviewer"),
        (call, "reviewer"),
        (call, MAIN),
        (call, MAIN),
    ]


def test_call_is_reported_before_a_listener_raises() -> None:
    received = Received()
    tracker = Tracker(window=100_000, report_to=received)

    @tracker.on_level
    def stop(reached: LevelReached) -> None:
        raise StopIteration

    with pytest.raises(StopIteration):
        tracker.observe(message("m1", 90_000))
    assert ("Call", MAIN) in received.names()
