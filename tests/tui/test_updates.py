"""Following: the daemon's stream, the files without one, and the way from one to the other."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from brimline.errors import InvalidSettings, NotRunning
from brimline.tui.api_types import SessionView
from brimline.tui.daemon_client import Answer, Daemon
from brimline.tui.updates import (
    AllSessions,
    Connection,
    Intervals,
    SessionChanged,
    Update,
    follow_sessions,
)

from .daemon import FakeDaemon
from .scene import view
from .watching import QUICK

Step = Callable[[], None]


async def no_files() -> list[SessionView]:
    """No files."""
    return []


async def heard(
    daemon: Daemon | None,
    enough: Callable[[list[Update]], object],
    read: Callable[[], Awaitable[list[SessionView]]] = no_files,
    pace: Intervals = QUICK,
    after: dict[int, Step] | None = None,
) -> list[Update]:
    """The news until they are enough; `after` so many of them, something is done."""
    news: list[Update] = []
    async with (
        contextlib.aclosing(follow_sessions(daemon, read, pace)) as told,
        asyncio.timeout(30),
    ):
        async for one in told:
            news.append(one)
            if after and len(news) in after:
                await asyncio.to_thread(after.pop(len(news)))
            if enough(news):
                break
    return news


def ids(news: list[Update]) -> list[str]:
    """The sessions that were told as changed."""
    return [one.view.session.id for one in news if isinstance(one, SessionChanged)]


def states(news: list[Update]) -> list[str]:
    """The states of the connection, each once in a row."""
    links = [
        one if isinstance(one, Connection) else one.connection
        for one in news
        if not isinstance(one, SessionChanged)
    ]
    return [link.state for n, link in enumerate(links) if not n or links[n - 1] != link]


def test_everything_then_changes(daemon: FakeDaemon) -> None:
    """First all sessions at once, then each as the stream tells it."""
    news = asyncio.run(heard(Daemon(daemon.socket), lambda news: len(news) > 8))
    assert isinstance(news[0], AllSessions)
    assert len(news[0].views) == 8
    assert news[0].connection == Connection("live")
    assert ids(news) == list(daemon.views)


def test_long_event(daemon: FakeDaemon) -> None:
    """An event of any length is taken whole, however it comes."""
    daemon.put(view("long", 1_000, title="x" * 300_000))
    news = asyncio.run(heard(Daemon(daemon.socket), lambda news: "long" in ids(news)))
    told = news[-1]
    assert isinstance(told, SessionChanged)
    assert told.view.session.title == "x" * 300_000


def test_bad_event_is_passed_over(daemon: FakeDaemon) -> None:
    """One that cannot be read ends nothing."""
    daemon.views["bad"] = {"session": {"id": "bad"}}
    daemon.put({"session": {"id": "bad"}}, view("good", 1_000))
    news = asyncio.run(heard(Daemon(daemon.socket), lambda news: "good" in ids(news)))
    assert "bad" not in ids(news)


def test_changes_are_applied_to_the_known_view(daemon: FakeDaemon) -> None:
    """A change has only the fields that changed; the others stay as they were."""
    daemon.put(view("s9", 1_000, title="before"))
    daemon.change({"id": "s9", "session": {"title": "after"}, "unread": 3})
    daemon.change({"id": "s9", "threads": {"main": {"sent": 5}}, "trend": {"keep": 0, "add": [7]}})
    news = asyncio.run(heard(Daemon(daemon.socket), lambda news: ids(news).count("s9") == 3))
    told = news[-1]
    assert isinstance(told, SessionChanged)
    assert (told.view.session.title, told.view.unread, told.view.trend) == ("after", 3, (7,))
    assert told.view.main
    assert (told.view.main.sent, told.view.main.window) == (5, 200_000)


@pytest.mark.parametrize(
    "change",
    [{}, [], {"id": "nobody", "unread": 1}, {"id": "s9", "threads": {"main": 1}},
     {"id": "s9", "trend": {"keep": "x", "add": []}}, {"id": "s9", "session": {"seen_at": "x"}}],
)  # fmt: skip
def test_changes_that_cannot_be_applied_are_passed_over(daemon: FakeDaemon, change: Any) -> None:
    """The next one is taken, and nothing ends."""
    daemon.put(view("s9", 1_000))
    daemon.change(change)
    daemon.change({"id": "s9", "unread": 3})
    news = asyncio.run(heard(Daemon(daemon.socket), lambda news: ids(news).count("s9") == 2))
    told = news[-1]
    assert isinstance(told, SessionChanged)
    assert told.view.unread == 3


def test_events_of_unknown_kinds_are_passed_over(tmp_path: Path) -> None:
    """A newer daemon may send more."""
    events = b"event: other\ndata: {}\n\ndata: {}\n\nevent: session\ndata: %s\n\n"
    session = json.dumps(view("s9", 1_000)).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        body = events % session if b"/v1/stream" in asked else b"[]"
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
        writer.close()

    async def test() -> list[Update]:
        async with await asyncio.start_unix_server(serve, tmp_path / "s"):
            return await heard(Daemon(tmp_path / "s"), lambda news: len(news) == 2)

    assert ids(asyncio.run(test())) == ["s9"]


def test_no_daemon(nobody: Path) -> None:
    """The files are read, again and again, and it is said."""
    news = asyncio.run(heard(Daemon(nobody), lambda news: len(news) == 3))
    assert news == [AllSessions([], Connection("files"))] * 3


def test_files_alone(daemon: FakeDaemon) -> None:
    """Who asks for the files gets them, and the daemon is not asked."""
    asyncio.run(heard(None, lambda news: len(news) == 2))
    assert daemon.asked == []


def test_daemon_that_comes(daemon: FakeDaemon) -> None:
    """From the files to the daemon as soon as there is one."""
    daemon.stop()
    news = asyncio.run(
        heard(Daemon(daemon.socket), lambda news: ids(news), after={2: daemon.start})
    )
    assert states(news) == ["files", "live"]


def test_daemon_that_goes_and_comes(daemon: FakeDaemon) -> None:
    """Lost is told at once; it is tried again before the files are read."""

    def again() -> None:
        daemon.stop()
        daemon.start()

    link = Daemon(daemon.socket)
    news = asyncio.run(heard(link, lambda news: len(ids(news)) > 12, after={9: again}))
    assert states(news)[:3] == ["live", "lost", "live"]


def test_daemon_that_goes_for_good(daemon: FakeDaemon) -> None:
    """After some tries the files are read."""
    link = Daemon(daemon.socket)
    news = asyncio.run(heard(link, lambda news: "files" in states(news), after={9: daemon.stop}))
    assert states(news) == ["live", "lost", "files"]


def test_daemon_that_says_nothing_more(daemon: FakeDaemon) -> None:
    """A stream without a sign of life is given up, and begun anew."""
    pace = Intervals(retry_s=0.05, silence_s=0.3)
    link = Daemon(daemon.socket)
    news = asyncio.run(heard(link, lambda news: states(news).count("live") == 2, pace=pace))
    assert states(news) == ["live", "lost", "live"]


def test_files_that_cannot_be_read(nobody: Path) -> None:
    """What is wrong with them is told, and they are tried again."""

    async def broken() -> list[SessionView]:
        raise InvalidSettings("file", "levels", "wrong")

    news = asyncio.run(heard(Daemon(nobody), lambda news: len(news) == 2, broken))
    assert news == [Connection("files", "file: levels: wrong")] * 2


@pytest.mark.parametrize(
    "said",
    [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n<html>", b"HTTP/1.1 200 OK\r\n\r\n{}",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
     b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n[]"],
)  # fmt: skip
def test_something_that_is_no_daemon(tmp_path: Path, said: bytes) -> None:
    """Whatever answers at the socket, the files are read."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async def test() -> list[Update]:
        server = await asyncio.start_unix_server(serve, tmp_path / "s")
        async with server:
            return await heard(Daemon(tmp_path / "s"), lambda news: len(news) == 1)

    assert asyncio.run(test()) == [AllSessions([], Connection("files"))]


@pytest.mark.parametrize(
    "stream",
    [b"HTTP/1.1 503 no\r\n\r\n",
     b"HTTP/1.1 200 OK\r\n\r\n: connected\n\n",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
)  # fmt: skip
def test_stream_that_ends(tmp_path: Path, stream: bytes) -> None:
    """A daemon that tells its sessions and no changes is lost, and asked again."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(stream if b"/v1/stream" in asked else b"HTTP/1.1 200 OK\r\n\r\n[]")
        writer.close()

    async def test() -> list[Update]:
        async with await asyncio.start_unix_server(serve, tmp_path / "s"):
            return await heard(Daemon(tmp_path / "s"), lambda news: len(news) == 3)

    assert states(asyncio.run(test())) == ["live", "lost", "live"]


@pytest.mark.parametrize(
    ("body", "said"), [(b'{"error": "too long"}', "too long"), (b"<html>", "HTTP 422")]
)
def test_refusal(body: bytes, said: str) -> None:
    """Why it was refused, also where that is not told in our way."""
    assert Answer(422, body).refusal == said
    assert Answer(201, body).refusal is None


def test_wedged_daemon(tmp_path: Path) -> None:
    """One that takes the question and never answers is as good as none."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.close()

    async def test() -> None:
        async with await asyncio.start_unix_server(serve, tmp_path / "s"):
            await Daemon(tmp_path / "s", patience=0.1).ask("GET", "/v1/sessions")

    with pytest.raises(NotRunning):
        asyncio.run(test())
