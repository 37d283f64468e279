"""Loops: compactions by the client with only a few calls between them."""

from brimline.context.events import AnyEvent, Call, Cleared, Compacted, SessionSeen, Trigger
from brimline.context.tracker import CompactionLoop, Session, find_loop, fold, main_thread
from brimline.context.tracker.compaction_loop import LOOP_CALLS
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
