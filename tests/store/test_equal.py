"""SQLite, PostgreSQL and a model in dicts hold the same after any sequence of writes."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from brimline.context.inbox import Message
from brimline.store.base import (
    CancelMessages,
    ClaimSession,
    EventKeys,
    ExpectRevision,
    ForgetSessions,
    MarkMessage,
    MoveMessage,
    PutCall,
    PutCompaction,
    PutCursor,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    RecordSignal,
    SetReceive,
    Store,
    UseHandoff,
    Write,
)
from brimline.store.postgres import open_postgres
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow
from brimline.store.sqlite import SqliteStore
from hypothesis_examples import examples

from .model import StoreModel

# Few names and small numbers, so that keys meet; any text and any number where there is no key.
NAMES = st.sampled_from(["a", "b"])
KEYS = st.lists(NAMES, min_size=1, max_size=2, unique=True).map(tuple)
SMALL = st.integers(0, 3)
TIMES = st.sampled_from([0.0, 1.5, 2.5])
# PostgreSQL does not store NUL in a text.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
COUNTS = st.integers(0, 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
STATES = st.sampled_from(["queued", "handed", "delivered", "cancelled", "expired"])
KINDS = st.sampled_from(["level", "compacted"])


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """The value, or None."""
    return st.none() | strategy


SESSIONS = st.builds(
    SessionRow,
    NAMES,
    NAMES,
    TIMES,
    model=maybe(TEXTS),
    title=maybe(NAMES),
    parent=maybe(NAMES),
    ended_at=maybe(TIMES),
    problem=maybe(TEXTS),
    machine=maybe(NAMES),
    receive=maybe(TEXTS),
    client_report=maybe(TEXTS),
    env=maybe(TEXTS),
    is_fork=st.booleans(),
)
THREADS = st.builds(
    ThreadRow,
    NAMES,
    st.sampled_from(["a", "main"]),
    SMALL,
    SMALL,
    TEXTS,
    TEXTS,
    sent=maybe(COUNTS),
    limit=maybe(COUNTS),
    percent=maybe(FLOATS),
    model=maybe(TEXTS),
    window_origin=maybe(TEXTS),
    limit_origin=maybe(TEXTS),
    title=maybe(TEXTS),
    loop=maybe(SMALL),
    kept=maybe(COUNTS),
    branch=maybe(TEXTS),
)
COMPACTIONS = st.builds(
    CompactionRow,
    NAMES,
    NAMES,
    SMALL,
    maybe(TIMES),
    maybe(NAMES),
    maybe(COUNTS),
    maybe(SMALL),
    inferred=st.booleans(),
    overflow=st.booleans(),
)
CALLS = st.builds(
    CallRow,
    NAMES,
    NAMES,
    NAMES,
    SMALL,
    SMALL,
    SMALL,
    COUNTS,
    SMALL,
    SMALL,
    maybe(NAMES),
    maybe(TIMES),
    cost=maybe(SMALL),
    branch=maybe(NAMES),
    counted=st.booleans(),
)
SIGNALS = st.builds(
    SignalRow,
    NAMES,
    NAMES,
    SMALL,
    KINDS,
    TIMES,
    st.sampled_from([0.0, 50.0]),
    TEXTS,
    arm=st.integers(0, 1),
)
IDS = st.sampled_from(["m1", "m2", "m3", "m4", "m5"])
MESSAGES = st.builds(
    Message,
    IDS,
    NAMES,
    TEXTS,
    TIMES,
    thread=maybe(NAMES),
    cycle=maybe(SMALL),
    level=maybe(FLOATS),
    expires=maybe(FLOATS),
)
HANDOFFS = st.builds(
    HandoffRow, IDS, NAMES, TIMES, TEXTS, TEXTS, TEXTS, TEXTS, SMALL, SMALL, st.booleans()
)
MARKS = st.builds(
    MarkMessage, IDS, STATES, st.lists(STATES, max_size=3).map(tuple), TIMES, maybe(TIMES)
)
WRITES: st.SearchStrategy[Write] = st.one_of(
    st.builds(PutSession, SESSIONS),
    st.builds(PutThread, THREADS),
    st.builds(PutCall, CALLS),
    st.builds(PutCompaction, COMPACTIONS),
    st.builds(RecordSignal, SIGNALS, st.lists(MESSAGES, max_size=2).map(tuple)),
    st.builds(CancelMessages, NAMES, NAMES, SMALL),
    st.builds(QueueMessage, MESSAGES),
    MARKS,
    st.builds(MoveMessage, IDS, NAMES),
    st.builds(PutHandoff, HANDOFFS),
    st.builds(UseHandoff, IDS, TIMES),
    st.builds(EventKeys, KEYS, TIMES),
    st.builds(ExpectRevision, NAMES, SMALL),
    st.builds(ClaimSession, NAMES, NAMES),
    st.builds(SetReceive, NAMES, TEXTS),
    st.builds(PutCursor, NAMES, SMALL),
    st.builds(ForgetSessions, st.sampled_from([0.5, 2.0])),
)


async def everything(store: Store) -> list[object]:
    """Everything that can be read, without numbers that a store may choose."""
    waiting, messages = await store.pending_messages(), await store.messages()
    assert [row for row in messages if row.state in ("queued", "handed")] == waiting
    read = await asyncio.gather(
        store.sessions(),
        store.threads(),
        store.signals(),
        store.compactions(),
        store.last_handoffs(),
        store.costs(),
        store.costs("a"),
        *(ask(name) for name in "ab" for ask in (store.session, store.threads, store.signals)),
        *(ask(name) for name in "ab" for ask in (store.calls, store.handoffs)),
        *(ask(name) for name in "ab" for ask in (store.compactions, store.last_handoffs)),
        store.calls("a", "b"),
        store.known_events(["a", "b"]),
        *(ask(name) for name in "ab" for ask in (store.revision, store.cursor)),
    )
    assert [row for _, row in await store.signals_after(0, 1_000)] == await store.signals()
    mains = sorted(await store.main_threads(1.0), key=lambda pair: pair[0].id)
    ordered = [msgspec.structs.replace(row, order=place) for place, row in enumerate(messages)]
    return [*read, mains, ordered]


async def changed(store: Store, after: int) -> set[str]:
    """The sessions that changed since a mark."""
    return {session for _, session in await store.changes(after)}


async def last(store: Store) -> int:
    """The newest mark."""
    return max((mark for mark, _ in await store.changes()), default=0)


class Equal(RuleBasedStateMachine):
    """A store side by side with the model."""

    def __init__(self, open_store: Callable[[], Awaitable[Store]]) -> None:
        super().__init__()
        self._open_store = open_store
        self._runner = asyncio.Runner()
        self._model = StoreModel()
        self._store = self._runner.run(self._open())

    async def _open(self) -> Store:
        return await self._open_store()

    @rule(writes=st.lists(WRITES, max_size=6))
    def write(self, writes: list[Write]) -> None:
        """A write has the same effect on both, and changes the same sessions."""
        self._runner.run(self._write(writes))

    async def _write(self, writes: list[Write]) -> None:
        marks = await last(self._model), await last(self._store)
        assert await self._store.write(writes) == await self._model.write(writes)
        assert await changed(self._store, marks[1]) == await changed(self._model, marks[0])

    @rule(lists=st.lists(st.lists(WRITES, max_size=3), max_size=4))
    def write_at_once(self, lists: list[list[Write]]) -> None:
        """Concurrent lists have the effect of sequential ones."""
        self._runner.run(self._write_at_once(lists))

    async def _write_at_once(self, lists: list[list[Write]]) -> None:
        results = await asyncio.gather(*map(self._store.write, lists))
        assert results == await asyncio.gather(*map(self._model.write, lists))

    @rule()
    def reopen(self) -> None:
        """Closing and opening changes nothing."""
        self._runner.run(self._store.close())
        self._store = self._runner.run(self._open())

    @invariant()
    def equal(self) -> None:
        """Both hold the same."""
        self._runner.run(self._compare())

    async def _compare(self) -> None:
        assert await everything(self._store) == await everything(self._model)

    def teardown(self) -> None:
        self._runner.run(self._store.close())
        self._runner.close()


class SqliteEqual(Equal):
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        super().__init__(partial(SqliteStore.open, Path(self._folder.name) / "brimline.db"))

    def teardown(self) -> None:
        super().teardown()
        self._folder.cleanup()


@pytest.mark.hypothesis
def test_sqlite_holds_the_same_as_the_model() -> None:
    run_state_machine_as_test(SqliteEqual, settings=settings(examples(25), stateful_step_count=20))


@pytest.mark.hypothesis
def test_postgres_holds_the_same_as_the_model(shared_database: str) -> None:
    organisations = count(1)

    class PostgresEqual(Equal):
        def __init__(self) -> None:
            name = f"equal {next(organisations)}"
            super().__init__(partial(open_postgres, shared_database, name))

    run_state_machine_as_test(
        PostgresEqual, settings=settings(examples(10), stateful_step_count=10)
    )
