"""The store's interface: writes, and queries.

Writes come as a list, which is carried out in one transaction. Each write has a key, which makes it
idempotent: a signal that is stored already has no effect, nor have its messages, however often and
from however many processes it is written.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import msgspec

from brimline.inbox import Message, MessageState
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow


class PutSession(msgspec.Struct, frozen=True):
    """Store a session; fields that are None stay as they were, `seen_at` never goes back."""

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

    `inferred` goes from set to not set, never back. Has no effect if nothing is new.
    """

    row: CompactionRow


class RecordSignal(msgspec.Struct, frozen=True):
    """Store a signal and, if it is new, queue its messages, each by its id."""

    signal: SignalRow
    messages: tuple[Message, ...] = ()


class CancelMessages(msgspec.Struct, frozen=True):
    """A cycle has ended: the level messages of this session's thread up to it are cancelled.

    Those are the messages with a cycle that are queued, or handed and not known to be delivered.
    """

    session: str
    thread: str
    cycle: int


class QueueMessage(msgspec.Struct, frozen=True):
    """Queue a message, by its id; its order is given by the store, growing, perhaps with gaps."""

    message: Message


class MarkMessage(msgspec.Struct, frozen=True):
    """Bring a message from one of these states to another; has no effect from any other.

    `to="handed"` keeps `at` as `handed_at`. With `handed_at` it has an effect only if the
    message was last handed out just then: of two that hand it out again, one wins.
    """

    id: str
    to: MessageState
    since: tuple[MessageState, ...]
    at: float
    handed_at: float | None = None


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


class EventKey(msgspec.Struct, frozen=True):
    """Remember an event by its key; has an effect the first time alone.

    A store remembers at least the last 200,000.
    """

    key: str
    at: float


class ForgetSessions(msgspec.Struct, frozen=True):
    """Forget every session that was last seen before a time, with all that belongs to it."""

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
    | EventKey
    | ForgetSessions
)


class Store(Protocol):
    """A store. Queries see everything that was written before them."""

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Carry these out in one transaction, in order; for each, whether it had an effect.

        An `EventKey` without effect stops what follows it: the rest has no effect either. When this
        returns they are kept; when it raises none of them is. A caller that is cancelled while it
        waits does not know: they may be carried out.
        """
        ...

    async def sessions(self) -> list[SessionRow]:
        """Every session, the last seen first."""
        ...

    async def session(self, id: str) -> SessionRow | None:
        """One session."""
        ...

    async def threads(self, session: str | None = None) -> list[ThreadRow]:
        """The threads of a session, or of all."""
        ...

    async def calls(self, session: str, thread: str | None = None) -> list[CallRow]:
        """The calls of a session, by thread, in their order."""
        ...

    async def compactions(self, session: str | None = None) -> list[CompactionRow]:
        """The compactions of a session, or of all: by session and thread, in their order."""
        ...

    async def signals(self, session: str | None = None) -> list[SignalRow]:
        """Signals in the order in which they fired."""
        ...

    async def messages(self, session: str | None = None) -> list[Message]:
        """Messages in their order, whatever became of them."""
        ...

    async def pending_messages(self, session: str | None = None) -> list[Message]:
        """Messages that are queued, or handed and not known to be delivered, in their order."""
        ...

    async def last_handoffs(self, session: str | None = None) -> list[HandoffRow]:
        """The last document of a session, or of each; its text is left empty."""
        ...

    async def handoffs(self, session: str) -> list[HandoffRow]:
        """A session's documents, the last one first."""
        ...

    async def has_event(self, key: str) -> bool:
        """Return whether an `EventKey` with this key is stored."""
        ...

    async def changes(self, after: int = 0) -> list[tuple[int, str]]:
        """The sessions that changed since a mark, and the new marks: what a stream goes on from.

        Each session stands there once, with the mark of its last change, in the order of marks.
        That is all the history there is: it is as long as there are sessions, and whoever goes on
        from an old mark misses no session that changed.
        """
        ...

    async def close(self) -> None:
        """Finish the work under way, and close."""
        ...
