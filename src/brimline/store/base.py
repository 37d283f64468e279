"""What is kept, and what a store does with it.

A store is told what to write as a list, carried out in one transaction. Each item has a key, and
the key decides what happens once: a signal that is there already has no effect again, nor have its
messages, whoever tries, however often, from however many processes.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import msgspec

from brimline.inbox import Message, MessageState
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow


class PutSession(msgspec.Struct, frozen=True):
    """Keep what is new about a session; what is None stays as it was, `seen_at` never goes back."""

    row: SessionRow


class PutThread(msgspec.Struct, frozen=True):
    """Keep a thread as it is now; has no effect where a later one, or the same, is there."""

    row: ThreadRow


class PutCall(msgspec.Struct, frozen=True):
    """Keep a call; has no effect where it is there just so, or as a copy with higher (cycle, seq).

    Of two copies with the same (cycle, seq) the one that is written last counts.
    """

    row: CallRow


class PutCompaction(msgspec.Struct, frozen=True):
    """Keep what is new about a compaction; a field that is None says nothing new.

    `inferred` goes from set to not set, never back. Has no effect where nothing is new.
    """

    row: CompactionRow


class RecordSignal(msgspec.Struct, frozen=True):
    """Keep a signal and, if it is new, queue what it has to say: each message by its id."""

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

    `to="handed"` keeps `at` as `handed_at`. With `handed_at` it has an effect only where the
    message was last handed out just then: of two that hand it out again, one wins.
    """

    id: str
    to: MessageState
    since: tuple[MessageState, ...]
    at: float
    handed_at: float | None = None


class MoveMessage(msgspec.Struct, frozen=True):
    """Have a message that is queued wait for another session, in its order; has no effect else."""

    id: str
    to: str


class PutHandoff(msgspec.Struct, frozen=True):
    """Keep a document, by its id; has no effect where there is one of that id."""

    row: HandoffRow


class UseHandoff(msgspec.Struct, frozen=True):
    """A document was brought back to its session; has no effect where that was later before."""

    id: str
    at: float


class EventKey(msgspec.Struct, frozen=True):
    """Remember an event by its key; has an effect the first time alone.

    A store remembers at least the last 200,000: by then nobody brings an event again.
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
    """Where everything is kept. Reading sees everything that was written before it."""

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Carry these out in one transaction, in order; for each, whether it had an effect.

        An `Once` that has none stops what follows it: the rest has no effect either. When this
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
        """What was said, in the order in which it was."""
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
        """Whether an event was brought, by the key of its `Once`."""
        ...

    async def changes(self, after: int = 0) -> list[tuple[int, str]]:
        """The sessions that changed since a mark, and the new marks: what a stream goes on from.

        Each session stands there once, with the mark of its last change, in the order of marks.
        That is all the history there is: it is as long as there are sessions, and whoever goes on
        from an old mark misses no session that changed.
        """
        ...

    async def close(self) -> None:
        """Finish what is under way, and let go."""
        ...
