"""A limit on the HTTP requests that are answered at once."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Message, Receive, Scope, Send

from brimline.server.api.load_limit import LoadLimit

SCOPE: Scope = {"type": "http", "method": "POST", "path": "/v1/sessions", "headers": []}


class Handler:
    """An application that answers when it is told to; keeps the bodies that it was sent."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self.go.wait()
        message = await receive()
        self.bodies.append(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Client:
    """One request; `gone` is whether its client hangs up before it is answered."""

    def __init__(self, body: bytes = b"", path: str = "/v1/sessions", gone: bool = False) -> None:
        self._body, self._gone = body, gone
        self._scope = {**SCOPE, "path": path}
        self.sent: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> Message:
        """Send the body, or hang up."""
        if self._gone:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        await self.reads.wait()
        self.sent.append(message)

    def ask(self, app: LoadLimit) -> "asyncio.Task[None]":
        """Begin to ask."""
        return asyncio.ensure_future(app(self._scope, self.receive, self.send))

    @property
    def status(self) -> int:
        """What it was answered with."""
        return self.sent[0]["status"]


def run(work: Callable[[Handler], Awaitable[None]]) -> None:
    """Run a test with a handler."""

    async def go() -> None:
        await asyncio.wait_for(work(Handler()), 20)

    asyncio.run(go())


def test_waiting_requests_keep_their_bodies() -> None:
    """What has to wait is answered in its turn, with all that it sent."""

    async def work(handler: Handler) -> None:
        app = LoadLimit(handler, max_concurrent=1)
        tasks = [Client(b"%d" % at).ask(app) for at in range(3)]
        await asyncio.sleep(0)
        handler.go.set()
        await asyncio.gather(*tasks)
        assert handler.bodies == [b"0", b"1", b"2"]

    run(work)


def test_client_that_gave_up_is_skipped() -> None:
    """Work for a client that hung up while it waited is not done."""

    async def work(handler: Handler) -> None:
        app = LoadLimit(handler, max_concurrent=1)
        gone = Client(b"gone", gone=True)
        tasks = [Client(b"a").ask(app), gone.ask(app), Client(b"b").ask(app)]
        await asyncio.sleep(0)
        handler.go.set()
        await asyncio.gather(*tasks)
        assert handler.bodies == [b"a", b"b"]
        assert gone.sent == []

    run(work)


def test_too_many_are_told_when_to_retry() -> None:
    """More than may wait get a 503 at once that says when to try again."""

    async def work(handler: Handler) -> None:
        app = LoadLimit(handler, max_concurrent=1, max_waiting=1)
        tasks = [Client().ask(app), Client().ask(app)]
        await asyncio.sleep(0)
        refused = Client()
        await refused.ask(app)
        assert refused.status == 503
        assert b"retry-after" in dict(refused.sent[0]["headers"])
        handler.go.set()
        await asyncio.gather(*tasks)

    run(work)


def test_streams_take_no_place() -> None:
    """Pages that listen for hours leave every place to others."""

    async def work(handler: Handler) -> None:
        app = LoadLimit(handler, max_concurrent=1)
        streams = [Client(path="/v1/stream").ask(app) for _ in range(5)]
        await asyncio.sleep(0)
        handler.go.set()
        other = Client()
        await other.ask(app)
        assert other.status == 200
        await asyncio.gather(*streams)

    run(work)


def test_slow_reader_holds_nobody_up() -> None:
    """A client that does not read its answer keeps no place."""

    async def work(handler: Handler) -> None:
        app = LoadLimit(handler, max_concurrent=1)
        handler.go.set()
        slow = Client()
        slow.reads.clear()
        task = slow.ask(app)
        other = Client()
        await other.ask(app)
        assert other.status == 200
        slow.reads.set()
        await task

    run(work)
