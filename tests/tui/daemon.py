"""A fake daemon: the same API on a Unix socket, with answers set by the test."""

import asyncio
import json
import re
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class FakeDaemon:
    """Serves sessions over HTTP and as a stream; it can be stopped and restarted."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.views: dict[str, Json] = {}
        self.timelines: dict[str, Json] = {}
        self.explanations: dict[str, Json] = {}
        self.messages: dict[str, list[Json]] = {}
        self.refuses: Json | None = None
        self.forgotten: set[str] = set()
        self.slow = 0.0
        self.asked: list[str] = []
        self._marks: list[str] = []
        self._changes: list[Json] = []
        self._open: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    # What the test tells it.

    def put(self, *views: Json) -> None:
        """Replace the sessions that it serves."""
        self._do(self._put(views))

    def change(self, change: Json) -> None:
        """Send a change of a session to the listeners."""
        self._do(self._change(change))

    def start(self) -> None:
        self._do(self._start())

    def stop(self) -> None:
        """Stop serving and close the connections."""
        self._do(self._stop())

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _put(self, views: tuple[Json, ...]) -> None:
        for view in views:
            self.views[view["session"]["id"]] = view
            self._marks.append(view["session"]["id"])

    async def _change(self, change: Json) -> None:
        self._changes.append(change)

    async def _start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, self.socket)

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = dict(self._open)
        for writer in tasks.values():
            writer.transport.abort()
        await asyncio.gather(*tasks)
        self.socket.unlink(missing_ok=True)

    # What it answers.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.split("\r\n")[0].split()
            assert "\r\nHost: brimline\r\n" in head
            self.asked.append(f"{method} {target}")
            header = re.search(r"content-length: (\d+)", head.lower())
            length = int(header[1]) if header else 0
            body = json.loads(await reader.readexactly(length) or b"null")
            if target == "/v1/stream":
                await self._stream(writer)
            else:
                await asyncio.sleep(self.slow if target.endswith("/timeline") else 0)
                self._answer(writer, method, target, body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            del self._open[task]
            writer.close()

    def _answer(self, writer: asyncio.StreamWriter, method: str, target: str, body: Any) -> None:
        status, answer = self._respond(method, target, body)
        data = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n" % (status, len(data)) + data)

    def _respond(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        if target == "/v1/sessions":
            return 200, list(self.views.values())
        _, _, session, resource = target.removeprefix("/").split("/")
        if session in self.forgotten:
            return 404, {"error": f"no session '{session}'"}
        if method == "POST":
            if self.refuses:
                return 422, self.refuses
            self.messages.setdefault(session, []).append(message(session, **body))
            return 201, {"id": "new"}
        if resource == "explanation":
            nothing: Json = {
                "agent": None,
                "session_id": session,
                "category_names": [],
                "threads": [],
                "problem": "this session has no transcript on this machine",
            }
            return 200, self.explanations.get(session, nothing)
        if resource == "messages":
            return 200, self.messages.get(session, [])
        return 200, self.timelines.get(session, {"calls": [], "signals": []})

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        writer.write(f"{head}\r\n\r\n".encode())
        _chunk(writer, b": connected\n\n")
        seen_version = sent = 0
        while not writer.is_closing():
            for mark, id in list(enumerate(self._marks))[seen_version:]:
                if id not in self.views:
                    continue
                data = json.dumps(self.views[id]).encode()
                event = b"id: %d\nevent: session\ndata: %s\n\n" % (mark, data)
                _chunk(writer, event[: len(event) // 2])
                _chunk(writer, event[len(event) // 2 :])
            seen_version = len(self._marks)
            for change in self._changes[sent:]:
                data = json.dumps(change).encode()
                _chunk(writer, b"id: %d\nevent: change\ndata: %s\n\n" % (seen_version, data))
            sent = len(self._changes)
            await writer.drain()
            await asyncio.sleep(0.02)


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


def message(session: str, text: str, urgent: bool = False, **fields: Any) -> Json:
    urgency = "urgent" if urgent else "sequential"
    defaults = {"id": f"m-{text}", "session": session, "text": text, "at": 0.0, "urgency": urgency}
    return {**defaults, "sender": "user", "state": "queued", **fields}


@contextmanager
def serving(socket: Path) -> Generator[FakeDaemon, None, None]:
    """A daemon that serves until the end of the block."""
    daemon = FakeDaemon(socket)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.close()
