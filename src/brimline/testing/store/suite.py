"""The decorators that declare checks, and the rows that checks write."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeAlias

from brimline.context.inbox import BRIMLINE, Message, Urgency
from brimline.context.policy.signals import SignalKind
from brimline.store.base import RecordSignal, Store
from brimline.store.rows import (
    CallRow,
    CompactionRow,
    HandoffRow,
    SessionRow,
    SignalRow,
    ThreadRow,
)

Make: TypeAlias = Callable[[], Awaitable[Store]]
MakePair: TypeAlias = Callable[[], Awaitable[tuple[Store, Store]]]
Check: TypeAlias = Callable[[Make], Awaitable[None]]
PairCheck: TypeAlias = Callable[[MakePair], Awaitable[None]]

CHECKS: list[Check] = []  # for every store; the docstring of each names the property

PAIR_CHECKS: list[PairCheck] = []  # for two stores on the same file


def check(run: Callable[[Store], Awaitable[None]]) -> Check:
    """Add a check to CHECKS: it gets a store of its own, which is closed afterwards."""

    @wraps(run)
    async def checked(make: Make) -> None:
        store = await make()
        try:
            await run(store)
        finally:
            await store.close()

    CHECKS.append(checked)
    return checked


def pair_check(run: Callable[[Store, Store], Awaitable[None]]) -> PairCheck:
    """Add a check to PAIR_CHECKS: it gets two stores on the same file."""

    @wraps(run)
    async def checked(make: MakePair) -> None:
        one, other = await make()
        try:
            await run(one, other)
        finally:
            await one.close()
            await other.close()

    PAIR_CHECKS.append(checked)
    return checked


def session(
    id: str = "s",
    seen_at: float = 1.0,
    project: str | None = None,
    model: str | None = None,
    title: str | None = None,
) -> SessionRow:
    """Return a session of Claude Code."""
    return SessionRow(id, "claude", seen_at, project=project, model=model, title=title)


def thread(
    cycle: int, seq: int, sent: int | None = None, at: float = 1.0, session: str = "s"
) -> ThreadRow:
    """Return the main thread of a session."""
    return ThreadRow(session, "main", cycle, seq, "transcript", "measured", at=at, sent=sent)


def call(
    id: str,
    seq: int,
    output: int = 1,
    cycle: int = 0,
    thread: str = "main",
    session: str = "s",
) -> CallRow:
    return CallRow(session, thread, id, seq, cycle, 10, 20, 30, output)


def compaction(
    session: str = "s",
    thread: str = "main",
    cycle: int = 0,
    trigger: str | None = None,
    before: int | None = None,
    after: int | None = None,
    inferred: bool = False,
    overflow: bool = False,
) -> CompactionRow:
    return CompactionRow(
        session, thread, cycle, None, trigger, before, after, inferred=inferred, overflow=overflow
    )


def signal(
    session: str = "s",
    thread: str = "main",
    cycle: int = 0,
    kind: SignalKind = "level",
    level: float = 50.0,
    arm: int = 0,
) -> SignalRow:
    return SignalRow(session, thread, cycle, kind, at=1.0, level=level, arm=arm)


def message(
    id: str,
    session: str = "s",
    cycle: int | None = 0,
    thread: str | None = "main",
    urgency: Urgency = "sequential",
    sender: str = BRIMLINE,
) -> Message:
    """Return a level message; without a cycle, a message of a user."""
    text = f"text of {id}"
    return Message(
        id, session, text, at=1.0, urgency=urgency, sender=sender, thread=thread, cycle=cycle
    )


def fire(id: str, thread: str = "main") -> RecordSignal:
    """Return the write of a signal with one message."""
    return RecordSignal(signal(thread=thread), (message(id),))


def handoff(id: str, session: str = "s", at: float = 1.0) -> HandoffRow:
    """Return a document of the agent."""
    return HandoffRow(id, session, at, f"/{id}.md", "00", f"text of {id}", "agent", 0, 7)


async def states(store: Store) -> dict[str, str]:
    """Return the state of each message by its id."""
    return {message.id: message.state for message in await store.messages()}
