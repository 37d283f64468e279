"""A session as another monitor left it in the store."""

from collections.abc import Iterator, Sequence

from brimline.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Trigger,
    WindowReported,
)
from brimline.monitor.session_state import RestoredPosition, SessionState
from brimline.monitor.signal_history import SignalHistory
from brimline.policy.signals import LevelMeasure, figure_of
from brimline.store.base import Store
from brimline.store.rows import CallRow, CompactionRow, ThreadRow
from brimline.usage import Usage
from brimline.windows import REPORTED

TRIGGERS: dict[str | None, Trigger] = {"auto": "auto", "manual": "manual"}


async def restore_session(
    store: Store, agent: str, session: str, of: LevelMeasure
) -> tuple[SessionState, SignalHistory]:
    """What is known of a session, its levels being of that; a new one where nothing is."""
    before = SignalHistory(await store.signals(session), await store.handoffs(session))
    row = await store.session(session)
    if row is None:
        return SessionState(agent, session), before
    threads = await store.threads(session)
    main = [thread for thread in threads if thread.thread == MAIN]
    past = max(((thread.cycle, thread.seq, thread.calls) for thread in main), default=())
    made = SessionState(agent, session, RestoredPosition(*past))
    made.model, made.project, made.parent = row.model, row.project, row.parent
    made.ended_at = row.ended_at if row.has_ended else None
    for thread in main:
        made.restore(thread, row.seen_at)
        before.note_figure(thread.cycle, figure_of(thread, of))
    if row.transcript is None:  # no file tells what was before: the store does
        calls, compactions = await store.calls(session), await store.compactions(session)
        made.files.add_events(_replay_rows(calls, compactions, threads))
    return made, before


def _replay_rows(
    calls: Sequence[CallRow], compactions: Sequence[CompactionRow], threads: Sequence[ThreadRow]
) -> Iterator[AnyEvent]:
    """What happened, told again: calls, the ends of cycles, also after the last call, windows."""
    known = {(made.thread, made.cycle): made for made in compactions}
    cycles: dict[str, int] = {}
    for row in (*calls, *threads):
        for cycle in range(cycles.get(row.thread, 0), row.cycle):
            yield from _cycle_end(row.thread, known.get((row.thread, cycle)))
        cycles[row.thread] = row.cycle
        if isinstance(row, CallRow):
            usage = Usage(row.input, row.cache_read, row.cache_write, row.output)
            yield Call(at=row.at, id=row.call, usage=usage, model=row.model, thread=row.thread)
        elif row.window is not None and row.window_why == REPORTED:
            yield WindowReported(tokens=row.window, thread=row.thread)


def _cycle_end(thread: str, made: CompactionRow | None) -> Iterator[AnyEvent]:
    """The end of a cycle; nothing where only a fall told it: the calls tell that again."""
    if made is None:
        yield Cleared(thread=thread)
    elif not made.inferred:
        yield Compacted(
            at=made.at,
            thread=thread,
            trigger=TRIGGERS.get(made.trigger),
            before=made.before,
            after=made.after,
        )
