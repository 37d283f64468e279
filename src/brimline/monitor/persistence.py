"""The rows of a session, with their costs, and which of them the store does not have yet."""

import socket
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from math import fsum

import msgspec

from brimline.agents.observations import EnvironmentVariables, Observation
from brimline.context.cache_misses import MissFinder, prompt_changes
from brimline.context.events import MAIN, Call, Spent, is_compaction_thread
from brimline.context.prices import cost_of
from brimline.context.tracker import Reading, SpendingKey, Thread, find_loop, spending_key
from brimline.monitor.session_state import SessionState, calls_left_of
from brimline.store.base import PutCall, PutCompaction, PutSession, PutThread, Store, Write
from brimline.store.rows import (
    PASS_BY,
    SPENDINGS,
    TOTAL_OF,
    CallRow,
    CompactionRow,
    SessionRow,
    ThreadRow,
)

SEEN_EVERY_S = 10.0  # `seen_at` alone is written again after this
HOSTNAME = socket.gethostname()
TOKENS = ("input", "cache_read", "cache_write", "output", "cache_write_1h")
NOTHING_SPENT: dict[str, int | None] = {**dict.fromkeys(TOKENS, 0), "cost": None}


class CallCosts:
    """The costs of one thread's calls, whose rows are made again only for the last ones.

    The finder has seen all calls but the last, which a later copy may replace.
    """

    __slots__ = ("_finder", "_seen")

    def __init__(self) -> None:
        self._finder, self._seen = MissFinder(), 0

    def costs_from(self, thread: Thread, first: int) -> Iterator[tuple[float | None, float | None]]:
        """Yield cost and miss cost, in USD, of each call in memory from a place on."""
        costs = _sum_costs(thread, thread.calls_from(first))
        if is_compaction_thread(thread.name):  # these calls do not continue each other
            yield from ((cost, None) for cost in costs)
            return
        changes = prompt_changes(thread)
        if not thread.dropped.count <= self._seen <= first:
            self._finder, self._seen = MissFinder(thread.dropped.count), thread.dropped.count
        for place, call in enumerate(thread.calls_from(self._seen), self._seen):
            is_last = place + 1 == thread.call_count
            finder = copy(self._finder) if is_last else self._finder
            change, rewound_to = changes.get(place, (None, None))
            miss = finder.add(call, change, thread.calls.get(rewound_to or ""))
            self._seen = place if is_last else place + 1
            if place >= first:
                yield next(costs), miss.cost if miss else None


def _sum_costs(thread: Thread, calls: Iterable[Call]) -> Iterator[float | None]:
    """Yield the cost of each call with its other passes, in USD; None if no price is known."""
    passes: dict[str | None, list[Spent]] = {}
    for spent in thread.billed_spendings:
        passes.setdefault(spent.id, []).append(spent)
    for call in calls:
        costs = [cost_of(each) for each in (call, *passes.get(call.id, ()))]
        known = [cost.dollars for cost in costs if cost is not None]
        yield fsum(known) if known else None


class StoredRows:
    """What the store has of one session, so that only what is new is written.

    `host` is the host of a session that names none.
    """

    def __init__(self, host: str | None = HOSTNAME) -> None:
        self._host = host
        self._session: SessionRow | None = None
        self._pending_session: SessionRow | None = None
        self._readings: dict[str, Reading] = {}
        self._calls: dict[str, tuple[int, Call]] = {}
        self._costs: dict[str, CallCosts] = {}
        self._compactions: dict[tuple[str, int], CompactionRow] = {}
        self._spendings: dict[tuple[str, SpendingKey], tuple[Spent, bool]] = {}
        self._copied: set[str] = set()
        self._is_fork = False

    async def find_copies(self, store: Store, state: SessionState) -> None:
        """Find the calls of threads that are new here which another session made.

        A fork begins with the calls of its original. Calls that a program reported are its own:
        their ids may be unique in its session only.
        """
        if not state.files.has_files:
            return
        for name, thread in state.folded.threads.items():
            if name in self._calls or not thread.calls:
                continue
            ids = [*thread.calls, *(each.id for each in thread.spendings if each.id is not None)]
            copied = await store.copied_calls(state.id, ids)
            self._copied |= copied
            self._is_fork |= name == MAIN and bool(copied)

    def pending_writes(
        self, observation: Observation, state: SessionState, readings: Mapping[str, Reading]
    ) -> list[Write]:
        """Return the writes for what the store does not have, or has otherwise."""
        is_fork = self._is_fork or state.folded.is_fork
        row = _session_row(observation, state, self._host, is_fork)
        self._pending_session = row
        writes: list[Write] = [
            PutThread(_thread_row(state, name, reading))
            for name, reading in readings.items()
            if self._readings.get(name) != reading
        ]
        writes += [PutCall(call) for call in self._new_calls(state)]
        writes += [PutCall(spending) for spending in self._new_spendings(state)]
        writes += [
            PutCompaction(each)
            for each in _compaction_rows(state)
            if self._compactions.get((each.thread, each.cycle)) != each
        ]
        return [PutSession(row), *writes] if writes or self._differs(row) else []

    def mark_stored(self, state: SessionState, readings: Mapping[str, Reading]) -> None:
        self._session = self._pending_session
        self._readings.update(readings)
        self.mark_restored(state)

    def mark_restored(self, state: SessionState) -> None:
        """Note that the store has the calls, spendings and compactions of a state."""
        for name, thread in state.folded.threads.items():
            if (last := thread.calls.last) is not None:
                self._calls[name] = thread.call_count, last
        self._spendings = {
            (name, spending_key(each)): (each, self._is_pass(thread, each))
            for name, thread in state.folded.threads.items()
            for each in thread.spendings
        }
        self._compactions = {(row.thread, row.cycle): row for row in _compaction_rows(state)}

    def was_seen_lately(self, at: float) -> bool:
        """Return whether the stored `seen_at` is recent at a time."""
        return self._session is not None and at - self._session.seen_at < SEEN_EVERY_S

    def was_seen_before(self, at: float) -> bool:
        return self._session is not None and self._session.seen_at < at

    def forget_thread(self, thread: str) -> None:
        """Drop a thread: if it goes on, all of it is written again."""
        self._readings.pop(thread, None)
        self._calls.pop(thread, None)
        self._costs.pop(thread, None)
        for key in [key for key in self._spendings if key[0] == thread]:
            del self._spendings[key]

    def _differs(self, row: SessionRow) -> bool:
        known = self._session
        if known is None or not self.was_seen_lately(row.seen_at):
            return True
        return msgspec.structs.replace(row, seen_at=known.seen_at) != known

    def _new_calls(self, state: SessionState) -> Iterator[CallRow]:
        """Return the calls that are not stored yet, and the last stored one if it changed."""
        for name, thread in state.folded.threads.items():
            first, last = self._calls.get(name, (0, None))
            if last is not None and thread.calls.get(last.id) != last:
                first = first - 1 if last.id in thread.calls else 0
            first = min(first, self._first_with_late_pass(thread, first))
            if first < thread.call_count:
                self._copied |= {each.id for each in thread.calls_from(first) if each.is_copy}
                costs = self._costs.setdefault(name, CallCosts())
                rows = _call_rows(state.id, thread, first, costs)
                yield from map(self._without_cost_of_copies, rows)

    def _first_with_late_pass(self, thread: Thread, first: int) -> int:
        """Return the place of the first stored call of which another pass was seen since."""
        late = {each.id for each, known in self._with_stored(thread) if known is None}
        late -= {None, *(call.id for call in thread.calls_from(first))}
        if not late:
            return first
        places = (
            place for place, id in enumerate(thread.calls, thread.dropped.count) if id in late
        )
        return next(places, first)

    def _new_spendings(self, state: SessionState) -> Iterator[CallRow]:
        """Yield what was spent beside calls, or by their other passes, and is not stored yet."""
        for thread in state.folded.threads.values():
            billed_spendings = thread.billed_spendings
            for (each, known), billed in zip(
                self._with_stored(thread), billed_spendings, strict=True
            ):
                is_pass = self._is_pass(thread, each)
                if (each, is_pass) == known:
                    continue
                row = _spending_row(state.id, thread, each, billed)
                if each.id in self._copied:
                    row = msgspec.structs.replace(row, **NOTHING_SPENT)
                yield row
                if known is not None and is_pass and not known[1] and each.id is not None:
                    # It was stored before its call, whose row has the cost from now on.
                    yield msgspec.structs.replace(row, call=each.id, **NOTHING_SPENT)

    def _with_stored(self, thread: Thread) -> Iterator[tuple[Spent, tuple[Spent, bool] | None]]:
        """Yield each spending, with what is stored of it: it, and whether it is a call's pass."""
        for each in thread.spendings:
            yield each, self._spendings.get((thread.name, spending_key(each)))

    def _is_pass(self, thread: Thread, spent: Spent) -> bool:
        """Return whether it is another pass of a call, which may have left the memory since."""
        known = self._spendings.get((thread.name, spending_key(spent)))
        return spent.id in thread.calls or (known is not None and known[1])

    def _without_cost_of_copies(self, row: CallRow) -> CallRow:
        if row.call not in self._copied:
            return row
        return msgspec.structs.replace(row, cost=None, miss_cost=None, counted=False)


def _session_row(
    observation: Observation, state: SessionState, host: str | None, is_fork: bool
) -> SessionRow:
    """Return the row of a session; one that ended was last seen then."""
    return SessionRow(
        id=state.id,
        agent=state.agent,
        seen_at=observation.at if state.ended_at is None else state.ended_at,
        # The machine that takes telemetry may be another than the client's.
        host=state.host or (None if state.is_telemetry else host),
        project=state.project,
        model=state.model_of(MAIN),
        version=state.client_version,
        title=state.folded.title,
        transcript=state.files.transcript,
        parent=state.parent,
        ended_at=state.ended_at,
        problem=state.problem,
        manager_id=state.manager_id,
        user=state.user,
        team=state.team,
        client_report=state.client_report.encode(),
        env=encode_variables(state.env),
        is_fork=is_fork,
    )


def encode_variables(env: EnvironmentVariables | None) -> str | None:
    return None if env is None else msgspec.json.encode(dict(env)).decode()


def _thread_row(state: SessionState, name: str, reading: Reading) -> ThreadRow:
    thread = state.folded.threads.get(name)
    left = calls_left_of(state, name, reading)
    loop = find_loop(thread) if thread else None
    return ThreadRow(
        session=state.id,
        thread=name,
        cycle=reading.cycle,
        seq=state.next_seq(),
        source=reading.source,
        state=reading.state,
        at=reading.at,
        sent=reading.sent,
        held=reading.held,
        window=reading.window.tokens if reading.window else None,
        window_why=reading.window.why if reading.window else None,
        limit=reading.limit.tokens if reading.limit else None,
        limit_why=reading.limit.explanation if reading.limit else None,
        percent=reading.percent,
        percent_raw=reading.percent_raw,
        percent_of_limit=reading.percent_of_limit,
        peak_sent=thread.peak_sent if thread else None,
        calls=thread.call_count if thread else 0,
        model=thread.model if thread else None,
        pending=reading.pending,
        calls_left=left and left.calls,
        window_origin=reading.window.origin if reading.window else None,
        limit_origin=reading.limit.origin if reading.limit else None,
        title=thread.title if thread else None,
        loop=loop and loop.compactions,
        kept=loop and loop.kept,
        branch=thread.calls.last.branch if thread and thread.calls.last else None,
    )


def _call_rows(session: str, thread: Thread, first: int, costs: CallCosts) -> Iterator[CallRow]:
    """Yield the rows of a thread's calls from a place on, as far as they are in memory."""
    first = max(first, thread.dropped.count)
    calls = zip(thread.calls_from(first), costs.costs_from(thread, first), strict=True)
    for place, (call, (cost, miss_cost)) in enumerate(calls, first):
        yield CallRow(
            session=session,
            thread=thread.name,
            call=call.id,
            seq=place,
            cycle=thread.cycle_of(place),
            input=call.usage.input,
            cache_read=call.usage.cache_read,
            cache_write=call.usage.cache_write,
            output=call.usage.output,
            model=call.model,
            at=call.at,
            cache_write_1h=call.usage.cache_write_1h,
            cost=cost,
            miss_cost=miss_cost,
            branch=call.branch,
        )


def _spending_row(session: str, thread: Thread, spent: Spent, billed: Spent) -> CallRow:
    """Return the row of a spending; `billed` has the model and the time of its thread.

    Those without an id are added up by model and service tier: their row is written again with
    each. The cost of another pass of a call is in the call's row.
    """
    cost, id = cost_of(billed), spent.id
    own_call = None if id is None else thread.calls.get(id)
    if id is None:
        id = f"{TOTAL_OF}{spent.model or ''}"
        id += f" {spent.service_tier}" if spent.service_tier else ""
    elif own_call is not None:
        id = f"{id}{PASS_BY}{spent.model or ''} {spent.service_tier or ''}"
    call = own_call or thread.last
    return CallRow(
        session=session,
        thread=f"{spent.thread}{SPENDINGS}",
        call=id,
        seq=0,
        cycle=0,
        input=spent.usage.input,
        cache_read=spent.usage.cache_read,
        cache_write=spent.usage.cache_write,
        output=spent.usage.output,
        model=spent.model,
        at=billed.at,
        cache_write_1h=spent.usage.cache_write_1h,
        cost=None if cost is None else cost.dollars if own_call is None else 0.0,
        branch=call.branch if call else None,
        counted=False,
    )


def _compaction_rows(state: SessionState) -> Iterator[CompactionRow]:
    """Yield the rows of all compactions that are in memory."""
    threads = state.folded.threads.values()
    for name, each in [(thread.name, each) for thread in threads for each in thread.compactions]:
        yield CompactionRow(
            session=state.id,
            thread=name,
            cycle=each.cycle,
            at=each.at,
            trigger=each.trigger,
            before=each.before,
            after=each.after,
            model=each.model,
            version=each.version or state.client_version,
            inferred=each.inferred,
            overflow=each.overflow,
        )
