"""The store's interface: writes, and queries.

A list of writes is one transaction. Each write has a key, which makes it idempotent: a signal that
is stored already has no effect, nor have its messages, even if several processes write it.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from brimline.context.inbox import Message, MessageState
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow


class PutSession(msgspec.Struct, frozen=True):
    """Store a session; fields that are None stay as they were, `seen_at` never goes back.

    `is_fork` goes from not set to set, never back.
    """

    row: SessionRow


class PutThread(msgspec.Struct, frozen=True):
    """Store a thread; has no effect if a later version, or the same, is stored."""

    row: ThreadRow


class PutCall(msgspec.Struct, frozen=True):
    """Store a call; has no effect if it is stored unchanged, or with a higher (cycle, seq).

    Of two copies with the same (cycle, seq) the one that is written last counts.
    """

    row: CallRow


class PutCompaction(msgspec.Struct, frozen=True):
    """Store a compaction; fields that are None stay as they were.

    `inferred` goes from set to not set, `overflow` from not set to set, never back. Has no effect
    if nothing is new.
    """

    row: CompactionRow


class RecordSignal(msgspec.Struct, frozen=True):
    """Store a signal and, if it is new, queue its messages, each by its id."""

    signal: SignalRow
    messages: tuple[Message, ...] = ()


class CancelMessages(msgspec.Struct, frozen=True):
    """Cancel the pending messages of a thread that belong to this cycle or an earlier one."""

    session: str
    thread: str
    cycle: int


class QueueMessage(msgspec.Struct, frozen=True):
    """Queue a message by its id; the store sets its order, which grows, perhaps with gaps."""

    message: Message


class MarkMessage(msgspec.Struct, frozen=True):
    """Change the state of a message; has no effect if it is in none of the states `since`.

    `to="handed"` stores `at` as `handed_at`. With `handed_at` it has an effect only if the message
    was last handed out at that time: of two that hand it out again, one wins. `text` replaces the
    stored one: it is what the agent gets.
    """

    id: str
    to: MessageState
    since: tuple[MessageState, ...]
    at: float
    handed_at: float | None = None
    text: str | None = None


class MoveMessage(msgspec.Struct, frozen=True):
    """Move a queued message to another session, in its order; no effect in other states."""

    id: str
    to: str


class PutHandoff(msgspec.Struct, frozen=True):
    """Store a document by its id; has no effect if the id is stored."""

    row: HandoffRow


class UseHandoff(msgspec.Struct, frozen=True):
    """Record when a document was re-injected; has no effect if a later time is stored."""

    id: str
    at: float


class EventKeys(msgspec.Struct, frozen=True):
    """Record the keys of events, each another; has no effect if one of them is stored.

    A store may forget keys, but not the last 200,000.
    """

    keys: tuple[str, ...]
    at: float


class PutCursor(msgspec.Struct, frozen=True):
    """Store how far a reader has come; has no effect if it has come that far already."""

    name: str
    position: int


class ExpectRevision(msgspec.Struct, frozen=True):
    """Advance a session's revision by one; has no effect if the stored one is another.

    Monitors that share a store notice with it that another one has changed the session.
    """

    session: str
    revision: int


class ClaimSession(msgspec.Struct, frozen=True):
    """Record that a machine's daemon reports a session from now on, in place of telemetry.

    The calls, threads and compactions that telemetry has reported are deleted, and the revision is
    advanced. Has no effect if a machine is stored. A session that is not stored gets its machine
    from the PutSession that follows.
    """

    session: str
    machine: str


class SetReceive(msgspec.Struct, frozen=True):
    """Store for all sessions that a machine reports what it accepts from the server.

    Has no effect if all have it.
    """

    machine: str
    receive: str


class ForgetSessions(msgspec.Struct, frozen=True):
    """Delete every session that was last seen before a time, with all that belongs to it."""

    before: float


Write: TypeAlias = (
    PutSession
    | PutThread
    | PutCall
    | PutCompaction
    | RecordSignal
    | CancelMessages
    | QueueMessage
    | MarkMessage
    | MoveMessage
    | PutHandoff
    | UseHandoff
    | EventKeys
    | PutCursor
    | ExpectRevision
    | ClaimSession
    | SetReceive
    | ForgetSessions
)


class Store(Protocol):
    """A store. Queries see everything that was written before them.

    Queries with an optional session return the rows of all sessions if it is None.
    """

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Apply the writes in one transaction, in order; return for each if it had an effect.

        `EventKeys` or an `ExpectRevision` without effect stops the list: the rest has no effect
        either. If this raises, none is stored. If the caller is cancelled, they may be stored or
        not.
        """
        ...

    async def sessions(self) -> list[SessionRow]:
        """Every session, the last seen first."""
        ...

    async def session(self, id: str) -> SessionRow | None: ...

    async def threads(self, session: str | None = None) -> list[ThreadRow]: ...

    async def main_threads(self, seen_since: float) -> list[tuple[SessionRow, ThreadRow]]:
        """The sessions seen since a time that have a main thread, with it, in any order."""
        ...

    async def calls(self, session: str, thread: str | None = None) -> list[CallRow]:
        """The calls of a session, by thread, in their order."""
        ...

    async def costs(self, session: str | None = None) -> dict[str, float]:
        """What the calls and spendings of each session cost in USD, as far as prices are known.

        Sessions of which no price is known are left out.
        """
        ...

    async def copied_calls(self, session: str, calls: Sequence[str]) -> set[str]:
        """Which of a session's calls are in the sums of others that begin with the same call.

        The first one is the session's first; the others may be spendings, too.
        """
        ...

    async def compactions(self, session: str | None = None) -> list[CompactionRow]:
        """Compactions by session and thread, in their order."""
        ...

    async def signals(self, session: str | None = None) -> list[SignalRow]:
        """Signals in the order in which they fired."""
        ...

    async def signals_after(self, position: int, limit: int) -> list[tuple[int, SignalRow]]:
        """The first signals after a position, each with its own; a reader misses none."""
        ...

    async def messages(self, session: str | None = None) -> list[Message]:
        """Messages of every state, in their order."""
        ...

    async def pending_messages(self, session: str | None = None) -> list[Message]:
        """Messages that are queued, or handed and not known to be delivered, in their order."""
        ...

    async def machine_deliveries(
        self, machine: str, since: float
    ) -> tuple[list[Message], list[HandoffRow]]:
        """What people sent to the sessions that a machine reports, each in its order.

        Pending messages, and unused documents that have a text and are not older than `since`. No
        messages of Brimline itself: those to a machine's sessions are queued there.
        """
        ...

    async def last_handoffs(self, session: str | None = None) -> list[HandoffRow]:
        """The last document of each session, the newest first; their texts are left empty."""
        ...

    async def handoffs(self, session: str) -> list[HandoffRow]:
        """A session's documents, the last one first."""
        ...

    async def known_events(self, keys: Sequence[str]) -> set[str]:
        """Which of the events' keys are stored."""
        ...

    async def cursor(self, name: str) -> int:
        """How far a reader has come; 0 if that is not stored."""
        ...

    async def revision(self, session: str) -> int:
        """The revision of a session; 0 if it has none."""
        ...

    async def changes(self, after: int = 0, seen_since: float = 0.0) -> list[tuple[int, str]]:
        """The sessions that changed since a mark: each once, with the mark of its last change.

        They are in the order of marks. A stream that continues from any old mark misses no session.
        With `seen_since` those are left out that were last seen before that time.
        """
        ...

    async def close(self) -> None:
        """Finish the work under way, and close."""
        ...


def apply_in_order(writes: Sequence[Write], apply: Callable[[Write], bool]) -> list[bool]:
    """Apply writes until one without effect stops them; return for each whether it had one."""
    effects = [False] * len(writes)
    for place, write in enumerate(writes):
        effects[place] = apply(write)
        if isinstance(write, EventKeys | ExpectRevision) and not effects[place]:
            break
    return effects


def hash_id(*parts: str) -> str:
    """Return an id that is the same for the same parts: what is written twice is stored once."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
