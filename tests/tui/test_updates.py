"""Updates: from the daemon's stream, from files without one, and changes between the two."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from brimline.api.client.stream import DaemonClient, DaemonResponse
from brimline.errors import InvalidSettings, NotRunning
from brimline.tui.api_types import WatchedSession
from brimline.tui.provider import (
    AllSessions,
    Connection,
    Intervals,
    SessionChanged,
    Update,
    follow_sessions,
)

from .app_driver import QUICK
from .daemon import FakeDaemon
from .sample_views import view

Step = Callable[[], None]


async def no_files() -> list[WatchedSession]:
    return []


async def collect_updates(
    daemon: DaemonClient | None,
    enough: Callable[[list[Update]], object],
    read: Callable[[], Awaitable[list[WatchedSession]]] = no_files,
    pace: Intervals = QUICK,
    after: dict[int, Step] | None = None,
) -> list[Update]:
    """Collect updates until `enough`; `after` has functions to call after a number of updates."""
    updates: list[Update] = []
    async with (
        contextlib.aclosing(follow_sessions(daemon, read, pace)) as source,
        asyncio.timeout(30),
    ):
        async for update in source:
            updates.append(update)
            if after and len(updates) in after:
                await asyncio.to_thread(after.pop(len(updates)))
            if enough(updates):
                break
    return updates


def ids(updates: list[Update]) -> list[str]:
    """The ids of the changed sessions."""
    return [update.view.session.id for update in updates if isinstance(update, SessionChanged)]


def states(updates: list[Update]) -> list[str]:
    """The states of the connection, without repetitions."""
    links = [
        update if isinstance(update, Connection) else update.connection
        for update in updates
        if not isinstance(update, SessionChanged)
    ]
    return [link.state for n, link in enumerate(links) if not n or links[n - 1] != link]


def test_all_sessions_come_before_changes(daemon: FakeDaemon) -> None:
    updates = asyncio.run(
        collect_updates(DaemonClient(daemon.socket), lambda updates: len(updates) > 8)
    )
    assert isinstance(updates[0], AllSessions)
    assert len(updates[0].views) == 8
    assert updates[0].connection == Connection("live")
    assert ids(updates) == list(daemon.views)


def test_long_event_is_read(daemon: FakeDaemon) -> None:
    daemon.put(view("long", 1_000, title="x" * 300_000))
    updates = asyncio.run(
        collect_updates(DaemonClient(daemon.socket), lambda updates: "long" in ids(updates))
    )
    last = updates[-1]
    assert isinstance(last, SessionChanged)
    assert last.view.session.title == "x" * 300_000


def test_undecodable_event_is_ignored(daemon: FakeDaemon) -> None:
    daemon.views["bad"] = {"session": {"id": "bad"}}
    daemon.put({"session": {"id": "bad"}}, view("good", 1_000))
    updates = asyncio.run(
        collect_updates(DaemonClient(daemon.socket), lambda updates: "good" in ids(updates))
    )
    assert "bad" not in ids(updates)


def test_changes_are_applied_to_the_known_view(daemon: FakeDaemon) -> None:
    daemon.put(view("s9", 1_000, title="before"))
    daemon.change({"id": "s9", "session": {"title": "after"}, "unread": 3})
    daemon.change({"id": "s9", "threads": {"main": {"sent": 5}}, "trend": {"keep": 0, "add": [7]}})
    updates = asyncio.run(
        collect_updates(DaemonClient(daemon.socket), lambda updates: ids(updates).count("s9") == 3)
    )
    last = updates[-1]
    assert isinstance(last, SessionChanged)
    assert (last.view.session.title, last.view.unread, last.view.trend) == ("after", 3, (7,))
    assert last.view.main
    assert (last.view.main.sent, last.view.main.window) == (5, 200_000)


@pytest.mark.parametrize(
    "change",
    [{}, [], {"id": "nobody", "unread": 1}, {"id": "s9", "threads": {"main": 1}},
     {"id": "s9", "trend": {"keep": "x", "add": []}}, {"id": "s9", "session": {"seen_at": "x"}}],
)  # fmt: skip
def test_changes_that_cannot_be_applied_are_ignored(daemon: FakeDaemon, change: Any) -> None:
    daemon.put(view("s9", 1_000))
    daemon.change(change)
    daemon.change({"id": "s9", "unread": 3})
    updates = asyncio.run(
        collect_updates(DaemonClient(daemon.socket), lambda updates: ids(updates).count("s9") == 2)
    )
    last = updates[-1]
    assert isinstance(last, SessionChanged)
    assert last.view.unread == 3


def test_events_of_unknown_kinds_are_ignored(tmp_path: Path) -> None:
    events = b"event: other\ndata: {}\n\ndata: {}\n\nevent: session\ndata: %s\n\n"
    session = json.dumps(view("s9", 1_000)).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        body = events % session if b"/v1/stream" in request else b"[]"
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
        writer.close()

    async def test() -> list[Update]:
        async with await asyncio.start_unix_server(serve, tmp_path / "s"):
            return await collect_updates(
                DaemonClient(tmp_path / "s"), lambda updates: len(updates) == 2
            )

    assert ids(asyncio.run(test())) == ["s9"]


def test_transcripts_are_read_without_a_daemon(unused_socket: Path) -> None:
    updates = asyncio.run(
        collect_updates(DaemonClient(unused_socket), lambda updates: len(updates) == 3)
    )
    assert updates == [AllSessions([], Connection("files"))] * 3


def test_files_option_ignores_the_daemon(daemon: FakeDaemon) -> None:
    asyncio.run(collect_updates(None, lambda updates: len(updates) == 2))
    assert daemon.asked == []


def test_daemon_that_starts_later_is_used(daemon: FakeDaemon) -> None:
    daemon.stop()
    updates = asyncio.run(
        collect_updates(
            DaemonClient(daemon.socket), lambda updates: ids(updates), after={2: daemon.start}
        )
    )
    assert states(updates) == ["files", "live"]


def test_lost_daemon_is_retried_before_transcripts_are_read(daemon: FakeDaemon) -> None:
    def again() -> None:
        daemon.stop()
        daemon.start()

    link = DaemonClient(daemon.socket)
    updates = asyncio.run(
        collect_updates(link, lambda updates: len(ids(updates)) > 12, after={9: again})
    )
    assert states(updates)[:3] == ["live", "lost", "live"]


def test_transcripts_are_read_after_some_failed_retries(daemon: FakeDaemon) -> None:
    link = DaemonClient(daemon.socket)
    updates = asyncio.run(
        collect_updates(link, lambda updates: "files" in states(updates), after={9: daemon.stop})
    )
    assert states(updates) == ["live", "lost", "files"]


def test_silent_stream_is_lost(daemon: FakeDaemon) -> None:
    pace = Intervals(retry_s=0.05, silence_s=0.3)
    link = DaemonClient(daemon.socket)
    updates = asyncio.run(
        collect_updates(link, lambda updates: states(updates).count("live") == 2, pace=pace)
    )
    assert states(updates) == ["live", "lost", "live"]


def test_unreadable_transcripts_are_reported(unused_socket: Path) -> None:
    async def broken() -> list[WatchedSession]:
        raise InvalidSettings("file", "levels", "wrong")

    updates = asyncio.run(
        collect_updates(DaemonClient(unused_socket), lambda updates: len(updates) == 2, broken)
    )
    assert updates == [Connection("files", "file: levels: wrong")] * 2


@pytest.mark.parametrize(
    "answer",
    [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n<html>", b"HTTP/1.1 200 OK\r\n\r\n{}",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
     b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n[]"],
)  # fmt: skip
def test_transcripts_are_read_if_something_else_answers(tmp_path: Path, answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async def test() -> list[Update]:
        server = await asyncio.start_unix_server(serve, tmp_path / "s")
        async with server:
            return await collect_updates(
                DaemonClient(tmp_path / "s"), lambda updates: len(updates) == 1
            )

    assert asyncio.run(test()) == [AllSessions([], Connection("files"))]


@pytest.mark.parametrize(
    "stream",
    [b"HTTP/1.1 503 no\r\n\r\n",
     b"HTTP/1.1 200 OK\r\n\r\n: connected\n\n",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
)  # fmt: skip
def test_daemon_without_a_stream_counts_as_lost(tmp_path: Path, stream: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        writer.write(stream if b"/v1/stream" in request else b"HTTP/1.1 200 OK\r\n\r\n[]")
        writer.close()

    async def test() -> list[Update]:
        async with await asyncio.start_unix_server(serve, tmp_path / "s"):
            return await collect_updates(
                DaemonClient(tmp_path / "s"), lambda updates: len(updates) == 3
            )

    assert states(asyncio.run(test())) == ["live", "lost", "live"]


@pytest.mark.parametrize(
    ("body", "reason"), [(b'{"error": "too long"}', "too long"), (b"<html>", "HTTP 422")]
)
def test_refusal_has_a_reason_for_any_body(body: bytes, reason: str) -> None:
    assert DaemonResponse(422, body).refusal == reason
    assert DaemonResponse(201, body).refusal is None


def test_daemon_that_never_answers_counts_as_lost(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.close()

    async def test() -> None:
        async with await asyncio.start_unix_server(serve, tmp_path / "s"):
            await DaemonClient(tmp_path / "s", timeout_s=0.1).request("GET", "/v1/sessions")

    with pytest.raises(NotRunning):
        asyncio.run(test())
