"""A limit on the HTTP requests that are answered at once, so that hooks always have their turn."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.server.api.responses import RETRY_AFTER_S, json_response
from brimline.server.api.schemas import Problem

MAX_CONCURRENT_REQUESTS = 16
MAX_WAITING_REQUESTS = 256
STREAMS = ("/v1/stream",)
"""Answers that go on for hours, and cost little."""


class LoadLimit:
    """Answers some requests at a time, and lets some wait; if there are more, says when to retry.

    A request has its place until its answer begins: a client that reads slowly holds nobody up. One
    whose client has hung up while it waited is skipped: nobody would read the answer.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_concurrent: int = MAX_CONCURRENT_REQUESTS,
        max_waiting: int = MAX_WAITING_REQUESTS,
    ) -> None:
        self._app = app
        self._places = asyncio.Semaphore(max_concurrent)
        self._max_waiting = max_waiting
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, when it is its turn."""
        if scope["type"] != "http" or scope["path"] in STREAMS:
            await self._app(scope, receive, send)
        elif self._places.locked() and self._waiting >= self._max_waiting:
            hint = f"Try again in {RETRY_AFTER_S} s."
            refusal = json_response(
                Problem("the daemon has too many requests to answer", hint), 503
            )
            await refusal(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = _Client(receive)
        has_waited = await self._take_place()
        has_place = True

        def leave_place() -> None:
            nonlocal has_place
            if has_place:
                has_place = False
                self._places.release()

        async def leave_and_send(message: Message) -> None:
            leave_place()
            await send(message)

        try:
            if not (has_waited and await client.has_gone()):
                await self._app(scope, client.receive, leave_and_send)
        finally:
            leave_place()

    async def _take_place(self) -> bool:
        """Wait for a place; return whether there was none at once."""
        has_waited = self._places.locked()
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        return has_waited


class _Client:
    """The other end of a request: tells whether it is still there, and loses none of its body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: asyncio.Task[Message] | None = None

    async def has_gone(self) -> bool:
        """Return whether the client has hung up."""
        self._first = asyncio.ensure_future(self._receive())  # type: ignore[arg-type]
        await asyncio.wait([self._first], timeout=0)
        return self._first.done() and self._first.result()["type"] == "http.disconnect"

    async def receive(self) -> Message:
        """Return the next message of the request."""
        first, self._first = self._first, None
        return await (self._receive() if first is None else first)
