"""Tracker: what is observed, what it reads, what it says when."""

import json
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidPolicy, InvalidState, InvalidUsage, UnrecognisedObject
from brimline.events import MAIN
from brimline.observe import LevelReached, Tracker

from .answers import MODEL, delta, message, response, start


def levels(tracker: Tracker) -> list[float]:
    """The levels that a tracker will have told, in their order."""
    told: list[float] = []

    tracker.on_level(lambda reached: told.append(reached.level))
    return told


def test_before_the_first_reply() -> None:
    """Before the first reply the window is known and everything else is unknown, not 0."""
    tracker = Tracker(model=MODEL)
    reading = tracker.reading
    assert reading.window is not None
    assert (reading.sent, reading.held, reading.percent) == (None, None, None)
    assert (reading.state, reading.source, tracker.peak) == ("unknown", "SDK", None)
    assert dict(tracker.threads) == {}


def test_without_a_model() -> None:
    """A tracker that was told nothing knows no window before the first reply."""
    assert Tracker().reading.window is None


def test_observe() -> None:
    """A reply changes the reading, and says so."""
    tracker = Tracker(model=MODEL, window=200_000)
    assert tracker.observe(message("m1", 50_000))
    reading = tracker.reading
    assert (reading.sent, reading.held, reading.percent) == (50_000, 50_010, 25.0)
    assert reading.state == "measured"
    assert tracker.peak == 50_000


def test_same_call_twice() -> None:
    """Observing the same call twice changes nothing."""
    tracker = Tracker()
    tracker.observe(message("m1", 50_000))
    before = tracker.state()
    assert not tracker.observe(message("m1", 50_000))
    assert tracker.state() == before


def test_last_call_counts() -> None:
    """The occupancy is the last call's, never a sum; the peak stays."""
    tracker = Tracker(window=200_000)
    for id, sent in (("m1", 50_000), ("m2", 90_000), ("m3", 85_000)):
        tracker.observe(message(id, sent))
    assert (tracker.reading.sent, tracker.peak) == (85_000, 90_000)
    assert len(tracker.session.threads[MAIN].calls) == 3


def test_window_and_limit_of_the_user() -> None:
    """What the author sets goes before everything that is known."""
    tracker = Tracker(model=MODEL, window=80_000, limit=60_000)
    tracker.observe(message("m1", 40_000, 0))
    reading = tracker.reading
    assert reading.window is not None
    assert reading.limit is not None
    assert (reading.window.tokens, reading.window.origin) == (80_000, "set")
    assert (reading.limit.tokens, reading.percent_of_limit) == (60_000, 66.7)


def test_model_as_it_was_asked_for() -> None:
    """`[1m]` is lost in the provider's answer, and not to us."""
    tracker = Tracker(model=f"{MODEL}[1m]", agent="claude")
    tracker.observe(message("m1", 50_000))
    assert tracker.reading.window is not None
    assert tracker.reading.window.tokens == 1_000_000
    plain = Tracker(model=MODEL, agent="claude")
    plain.observe(message("m1", 50_000))
    assert plain.reading.window is not None
    assert plain.reading.window.tokens == 200_000


def test_usage_without_a_model() -> None:
    """A usage that names no model is of the model that was asked for; a subagent's is not."""
    tracker = Tracker(model=MODEL)
    tracker.observe({"input_tokens": 50_000, "output_tokens": 1})
    tracker.observe({"input_tokens": 50_000, "output_tokens": 1}, thread="helper")
    assert tracker.reading.window is not None
    assert tracker.threads["helper"].window is None


def test_another_model_than_asked_for() -> None:
    """A reply of another model has that model's window."""
    tracker = Tracker(model="gpt-4o[1m]", agent="claude")
    tracker.observe(message("m1", 50_000))
    assert tracker.session.threads[MAIN].model == MODEL


def test_threads() -> None:
    """A subagent has a window of its own, and leaves the agent's alone."""
    tracker = Tracker(window=200_000)
    tracker.observe(message("m1", 50_000))
    assert tracker.observe(message("s1", 190_000), thread="helper")
    assert {name: r.sent for name, r in tracker.threads.items()} == {
        MAIN: 50_000,
        "helper": 190_000,
    }
    assert tracker.peak == 50_000


def test_streaming() -> None:
    """The input is known when the reply begins, the output when it ends."""
    tracker = Tracker(window=200_000)
    assert tracker.observe(start("m1", 60_000))
    assert (tracker.reading.state, tracker.reading.sent) == ("streaming", 60_000)
    assert not tracker.observe({"type": "content_block_delta", "index": 0})
    assert tracker.observe(delta(500))
    assert (tracker.reading.state, tracker.reading.held) == ("measured", 60_500)


def test_two_streams_at_once() -> None:
    """Threads that stream at the same time are not taken for each other."""
    tracker = Tracker()
    tracker.observe(start("m1", 60_000))
    tracker.observe(start("s1", 20_000), thread="helper")
    tracker.observe(delta(7), thread="helper")
    tracker.observe(delta(5))
    assert tracker.reading.held == 60_005
    assert tracker.threads["helper"].held == 20_007


# Levels.


def test_level_once() -> None:
    """A level is told once, when everything is up to date, with the reading."""
    tracker = Tracker(window=100_000, levels=(50, 65))
    told: list[tuple[LevelReached, int | None]] = []
    tracker.on_level(lambda reached: told.append((reached, tracker.reading.sent)))
    for id, sent in (("m1", 40_000), ("m2", 50_000), ("m3", 51_000), ("m4", 66_000)):
        tracker.observe(message(id, sent))
    assert [(r.level, r.thread, r.reading.sent, now) for r, now in told] == [
        (50.0, MAIN, 50_000, 50_000),
        (65.0, MAIN, 66_000, 66_000),
    ]


def test_jump_over_two_levels() -> None:
    """A jump over two levels is one word, the higher."""
    tracker = Tracker(window=100_000)
    told = levels(tracker)
    tracker.observe(message("m1", 90_000))
    assert told == [65.0]


def test_levels_after_a_fall() -> None:
    """A level is not told again when the occupancy falls and rises; a new cycle tells it again."""
    tracker = Tracker(window=100_000)
    told = levels(tracker)
    for id, sent in (("m1", 55_000), ("m2", 48_000), ("m3", 56_000)):
        tracker.observe(message(id, sent))
    assert told == [50.0]
    tracker.observe(message("m4", 20_000))
    assert tracker.reading.cycle == 1
    tracker.observe(message("m5", 57_000))
    assert told == [50.0, 50.0]


def test_levels_of_threads() -> None:
    """Each thread has its own levels; a compaction's own call has none."""
    tracker = Tracker(window=100_000)
    told: list[tuple[str, float]] = []
    tracker.on_level(lambda reached: told.append((reached.thread, reached.level)))
    tracker.observe(message("m1", 55_000))
    tracker.observe(message("s1", 70_000), thread="helper")
    passes = [
        {"type": "compaction", "input_tokens": 99_000, "output_tokens": 5},
        {"type": "message", "input_tokens": 9_000, "output_tokens": 5},
    ]
    tracker.observe(message("m2", 9_000, usage={"iterations": passes}))
    assert told == [(MAIN, 50.0), ("helper", 65.0)]


def test_listener_that_raises() -> None:
    """What a listener raises comes out of observe, and the reading is up to date."""
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
def test_wrong_sizes(field: str, value: Any) -> None:
    """A window or a limit that cannot be is refused at once, by its name."""
    with pytest.raises(InvalidPolicy, match=f"{field} must be an integer above 0"):
        Tracker(**{field: value})


def test_wrong_levels() -> None:
    """Levels that do not rise are refused at once."""
    with pytest.raises(InvalidPolicy, match="strictly increasing"):
        Tracker(levels=(65, 50))


# Cycles.


def test_reset() -> None:
    """A new spawn starts a new cycle: nothing is held, levels are armed again, the peak stays."""
    tracker = Tracker(window=100_000)
    told = levels(tracker)
    tracker.observe(message("m1", 55_000))
    tracker.reset()
    reading = tracker.reading
    assert (reading.sent, reading.state, reading.cycle) == (None, "unknown", 1)
    tracker.observe(message("m2", 55_000))
    assert told == [50.0, 50.0]
    assert tracker.peak == 55_000


def test_reset_forgets_open_streams() -> None:
    """A stream that was cut off by a new spawn does not end in the new cycle."""
    tracker = Tracker()
    tracker.observe(start("m1", 60_000))
    tracker.reset()
    assert not tracker.observe(delta(500))
    assert tracker.reading.sent is None


def test_another_session() -> None:
    """An init line of another session is a new spawn."""
    tracker = Tracker()
    init = {"type": "system", "subtype": "init", "session_id": "s1", "model": MODEL}
    tracker.observe(init)
    tracker.observe(message("m1", 55_000))
    assert not tracker.observe(init)
    assert tracker.reading.cycle == 0
    assert tracker.observe({**init, "session_id": "s2"})
    assert (tracker.reading.cycle, tracker.reading.sent) == (1, None)


def test_compacted_by_the_author() -> None:
    """Whoever compacts says so: a new cycle, unknown until the next reply, levels armed again."""
    tracker = Tracker(window=100_000)
    told = levels(tracker)
    tracker.observe(message("m1", 60_000))
    tracker.compacted()
    assert (tracker.reading.state, tracker.reading.cycle) == ("unknown", 1)
    tracker.observe(message("m2", 55_000))
    assert (tracker.reading.cycle, told) == (1, [50.0, 50.0])
    (made,) = tracker.session.threads[MAIN].compactions
    assert (made.before, made.after, made.inferred) == (60_010, 55_000, False)


def test_inferred_compaction() -> None:
    """A fall that nobody explains is a compaction."""
    tracker = Tracker()
    tracker.observe(message("m1", 150_000))
    tracker.observe(message("m2", 20_000))
    (made,) = tracker.session.threads[MAIN].compactions
    assert (made.inferred, tracker.reading.cycle) == (True, 1)


EDITS = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 130_000}]}


def test_edit_is_no_compaction() -> None:
    """A fall that the API itself made and reported is no client's compaction."""
    tracker = Tracker()
    tracker.observe(message("m1", 150_000))
    tracker.observe(message("m2", 20_000, context_management=EDITS))
    main = tracker.session.threads[MAIN]
    assert (main.compactions, main.edits, tracker.reading.cycle) == ((), 1, 0)
    assert tracker.reading.sent == 20_000


def test_edit_that_a_stream_tells_late() -> None:
    """In a stream the edit is told after the fall: what was taken for a compaction is undone."""
    tracker = Tracker()
    tracker.observe(message("m1", 150_000))
    tracker.observe(start("m2", 20_000))
    tracker.observe(delta(5, context_management=EDITS))
    main = tracker.session.threads[MAIN]
    assert (main.compactions, main.edits, tracker.reading.cycle) == ((), 1, 0)
    assert (tracker.reading.sent, tracker.reading.state) == (20_000, "measured")


def test_fall_after_an_edit() -> None:
    """An edit explains the fall at its own call alone, not a later one."""
    tracker = Tracker()
    tracker.observe(message("m1", 150_000))
    tracker.observe(message("m2", 100_000, context_management=EDITS))
    tracker.observe(message("m3", 20_000))
    assert tracker.reading.cycle == 1


def test_compaction_by_the_api() -> None:
    """The API's own compaction is billed apart, and the call after it is what is held."""
    passes = [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
    ]
    tracker = Tracker()
    tracker.observe(message("m1", 179_000))
    tracker.observe(message("m2", 23_000, 1_000, usage={"iterations": passes}))
    assert (tracker.reading.held, tracker.reading.cycle) == (24_000, 0)
    assert tracker.threads["compaction"].sent == 180_000


def test_compaction_by_the_api_that_pauses() -> None:
    """Where the API stops after its compaction, what is held is unknown until the next call."""
    passes = [
        {"type": "message", "input_tokens": 150_000, "output_tokens": 20},
        {"type": "compaction", "input_tokens": 3_000, "output_tokens": 900},
    ]
    tracker = Tracker()
    tracker.observe(message("m1", 150_000, 20, usage={"iterations": passes}))
    assert (tracker.reading.state, tracker.reading.sent, tracker.peak) == ("unknown", None, 150_000)
    tracker.observe(message("m2", 12_000))
    assert (tracker.reading.sent, tracker.reading.cycle) == (12_000, 0)


def test_compaction_by_openai() -> None:
    """A response that was compacted by the API, and `responses.compact` itself."""
    tracker = Tracker()
    tracker.observe(response("r1", 150_000))
    edited = {**response("r2", 20_000), "output": [{"type": "compaction", "id": "c"}]}
    tracker.observe(edited)
    assert (tracker.reading.cycle, tracker.reading.sent) == (0, 20_000)
    tracker.observe({"object": "response.compaction", "id": "r3",
                     "usage": {"input_tokens": 900, "output_tokens": 90}})  # fmt: skip
    assert tracker.reading.state == "unknown"
    assert tracker.threads["compaction"].sent == 900


# State.


def test_state() -> None:
    """A stored tracker goes on as if it had never stopped, and tells no level again."""
    tracker = Tracker(model=MODEL, window=100_000, limit=90_000, levels=(30, 50))
    tracker.observe(message("m1", 55_000))
    tracker.observe(message("s1", 70_000), thread="helper")
    again = Tracker.from_state(tracker.state())
    assert again.reading == tracker.reading
    assert again.threads == tracker.threads
    told = levels(again)
    again.observe(message("m2", 56_000))
    assert told == []
    again.reset()
    again.observe(message("m3", 31_000))
    assert told == [30.0]


def test_state_is_json() -> None:
    """The state is JSON, so that it can be stored anywhere."""
    assert json.loads(Tracker().state())["version"] == 1
    assert Tracker.from_state(Tracker(agent="me").state().decode()).session.agent == "me"


@pytest.mark.parametrize(
    "state",
    [b"", b"{}", b"[1]", b"\xff\xff", b'{"type": "brimline-tracker"}', "nonsense"],
)
def test_no_state(state: bytes | str) -> None:
    """What is no state is refused, with what is wrong."""
    with pytest.raises(InvalidState):
        Tracker.from_state(state)


def test_state_of_another_version() -> None:
    """A state that a later Brimline wrote is refused."""
    later = json.loads(Tracker().state()) | {"version": 2}
    with pytest.raises(InvalidState, match="version 2"):
        Tracker.from_state(json.dumps(later))


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
def test_bad_counts(field: str, value: Any, how: str) -> None:
    """A count that cannot be is an error that names it, and nothing is half-applied."""
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
    """Some object of the author's own."""


@pytest.mark.parametrize("seen", [None, 5, "text", [], {}, {"text": "hi"}, Unknown(), object()])
def test_unknown_shape(seen: object) -> None:
    """An object of an unknown shape is named, with what is supported."""
    with pytest.raises(UnrecognisedObject) as raised:
        Tracker().observe(seen)
    assert raised.value.kind in str(raised.value)
    assert "an Anthropic message" in str(raised.value)


def test_name_of_an_unknown_type() -> None:
    """The error names the type with its module, a dict by its keys."""
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
def test_repetition_changes_nothing(calls: list[tuple[str, int, int]], data: st.DataObject) -> None:
    """Whatever was observed last, observing it again any number of times changes nothing."""
    tracker = Tracker(window=100_000)
    told = levels(tracker)
    for id, sent, output in calls:
        tracker.observe(message(id, sent, output))
        before, said = tracker.state(), list(told)
        for _ in range(data.draw(st.integers(0, 3))):
            assert not tracker.observe(message(id, sent, output))
        assert (tracker.state(), told) == (before, said)


@given(CALLS, st.integers(0, 12))
def test_state_anywhere(calls: list[tuple[str, int, int]], place: int) -> None:
    """Storing and going on, anywhere, is going on."""
    straight, stored = Tracker(window=100_000), Tracker(window=100_000)
    for number, (id, sent, output) in enumerate(calls):
        if number == place:
            stored = Tracker.from_state(stored.state())
        assert straight.observe(message(id, sent, output)) == stored.observe(
            message(id, sent, output)
        )
    assert msgspec.json.decode(stored.state()) == msgspec.json.decode(straight.state())


def test_from_several_threads_of_the_process() -> None:
    """Calls that are observed at the same time are all there afterwards."""
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
