"""Limit concurrent HTTP requests, so that hooks are always answered."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.server.api.responses import RETRY_AFTER_S, json_response
from brimline.server.api.schemas import Problem

MAX_CONCURRENT_REQUESTS = 16
MAX_WAITING_REQUESTS = 256
STREAMS = ("/v1/stream",)  # responses that last for hours and cost little


class LoadLimit:
    """Answers some requests at a time, lets some wait, and refuses more with a 503.

    A request holds its slot until its response begins, so that slow readers block no others. A
    request whose client hung up while it waited is skipped.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_concurrent: int = MAX_CONCURRENT_REQUESTS,
        max_waiting: int = MAX_WAITING_REQUESTS,
    ) -> None:
        self._app = app
        self._slots = asyncio.Semaphore(max_concurrent)
        self._max_waiting = max_waiting
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in STREAMS:
            await self._app(scope, receive, send)
        elif self._slots.locked() and self._waiting >= self._max_waiting:
            hint = f"Try again in {RETRY_AFTER_S} s."
            refusal = json_response(Problem("the daemon is overloaded", hint), 503)
            await refusal(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = _Client(receive)
        has_waited = await self._take_slot()
        has_slot = True

        def free_slot() -> None:
            nonlocal has_slot
            if has_slot:
                has_slot = False
                self._slots.release()

        async def free_and_send(message: Message) -> None:
            free_slot()
            await send(message)

        try:
            if not (has_waited and await client.has_gone()):
                await self._app(scope, client.receive, free_and_send)
        finally:
            free_slot()

    async def _take_slot(self) -> bool:
        """Wait for a slot; return whether it was necessary to wait."""
        has_waited = self._slots.locked()
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        return has_waited


class _Client:
    """The client of a request: checks whether it is connected without losing its body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: asyncio.Task[Message] | None = None

    async def has_gone(self) -> bool:
        self._first = asyncio.ensure_future(self._receive())  # type: ignore[arg-type]
        await asyncio.wait([self._first], timeout=0)
        return self._first.done() and self._first.result()["type"] == "http.disconnect"

    async def receive(self) -> Message:
        first, self._first = self._first, None
        return await (self._receive() if first is None else first)
