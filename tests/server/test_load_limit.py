"""The limit of concurrent HTTP requests."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from brimline.api.request_limits import LoadLimit
from brimline.api.responses import RequestRefused

SCOPE: Scope = {"type": "http", "method": "POST", "path": "/v1/sessions", "headers": []}

pytestmark = pytest.mark.timeout(20)


class Handler:
    """An application that answers on demand and records bodies."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.go.wait()
        message = await receive()
        self.bodies.append(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Client:
    """One request; `gone` says whether its client disconnects before the reply."""

    def __init__(self, body: bytes = b"", path: str = "/v1/sessions", gone: bool = False) -> None:
        self._body, self._gone = body, gone
        self._scope = {**SCOPE, "path": path}
        self.sent: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> Message:
        if self._gone:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.sent.append(message)

    def start(self, app: LoadLimit) -> "asyncio.Task[None]":
        return asyncio.ensure_future(app(self._scope, self.receive, self.send))

    @property
    def status(self) -> int:
        return self.sent[0]["status"]


async def test_waiting_requests_are_answered_in_turn_with_their_bodies() -> None:
    handler = Handler()
    app = LoadLimit(handler, max_concurrent=1)
    tasks = [Client(b"%d" % at).start(app) for at in range(3)]
    await asyncio.sleep(0)
    handler.go.set()
    await asyncio.gather(*tasks)
    assert handler.bodies == [b"0", b"1", b"2"]


async def test_request_of_a_disconnected_client_is_not_handled() -> None:
    handler = Handler()
    app = LoadLimit(handler, max_concurrent=1)
    gone = Client(b"gone", gone=True)
    tasks = [Client(b"a").start(app), gone.start(app), Client(b"b").start(app)]
    await asyncio.sleep(0)
    handler.go.set()
    await asyncio.gather(*tasks)
    assert handler.bodies == [b"a", b"b"]
    assert gone.sent == []


async def test_requests_beyond_the_queue_get_503_with_retry_after() -> None:
    handler = Handler()
    app = LoadLimit(handler, max_concurrent=1, max_waiting=1)
    tasks = [Client().start(app), Client().start(app)]
    await asyncio.sleep(0)
    refused = Client()
    await refused.start(app)
    assert refused.status == 503
    assert b"retry-after" in dict(refused.sent[0]["headers"])
    handler.go.set()
    await asyncio.gather(*tasks)


async def test_streams_do_not_count_towards_the_limit() -> None:
    handler = Handler()
    app = LoadLimit(handler, max_concurrent=1)
    streams = [Client(path="/v1/stream").start(app) for _ in range(5)]
    await asyncio.sleep(0)
    handler.go.set()
    other = Client()
    await other.start(app)
    assert other.status == 200
    await asyncio.gather(*streams)


async def test_slow_reader_does_not_count_towards_the_limit() -> None:
    handler = Handler()
    app = LoadLimit(handler, max_concurrent=1)
    handler.go.set()
    slow = Client()
    slow.reads.clear()
    task = slow.start(app)
    other = Client()
    await other.start(app)
    assert other.status == 200
    slow.reads.set()
    await task


class SlowClient(Client):
    """A request whose body arrives in two pieces, the second on demand."""

    def __init__(self, first: bytes) -> None:
        super().__init__(b"end")
        self._first: bytes | None = first
        self.goes_on = asyncio.Event()

    async def receive(self) -> Message:
        if self._first is not None:
            first, self._first = self._first, None
            return {"type": "http.request", "body": first, "more_body": True}
        await self.goes_on.wait()
        return await super().receive()


async def answer_whole_body(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        while (await receive())["more_body"]:
            pass
    except RequestRefused as refused:
        await send({"type": "http.response.start", "status": refused.status, "headers": []})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def test_slow_sender_does_not_count_towards_the_limit() -> None:
    app = LoadLimit(answer_whole_body, max_concurrent=1)
    slow, other = [SlowClient(b"begin"), SlowClient(b"begin")], Client()
    tasks = [each.start(app) for each in slow]
    await asyncio.wait_for(other.start(app), 5)
    assert (other.status, slow[0].sent) == (200, [])
    for each in slow:
        each.goes_on.set()
    await asyncio.wait_for(asyncio.gather(*tasks), 5)
    assert [each.status for each in slow] == [200, 200]


async def test_bodies_of_slow_senders_take_bounded_memory() -> None:
    app = LoadLimit(answer_whole_body, max_arriving_bytes=100)
    first, second, third = (SlowClient(b"x" * 60) for _ in range(3))
    task = first.start(app)
    await asyncio.wait_for(second.start(app), 5)
    assert second.status == 503
    first.goes_on.set()
    third.goes_on.set()
    await asyncio.wait_for(asyncio.gather(task, third.start(app)), 5)
    assert (first.status, third.status) == (200, 200)
