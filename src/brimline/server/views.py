"""What the HTTP API serves: rows of the store, as JSON says them."""

import msgspec

from brimline.inbox import Message
from brimline.store.base import CallRow, HandoffRow, SessionRow, SignalRow, Store, ThreadRow


class Health(msgspec.Struct, frozen=True):
    """How the daemon is."""

    status: str


class Status(msgspec.Struct, frozen=True):
    """What a running daemon says of itself."""

    version: str
    pid: int
    since: float
    address: str
    heard: int
    malformed: int
    dropped: int


class SessionView(msgspec.Struct, frozen=True):
    """A session with its threads; `last_handoff_path` is where its last document was."""

    session: SessionRow
    threads: list[ThreadRow]
    unread: int
    last_handoff_path: str | None


class Timeline(msgspec.Struct, frozen=True):
    """What happened in a session."""

    calls: list[CallRow]
    signals: list[SignalRow]


class HandoffView(msgspec.Struct, frozen=True):
    """A session's documents, the last one first."""

    handoffs: list[HandoffRow]


class Sent(msgspec.Struct, frozen=True):
    """A message that was queued."""

    id: str


class NewMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to be queued."""

    text: str
    urgent: bool = False
    sender: str = "user"


class NewHandoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document to be handed over, by its path on this machine."""

    path: str
    author: str = "agent"


class Problem(msgspec.Struct, frozen=True):
    """Why a request was not answered."""

    error: str
    hint: str | None = None


async def session_view(store: Store, row: SessionRow) -> SessionView:
    """A session as it is now."""
    threads = await store.threads(row.id)
    waiting = [m for m in await store.messages(row.id) if m.state in ("queued", "handed")]
    handoffs = await store.handoffs(row.id)
    return SessionView(row, threads, len(waiting), handoffs[0].path if handoffs else None)


async def timeline(store: Store, session: str) -> Timeline:
    """A session's calls and what was said about it."""
    return Timeline(await store.calls(session), await store.signals(session))


async def messages(store: Store, session: str) -> list[Message]:
    """A session's messages, whatever became of them."""
    return await store.messages(session)
