"""Viewers of the event stream that keep every session as a page does."""

import asyncio
from collections.abc import AsyncIterable, Callable

import msgspec

from brimline.api.broadcast import ChangeBroadcaster
from brimline.api.session_cache import SessionCache
from brimline.api.session_change import Json, apply_change
from brimline.api.views import Views
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.store.base import PutSession, PutThread, Store, Write
from brimline.store.rows import SessionRow, ThreadRow
from brimline.store.sqlite import MemoryStore

NOW = 1_000_000.0
INTERVAL_S = 0.01


class Viewer:
    """Reads events; keeps the view of every session and the names of the events."""

    def __init__(self) -> None:
        self.views: dict[str, Json] = {}
        self.events: list[str] = []
        self.marks: list[int] = []
        self.frames: list[bytes] = []

    def read(self, data: bytes) -> None:
        """Process whole events."""
        self.frames.append(data)
        for text in data.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in text.split("\n") if text)
            if "event" not in fields:
                continue
            self.events.append(fields["event"])
            self.marks.append(int(fields["id"]))
            content: Json = msgspec.json.decode(fields["data"])
            if fields["event"] == "session":
                self.views[content["session"]["id"]] = content
            else:
                self.views[content["id"]] = apply_change(self.views[content["id"]], content)

    async def follow(self, stream: AsyncIterable[bytes]) -> None:
        """Read until the stream ends."""
        async for data in stream:
            self.read(data)


class Server:
    """Cache and broadcaster on a store, with a clock that stands still."""

    def __init__(self, store: Store | None = None, max_backlog_bytes: int = 4 << 20) -> None:
        self.store = store or MemoryStore()
        self.now = NOW
        self.stopping = False
        rules = Rules()
        self.monitor = Monitor(self.store, lambda: self.now, rules)
        self.views = Views(self.store, self.monitor, rules)
        self.cache = SessionCache(self.store, self.views, lambda: self.now)
        self.broadcaster = ChangeBroadcaster(
            self.cache,
            lambda: self.stopping,
            lambda: self.now,
            interval_s=INTERVAL_S,
            heartbeat_s=0.2,
            max_backlog_bytes=max_backlog_bytes,
        )

    async def put(self, *ids: str, sent: int = 1, seen_at: float = NOW) -> None:
        """Write sessions whose main thread sent this many tokens."""
        writes: list[Write] = []
        for id in ids:
            row = ThreadRow(id, "main", 0, sent, "transcript", "measured", seen_at, sent)
            writes += [PutSession(SessionRow(id, "claude", seen_at)), PutThread(row)]
        await self.store.write(writes)

    def start_viewer(self, viewer: Viewer, after: int = 0) -> asyncio.Task[None]:
        return asyncio.create_task(viewer.follow(self.broadcaster.follow(after)))

    async def current_views(self) -> dict[str, Json]:
        """Return every session as GET /v1/sessions/ID gives it."""
        rows = await self.store.sessions()
        encoded = {row.id: msgspec.json.encode(await self.views.view(row)) for row in rows}
        return {id: msgspec.json.decode(view) for id, view in encoded.items()}


async def wait_until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(INTERVAL_S / 2)
