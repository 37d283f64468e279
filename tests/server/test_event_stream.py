"""The stream of changes: where it starts and where it resumes."""

import asyncio
import json
from collections.abc import AsyncIterable
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from brimline.api.event_stream import StreamRoutes
from brimline.store.base import PutSession
from brimline.store.rows import SessionRow

from .running import Running
from .viewing import NOW, Server, Viewer, wait_until

ALL = ["one", "two", "three"]


def request(last: str | None, query: str) -> Request:
    """A browser's request with the id of its last event."""
    headers = [] if last is None else [(b"last-event-id", last.encode())]

    async def receive() -> dict[str, str]:
        await asyncio.sleep(60)
        raise AssertionError

    scope = {"type": "http", "method": "GET", "headers": headers, "query_string": query.encode()}
    return Request(scope, receive)


async def streamed_sessions(last: str | None, query: str = "") -> list[str]:
    """Return the sessions that a stream begins with."""
    server = Server()
    await server.store.write([PutSession(SessionRow(id, "claude", NOW)) for id in ALL])
    stream = StreamRoutes(server.cache, server.broadcaster)
    answer = await stream.stream(request(last, query))
    assert isinstance(answer, StreamingResponse)
    viewer = Viewer()
    reading = asyncio.create_task(viewer.follow(cast("AsyncIterable[bytes]", answer.body_iterator)))
    await wait_until(lambda: b": alive\n\n" in viewer.frames)
    server.stopping = True
    await reading
    return list(viewer.views)


@pytest.mark.parametrize(("last", "sessions"), [("1", ALL[1:]), ("2", ALL[2:]), ("3", [])])
def test_stream_resumes_after_the_last_event(last: str, sessions: list[str]) -> None:
    assert asyncio.run(streamed_sessions(last)) == sessions


@pytest.mark.parametrize("last", [None, "", "0", "-1", "x", "²", "9" * 5_000, str(2**63), "9" * 18])
def test_stream_without_a_valid_last_event_sends_all(last: str | None) -> None:
    assert asyncio.run(streamed_sessions(last)) == ALL


def test_stream_with_an_id_beyond_the_store_sends_all() -> None:
    """The id is of a store that was moved aside."""
    assert asyncio.run(streamed_sessions("4")) == ALL
    assert asyncio.run(streamed_sessions("305")) == ALL


def test_stream_from_now_begins_without_sessions_unless_it_resumes() -> None:
    assert asyncio.run(streamed_sessions(None, "from=now")) == []
    assert asyncio.run(streamed_sessions("2", "from=now")) == ALL[2:]


def read_event(answer: HTTPResponse) -> bytes:
    """Return the next event or comment."""
    event = b""
    while not event.endswith(b"\n\n"):
        line = answer.readline()
        assert line, f"the stream ended: {event!r}"
        event += line
    return event


def test_streamed_changes_give_the_view_of_the_api(daemon: Running, tmp_path: Path) -> None:
    transcript = tmp_path / "s1.jsonl"
    hook_input = {"session_id": "s1", "transcript_path": str(transcript), "cwd": "/work"}
    with closing(HTTPConnection("127.0.0.1", daemon.port, timeout=20)) as connection:
        connection.request("GET", "/v1/stream", headers=daemon.authorization)
        answer, viewer = connection.getresponse(), Viewer()
        assert answer.status == 200
        for number in range(70):
            with transcript.open("a") as file:
                file.write(json.dumps(call_record(number)) + "\n")
            daemon.hook({**hook_input, "hook_event_name": "PostToolUse"})
            while not viewer.views:  # the rest comes as changes
                viewer.read(read_event(answer))
            if number == 40:
                daemon.post("/v1/sessions/s1/messages", {"text": "hello"})
        daemon.hook({**hook_input, "hook_event_name": "PreCompact", "trigger": "manual"})
        daemon.until("/v1/sessions/s1", lambda view: view["threads"][0]["calls"] == 70)
        while viewer.views.get("s1") != daemon.get("/v1/sessions/s1"):
            viewer.read(read_event(answer))
    assert viewer.events.count("session") == 1
    assert "change" in viewer.events
    assert daemon.get("/v1/sessions") == list(viewer.views.values())


def call_record(number: int) -> dict[str, Any]:
    usage = {"input_tokens": 4, "cache_read_input_tokens": 50_000 + number, "output_tokens": 9}
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
    about = {"sessionId": "s1", "version": "2.1.325", "timestamp": "2026-11-15T12:00:00.000Z"}
    return {"isSidechain": False, "type": "assistant", **about, "message": message}
