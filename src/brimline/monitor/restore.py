"""Restores a session from the store, as another monitor left it."""

from collections.abc import Iterator, Sequence

import msgspec

from brimline.context.client_report import ClientReport, decode_report
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    SessionSeen,
    Spent,
    Trigger,
    WindowReported,
)
from brimline.context.policy.levels import figure_of
from brimline.context.usage import ZERO
from brimline.context.window import REPORTED
from brimline.monitor.fired_signals import SignalHistory
from brimline.monitor.session_state import SessionState
from brimline.monitor.user_rules import Rules
from brimline.store.base import Store
from brimline.store.rows import (
    PASS_BY,
    SPENDINGS,
    TOTAL_OF,
    CallRow,
    CompactionRow,
    SessionRow,
    ThreadRow,
)

TRIGGERS: dict[str | None, Trigger] = {"auto": "auto", "manual": "manual"}


async def restore_session(
    store: Store, agent: str, session: str, rules: Rules
) -> tuple[SessionState, SignalHistory]:
    """Return a session's state and signals, which are new if the store does not have it."""
    history = SignalHistory(await store.signals(session), await store.handoffs(session))
    state, row = SessionState(agent, session), await store.session(session)
    if row is None:
        return state, history
    state.is_new, state.machine = False, row.machine
    state.model, state.version = row.model, row.version
    state.project, state.parent, state.manager_id = row.project, row.parent, row.manager_id
    state.ended_at = row.ended_at if row.has_ended else None
    state.client.report = _reported(row)
    if row.env is not None:
        state.env = tuple(msgspec.json.decode(row.env, type=dict[str, str]).items())
    threads = await store.threads(session)
    for main in (thread for thread in threads if thread.thread == MAIN):
        state.restore(main, row.seen_at)
        state.files.restore_clears(await _calls_before_clears(store, session, main))
        figure = figure_of(main, rules.measure_of(session, agent, row.model))
        history.note_figure(main.cycle, figure, main.calls_left)
    if row.transcript is None:  # no file has its events: they are replayed from the store
        calls, compactions = await store.calls(session), await store.compactions(session)
        state.files.add_events([SessionSeen(version=row.version, title=row.title)])
        state.files.add_events(replay_rows(calls, compactions, threads))
    else:
        state.files.set_transcript(row.transcript)
    return state, history


def _reported(row: SessionRow) -> ClientReport:
    """Return what the client of a session reported; what was computed is computed again."""
    report = decode_report(row.client_report)
    is_reported = report.prompt_cache is not None and report.prompt_cache.origin == "reported"
    return report if is_reported else msgspec.structs.replace(report, prompt_cache=None)


async def _calls_before_clears(store: Store, session: str, main: ThreadRow) -> list[str]:
    """Return the main thread's last call in each cycle that no recorded compaction ended."""
    compactions = await store.compactions(session)
    cycles = set(range(main.cycle)) - {row.cycle for row in compactions if row.thread == MAIN}
    calls = await store.calls(session, MAIN) if cycles else []
    last_calls = {row.cycle: row.call for row in calls}
    return [last_calls[cycle] for cycle in cycles if cycle in last_calls]


async def replay_lost_calls(store: Store, state: SessionState) -> list[AnyEvent]:
    """Return the main thread's stored events before the first call of its file.

    After its transcript was moved away, a client writes a new one, without the calls until then. A
    file that begins with the first stored call is right: the client has removed others.
    """
    rows, first = await store.calls(state.id, MAIN), state.files.first_call
    ids = [row.call for row in rows]
    if first is not None:
        rows = rows[: ids.index(first) if first in ids else len(ids)]
    moved = {id for thread in state.folded.threads.values() for id in thread.calls}
    rows = [row for row in rows if row.call not in moved]  # the call of a compaction leaves it
    if not rows:
        return []
    threads = [] if first is not None else await store.threads(state.id)
    compactions = await store.compactions(state.id)
    mains = [each for each in threads if each.thread == MAIN]
    ended = [each for each in compactions if each.thread == MAIN]
    seen = SessionSeen(records_compactions=state.folded.records_compactions or None)
    return [seen, *replay_rows(rows, ended, mains)]


def replay_rows(
    calls: Sequence[CallRow], compactions: Sequence[CompactionRow], threads: Sequence[ThreadRow]
) -> Iterator[AnyEvent]:
    """Yield calls, spendings, the ends of cycles (also after the last call) and windows."""
    # One without tokens was stored before its call, and again with it.
    yield from (_spent(row) for row in calls if row.is_spending and row.usage != ZERO)
    calls = [row for row in calls if not row.is_spending]
    by_cycle = {(each.thread, each.cycle): each for each in compactions}
    last_calls = {row.thread: row.call for row in calls}
    models = {row.thread: row.model for row in threads}
    cycles: dict[str, int] = {}
    for row in (*calls, *threads):
        for cycle in range(cycles.get(row.thread, 0), row.cycle):
            yield from _cycle_end(row.thread, by_cycle.get((row.thread, cycle)))
        cycles[row.thread] = row.cycle
        if isinstance(row, CallRow):
            # Only the thread has the model as the user named it, which decides the window.
            is_last = last_calls[row.thread] == row.call
            asked_for = models.get(row.thread) if is_last else None
            yield Call(
                at=row.at,
                id=row.call,
                usage=row.usage,
                model=row.model,
                asked_for=asked_for,
                thread=row.thread,
                branch=row.branch,
                stored_cost=row.cost,
                stored_miss_cost=row.miss_cost,
            )
        elif row.window is not None and row.window_why == REPORTED:
            yield WindowReported(tokens=row.window, thread=row.thread)


def _spent(row: CallRow) -> Spent:
    return Spent(
        at=row.at,
        id=None if row.call.startswith(TOTAL_OF) else row.call.partition(PASS_BY)[0],
        usage=row.usage,
        model=row.model,
        thread=row.thread.removesuffix(SPENDINGS),
        stored_cost=row.cost,
    )


def _cycle_end(thread: str, row: CompactionRow | None) -> Iterator[AnyEvent]:
    """Yield the end of a cycle; an inferred one follows again from the calls."""
    if row is None:
        yield Cleared(thread=thread)
    elif not row.inferred:
        yield Compacted(
            at=row.at,
            thread=thread,
            trigger=TRIGGERS.get(row.trigger),
            before=row.before,
            after=row.after,
            overflow=row.overflow,
        )
