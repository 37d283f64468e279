"""A machine with a store and an uplink, in this process, to a server's routes on a store."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from brimline.api.uplink import UplinkRoutes
from brimline.context.inbox import Message
from brimline.daemon.http_client import MAX_REPLY_BYTES
from brimline.daemon.uplink.exchange import Uplink
from brimline.daemon.uplink.failure import UplinkFailed
from brimline.daemon.uplink.outbox import Outbox
from brimline.daemon.uplink.protocol import UplinkBatch, UplinkReply
from brimline.settings import UplinkSettings
from brimline.store.base import PutCall, PutSession, PutThread, QueueMessage, Write
from brimline.store.rows import CallRow, SessionRow, ThreadRow
from brimline.store.sqlite import MemoryStore, SqliteStore

URL = "http://localhost"
ResultT = TypeVar("ResultT")


class FakeSender:
    """Passes batches to a server's routes as bytes; `fail` are what the next ones end with.

    A failure "lost" loses the reply after the server has stored the batch.
    """

    def __init__(self, routes: UplinkRoutes) -> None:
        self.routes = routes
        self.batches: list[UplinkBatch] = []
        self.failures: list[UplinkFailed | str | None] = []
        self.max_rows: int | None = None
        self.sent_bytes = 0
        self.is_closed = False

    async def send(self, batch: UplinkBatch) -> UplinkReply:
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, UplinkFailed):
            raise failure
        rows = sum(len(each.calls) + len(each.threads) for each in batch.sessions)
        if self.max_rows is not None and rows > self.max_rows:
            raise UplinkFailed("too large", is_refused=True)
        self.batches.append(batch)
        body = msgspec.json.encode(batch)
        self.sent_bytes += len(body)
        reply = await self.routes.take(msgspec.json.decode(body, type=UplinkBatch))
        if failure == "lost":
            raise UplinkFailed("the connection was lost")
        encoded = msgspec.json.encode(reply)
        assert len(encoded) <= MAX_REPLY_BYTES
        return msgspec.json.decode(encoded, type=UplinkReply)

    def close(self) -> None:
        self.is_closed = True

    @property
    def sent_calls(self) -> list[str]:
        return [call.call for batch in self.batches for s in batch.sessions for call in s.calls]


class Machine:
    """A machine and its server, with a clock that stands still."""

    def __init__(self, store: SqliteStore, server: MemoryStore, name: str = "m1") -> None:
        self.store, self.server, self.now = store, server, 1_000_000.0
        self.name = name
        self.sender = FakeSender(UplinkRoutes(server, lambda: self.now))
        self.restart()

    def restart(
        self, url: str = URL, settings: UplinkSettings | None = None, receive: str = "all"
    ) -> None:
        """Forget what is in memory only."""
        outbox = Outbox(self.store, settings or UplinkSettings(), url)
        about = UplinkBatch(self.name, "host", user="ada", team="web", receive=receive)
        self.uplink = Uplink(url, about, self.store, outbox, self.sender, lambda: self.now,
                             first_pause_s=0.02, renew_id=secrets.token_hex)  # fmt: skip

    async def call(self, *numbers: int, session: str = "s", agent: str = "claude") -> None:
        """Store calls as the monitor does, in one transaction."""
        calls = [call_row(number, session) for number in numbers]
        last = max(numbers)
        main = ThreadRow(session, "main", 0, last, "transcript", "measured", sent=last, calls=last)
        writes: list[Write] = [
            PutSession(SessionRow(session, agent, self.now, "host", "/home/ada/shop")),
            PutThread(main),
            *map(PutCall, calls),
        ]
        await self.store.write(writes)

    async def send_from_server(self, id: str, session: str = "s") -> None:
        """Queue a message at the server, as a person does."""
        text = f"[message from boss] {id}"
        message = Message(id, session, text, self.now, sender="boss", expires=self.now + 100)
        await self.server.write([QueueMessage(message)])

    async def local_states(self) -> dict[str, str]:
        return {each.id: each.state for each in await self.store.messages()}

    async def server_states(self) -> dict[str, str]:
        return {each.id: each.state for each in await self.server.messages()}


def call_row(number: int, session: str = "s") -> CallRow:
    return CallRow(session, "main", f"c{number}", number, 0, 1, 2, 3, number, at=float(number))


def use_machine(path: Path, use: Callable[[Machine], Awaitable[ResultT]]) -> ResultT:
    """Run a coroutine function with a machine whose store is in a file."""

    async def used() -> ResultT:
        store = await SqliteStore.open(path)
        try:
            return await use(Machine(store, MemoryStore()))
        finally:
            await store.close()

    return asyncio.run(used())
