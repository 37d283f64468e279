"""Dropping old calls of a thread changes no figure."""

from itertools import count, pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    Edited,
    Rewound,
    SessionSeen,
    Spent,
    Trigger,
    Trimmed,
    WindowReported,
)
from brimline.context.tracker import (
    PromptChange,
    Session,
    Thread,
    drop_old_calls,
    drop_stored_calls,
    fold,
    read,
    refers_to_dropped_call,
)
from brimline.context.tracker.retention import MAX_SENTS
from brimline.context.usage import Usage

KEEP = 4  # copies, edits and rewinds concern one of this many last calls

TRIGGERS: tuple[Trigger | None, ...] = (None, "auto", "manual")
MODELS = st.sampled_from([None, "claude-sonnet-4-5", "claude-opus-5-5", "my-local"])
SENT = st.integers(0, 300_000)
BACK = st.integers(0, KEEP - 1)
STEPS = st.one_of(
    st.tuples(st.just("call"), SENT, MODELS),
    st.tuples(st.just("call"), SENT, MODELS),
    st.tuples(st.just("call"), SENT, MODELS),
    st.tuples(st.just("copy"), BACK, SENT),
    st.tuples(st.just("rewind"), BACK, st.none()),
    st.tuples(st.just("edit"), BACK, st.none()),
    st.tuples(st.just("compact"), st.integers(0, 2), SENT),
    st.tuples(st.just("compact again"), st.none(), SENT),
    st.sampled_from([(Cleared(), None, None), (Trimmed(), None, None), (Compacting(), None, None)]),
    st.sampled_from(
        [
            (Rewound(to=None), None, None),
            (Spent(usage=Usage(1, 2, 3, 4)), None, None),
            (WindowReported(tokens=258_400), None, None),
            (SessionSeen(agent="claude", records_compactions=True), None, None),
            (SessionSeen(records_compactions=False), None, None),
        ]
    ),
)


def call(id: int, sent: int, model: str | None, output: int = 10) -> Call:
    """A call whose time is its number."""
    usage = Usage(sent, 0, 0, output)
    return Call(at=float(id), id=f"c{id}", usage=usage, model=model)


def events_of(steps: list[tuple[object, object, object]]) -> list[AnyEvent]:
    """The events of some steps; ids and times grow with the calls."""
    ids = count(1)
    call_numbers: list[int] = []
    events: list[AnyEvent] = []
    for step in steps:
        match step:
            case ("call", int(sent), None | str() as model):
                call_numbers.append(next(ids))
                events.append(call(call_numbers[-1], sent, model))
            case ("copy", int(back), int(sent)) if back < len(call_numbers):
                events.append(call(call_numbers[-1 - back], sent, "claude-sonnet-4-5", 99))
            case ("rewind", int(back), _) if back < len(call_numbers):
                events.append(Rewound(to=f"c{call_numbers[-1 - back]}"))
            case ("edit", int(back), _) if back < len(call_numbers):
                events.append(Edited(call=f"c{call_numbers[-1 - back]}", kind="cleared"))
            case ("compact", int(number), int(before)):
                trigger = TRIGGERS[number]
                events.append(Compacted(at=float(len(events)), trigger=trigger, before=before))
            case ("compact again", _, int(after)):
                events += [each for each in events[-1:] if isinstance(each, Compacted)]
                events.append(Compacted(at=float(len(events)), after=after))
            case (SessionSeen() | Spent() | Cleared() | Trimmed() | Compacting() as event, _, _):
                events.append(event)
            case (Rewound() | WindowReported() as event, _, _):
                events.append(event)
            case _:
                pass
    return events


def figures(session: Session) -> dict[str, object]:
    """Every figure of the main thread."""
    thread = session.threads.get(MAIN) or Thread(MAIN)
    kept_range = range(thread.call_count - min(KEEP, thread.call_count), thread.call_count)
    return {
        "count": thread.call_count,
        "current": thread.current,
        "cycle": thread.cycle,
        "begun": thread.cycle_start,
        "first_at": thread.first_at,
        "last": thread.last,
        "holding": thread.current_call,
        "peak_sent": thread.peak_sent,
        "most_sent": thread.most_sent,
        "first_sent": thread.first_sent,
        "total": thread.total,
        "model": thread.model,
        "models": thread.models,
        "compacted_at": thread.compacted_at,
        "sustained_sent": thread.sustained_sent,
        "sents": thread.sents_of_cycle,
        "cycles": [thread.cycle_of(place) for place in kept_range],
        "held": list(thread.calls_from(kept_range.start)),
        "ended_now": thread.call_count in thread.cycle_ends,
        "compaction": thread.compactions[-1:],
        "reading": read(session, thread, "transcript"),
    }


def without_old_calls(session: Session) -> Session:
    """The session with only its last calls."""
    return drop_stored_calls(session, session, KEEP)


@given(st.lists(STEPS, max_size=60))
def test_dropping_calls_changes_no_figure(steps: list[tuple[object, object, object]]) -> None:
    whole = short = Session()
    for event in events_of(steps):
        whole, short = fold(whole, [event]), without_old_calls(fold(short, [event]))
        assert figures(short) == figures(whole)


@given(st.lists(STEPS, max_size=60), st.data())
def test_copy_of_or_rewind_to_a_dropped_call_is_noticed(
    steps: list[tuple[object, object, object]], data: st.DataObject
) -> None:
    """The events are then folded again."""
    events = events_of(steps)
    calls = [event for event in events if isinstance(event, Call)]
    if calls:
        place = data.draw(st.integers(0, len(events)))
        old = data.draw(st.sampled_from(calls))
        again = data.draw(st.sampled_from([old, Rewound(to=old.id)]))
        earlier_calls = [each for each in events[:place] if isinstance(each, Call)]
        events = [*events[:place], *([again] if old in earlier_calls else ()), *events[place:]]
    whole = short = Session()
    for number, event in enumerate(events):
        whole = fold(whole, [event])
        if refers_to_dropped_call(short, [event]):
            short = fold(Session(), events[: number + 1])
        else:
            short = fold(short, [event])
        short = without_old_calls(short)
        assert figures(short) == figures(whole)


def test_cycle_after_the_last_clear_is_known() -> None:
    events: list[AnyEvent] = [call(n, 1_000 + n, None) for n in range(1, 21)]
    events[10:10] = [Compacted(at=1.0, trigger="auto"), call(100, 5, None), Cleared()]
    short = without_old_calls(fold(Session(), events)).threads[MAIN]
    assert (short.clears, short.cycle_start, short.cycle_of(20)) == ((11,), 11, 2)
    assert short.sents_of_cycle == [1_000 + n for n in range(11, 21)]


def test_dropped_compactions_count_in_the_learned_limit() -> None:
    events: list[AnyEvent] = [SessionSeen(agent="claude", records_compactions=True)]
    short = Session()
    for number, before in enumerate((100, 160, 170, 155, 180, 190, 175)):
        calls = (call(10 * number + n, 1_000 + n, "claude-sonnet-4-5") for n in range(1, 6))
        events += [*calls, Compacted(at=float(number), trigger="auto", before=before)]
        events += [call(10 * number + 6, 900, "claude-sonnet-4-5"), Compacted(at=number + 0.5)]
    for event in events:
        short = without_old_calls(fold(short, [event]))
    assert len(short.threads[MAIN].compactions) == 2
    whole = fold(Session(), events)
    assert whole.threads[MAIN].compacted_at == (170, 155, 180, 190, 175)
    assert short.threads[MAIN].compacted_at == whole.threads[MAIN].compacted_at


def test_usual_events_refer_to_no_dropped_call() -> None:
    short = without_old_calls(fold(Session(), (call(n, 1_000 + n, None) for n in range(1, 40))))
    late = msgspec.structs.replace(call(41, 7, None), at=38.5)
    copies = [call(39, 5, None), call(40, 6, None), late]
    rewinds = [Rewound(to="c38"), Rewound(to="c40"), Rewound(to=None)]
    assert short.threads[MAIN].dropped.count
    assert not refers_to_dropped_call(short, [*copies, *rewinds])
    assert refers_to_dropped_call(short, [*copies, call(2, 5, None)])
    assert refers_to_dropped_call(short, [call(2, 5, None)])
    assert refers_to_dropped_call(short, [Rewound(to="c2")])


def test_rewind_to_a_dropped_call_is_unknown() -> None:
    short = without_old_calls(fold(Session(), (call(n, 1_000 + n, None) for n in range(1, 40))))
    assert fold(short, [Rewound(to="c2")]).threads[MAIN].current_call is None
    assert short.threads[MAIN].changes == ()
    assert fold(short, [Rewound(to="c2")]).threads[MAIN].changes == (
        PromptChange(39, "context edit"),
    )


def test_changes_before_the_calls_in_memory_are_dropped() -> None:
    events = [[call(n, 1_000 + n, None), Trimmed()] for n in range(1, 40)]
    thread = fold(Session(), [event for pair in events for event in pair]).threads[MAIN]
    kept = drop_old_calls(thread, KEEP)
    first = kept.dropped.count + 1
    assert [change.calls for change in kept.changes] == list(range(first, 40))


def test_only_threads_that_are_stored_lose_calls() -> None:
    """The calls of any other thread exist nowhere else."""
    session = fold(Session(), (call(n, 1_000, None) for n in range(1, 40)))
    helper = msgspec.structs.replace(call(1, 1_000, None), thread="helper")
    both = fold(session, [helper])
    assert drop_stored_calls(both, both, KEEP).threads[MAIN].dropped.count
    unstored = fold(Session(), (call(n, 1_000, None) for n in range(1, 40)))
    assert drop_stored_calls(session, unstored, KEEP) is session


def test_long_cycle_is_sampled_evenly_with_its_last_call() -> None:
    thread, sents = Thread(MAIN), list[int]()
    for number in range(5_000):
        grown = fold(Session(threads={MAIN: thread}), [call(number + 1, number, None)])
        thread = drop_old_calls(grown.threads[MAIN], KEEP)
        sents = thread.sents_of_cycle
        assert len(sents) <= MAX_SENTS + KEEP + 2
        assert (sents[0], sents[-1]) == (0, number)
    assert len({after - before for before, after in pairwise(sents[:-1])}) == 1


def test_first_call_of_a_cycle_is_known_when_it_was_dropped() -> None:
    """A limit below what the cycle began with is reported as unreachable."""
    thread = fold(Session(), (call(id, 1_000 * id, None) for id in range(1, 40))).threads[MAIN]
    assert drop_old_calls(thread, KEEP).first_sent == 1_000


def test_samples_start_at_the_first_call_of_a_cycle() -> None:
    """Also of a cycle that does not begin at a multiple of the stride."""
    thread, sents = fold(Session(), [call(1, 500, None), Cleared()]).threads[MAIN], list[int]()
    for number in range(1_000):
        grown = fold(Session(threads={MAIN: thread}), [call(number + 2, number, None)])
        thread = drop_old_calls(grown.threads[MAIN], KEEP)
        sents = thread.sents_of_cycle
        assert (sents[0], sents[-1]) == (0, number)
    gaps = [after - before for before, after in pairwise(sents)]
    assert {*gaps[:-1]} == {gaps[0]}
    assert gaps[-1] <= gaps[0]


def test_current_call_is_kept_however_old() -> None:
    events: list[AnyEvent] = [call(id, 1_000 * id, None) for id in range(1, 4 * KEEP)]
    thread = fold(Session(), [*events, Rewound(to="c1")]).threads[MAIN]
    assert drop_old_calls(thread, KEEP) is thread
