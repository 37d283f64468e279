"""Loops: compactions by the client with only a few calls between them."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.context.events import AnyEvent, Call, Cleared, Compacted, SessionSeen, Trigger
from brimline.context.tracker import CompactionLoop, Session, find_loop, fold, main_thread
from brimline.context.tracker.compaction_loop import LOOP_CALLS
from brimline.context.tracker.retention import drop_stored_calls
from brimline.context.usage import Usage


def cycle(name: str, calls: int, first: int = 60_000) -> list[AnyEvent]:
    """Calls that grow from `first` tokens on."""
    usages = (Usage(first + 1_000 * number, 0, 0, 10) for number in range(calls))
    return [Call(id=f"{name}{number}", usage=usage) for number, usage in enumerate(usages)]


def compacted(at: float, trigger: Trigger | None = "auto") -> Compacted:
    return Compacted(at=at, trigger=trigger, before=120_000)


def loop_of(*parts: AnyEvent | list[AnyEvent]) -> CompactionLoop | None:
    events: list[AnyEvent] = [SessionSeen(agent="claude", records_compactions=True)]
    for part in parts:
        events += part if isinstance(part, list) else [part]
    thread = main_thread(fold(Session(), events))
    return find_loop(thread) if thread else None


def test_second_compaction_within_a_few_calls_begins_a_loop() -> None:
    begun = [cycle("a", 30), compacted(1), cycle("b", LOOP_CALLS, 90_000), compacted(2)]
    assert loop_of(*begun) == CompactionLoop(2, 90_000)
    assert loop_of(*begun, cycle("c", 1, 91_000)) == CompactionLoop(2, 91_000)
    again = [*begun, cycle("c", 1, 91_000), compacted(3), cycle("d", 2, 92_000)]
    assert loop_of(*again) == CompactionLoop(3, 92_000)


def test_one_compaction_and_distant_compactions_are_no_loop() -> None:
    assert loop_of(cycle("a", 1), compacted(1), cycle("b", 1)) is None
    assert loop_of(cycle("a", 1), compacted(1), cycle("b", LOOP_CALLS + 1), compacted(2)) is None


def test_loop_ends_after_a_few_calls_or_a_clear() -> None:
    begun = [cycle("a", 3), compacted(1), cycle("b", 2), compacted(2)]
    assert loop_of(*begun, cycle("c", LOOP_CALLS)) is not None
    assert loop_of(*begun, cycle("c", LOOP_CALLS + 1)) is None
    assert loop_of(*begun, cycle("c", 1), Cleared()) is None


def test_compactions_that_the_user_asked_for_are_no_loop() -> None:
    asked = [compacted(1, "manual"), cycle("b", 1), compacted(2, "manual")]
    assert loop_of(cycle("a", 3), *asked, cycle("c", 1)) is None


def test_clients_that_do_not_say_who_asked_are_in_a_loop_too() -> None:
    begun = [cycle("a", 3), compacted(1, None), cycle("b", 1, 80_000), compacted(2, None)]
    assert loop_of(*begun) == CompactionLoop(2, 80_000)


STEPS = st.one_of(st.integers(1, LOOP_CALLS + 1), st.sampled_from(["auto", "manual", "clear"]))


@given(st.lists(STEPS, max_size=30))
def test_loop_does_not_depend_on_the_calls_in_memory(steps: list[int | str]) -> None:
    whole = short = fold(Session(), [SessionSeen(agent="claude", records_compactions=True)])
    for number, step in enumerate(steps):
        events: list[AnyEvent]
        if isinstance(step, int):
            events = cycle(f"n{number}-", step, 80_000 + number)
        elif step == "clear":
            events = [Cleared()]
        else:
            events = [compacted(number, "manual" if step == "manual" else "auto")]
        whole, short = fold(whole, events), fold(short, events)
        short = drop_stored_calls(short, short, 2)
        threads = main_thread(whole), main_thread(short)
        if threads[0] is not None and threads[1] is not None:
            assert find_loop(threads[0]) == find_loop(threads[1])


def test_endless_loop_takes_bounded_memory() -> None:
    session = fold(Session(), [SessionSeen(agent="claude", records_compactions=True)])
    for number in range(500):
        session = fold(session, [*cycle(f"n{number}-", 2), compacted(number)])
        session = drop_stored_calls(session, session, 2)
    thread = main_thread(session)
    assert thread is not None
    assert len(thread.compactions) < 5
    loop = find_loop(thread)
    assert loop is not None
    assert loop.compactions == 500
