"""The queue of events for the daemon: bounded, in order, and quiet without a daemon."""

import gc
import http.server
import json
import logging
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from brimline import DaemonSession, Tracker
from brimline.api.client.session import MAX_QUEUED_EVENTS, EventOutbox
from brimline.api.schemas import NewEvent
from brimline.context.events import Call, Cleared
from brimline.context.usage import Usage
from brimline.errors import InvalidPolicy

MAX_WAIT_S = 60.0


def call(id: str, tokens: int = 10, *, final: bool = True, thread: str = "main") -> Call:
    return Call(id=id, usage=Usage(tokens, 0, 0, 1), thread=thread, final=final, at=1.0)


def row(event: Call | Cleared, number: int, session: str = "s1") -> NewEvent:
    return NewEvent(f"e{number}", session, "my-agent", event)


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers each request with the next of its statuses, then with 200; keeps the events."""

    daemon_threads = True

    def __init__(self, state: Path, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.batches: list[list[dict[str, Any]]] = []
        super().__init__(str(state / "http.sock"), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def events(self) -> list[dict[str, Any]]:
        return [event for batch in self.batches for event in batch]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Daemon)
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.batches.append(json.loads(body)["events"])
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        answer = b'{"error": "no"}'
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def queue(tmp_path: Path) -> EventOutbox:
    return EventOutbox(tmp_path)


@pytest.fixture
def servers() -> Iterator[list[Daemon]]:
    started: list[Daemon] = []
    yield started
    for server in started:
        server.shutdown()
        server.server_close()


class NoThread(threading.Thread):
    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def add_all(queue: EventOutbox, rows: Sequence[NewEvent]) -> None:
    """Add events so that the queue's thread begins with the last: no attempt is made before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "Thread", NoThread)
        for each in rows[:-1]:
            queue.add(each)
    queue.add(rows[-1])


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + MAX_WAIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def flushed(queue: EventOutbox) -> None:
    """Wait until everything is sent, over failed attempts."""
    wait_until(lambda: queue.flush(MAX_WAIT_S))


def test_copies_of_a_streaming_call_are_sent_once(
    queue: EventOutbox, servers: list[Daemon]
) -> None:
    events = [
        call("a", 10, final=False),
        call("a", 11, final=False),
        call("a", 12),
        call("b", 20, final=False),
        call("b", 21, thread="other"),
        Cleared(at=1.0),
        Cleared(at=1.0),
    ]
    rows = [row(event, number) for number, event in enumerate(events)]
    servers.append(Daemon(queue.state))
    add_all(queue, [*rows, row(call("c"), 7), row(call("c"), 8, session="s2")])
    flushed(queue)
    sent = [each["id"] for each in servers[0].events()]
    assert sent == ["e2", "e3", "e4", "e5", "e6", "e7", "e8"]


def test_oldest_events_are_dropped_from_a_full_queue(
    queue: EventOutbox, servers: list[Daemon]
) -> None:
    servers.append(Daemon(queue.state))
    add_all(queue, [row(call(f"c{n}"), n) for n in range(MAX_QUEUED_EVENTS + 5)])
    flushed(queue)
    sent = [each["id"] for each in servers[0].events()]
    assert sent == [f"e{number}" for number in range(5, MAX_QUEUED_EVENTS + 5)]
    assert {len(batch) for batch in servers[0].batches} == {1_000}


def test_event_is_sent_again_after_503_and_not_after_422(
    queue: EventOutbox, servers: list[Daemon], caplog: pytest.LogCaptureFixture
) -> None:
    servers.append(Daemon(queue.state, 503, 422))
    with caplog.at_level(logging.WARNING, "brimline.api.client"):
        queue.add(row(call("a"), 1))
        flushed(queue)
        queue.add(row(call("b"), 2))
        flushed(queue)
    assert [[each["id"] for each in batch] for batch in servers[0].batches] == [
        ["e1"],
        ["e1"],
        ["e2"],
    ]
    assert [record.getMessage() for record in caplog.records] == [
        "the daemon refused 1 events, which are lost: no"
    ]


def test_add_does_not_raise_if_no_thread_can_be_started(
    queue: EventOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "Thread", NoThread)
    queue.add(row(call("a"), 1))
    assert not queue.flush(0.01)


def test_session_that_nothing_refers_to_has_ended(
    tmp_path: Path, servers: list[Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIMLINE_STATE_DIR", str(tmp_path))
    servers.append(Daemon(tmp_path))
    tracker = Tracker(report_to=DaemonSession("my-agent", parent="p1"), window=1_000)
    tracker.observe({"input_tokens": 10, "output_tokens": 1})
    unused = DaemonSession("my-agent")
    del tracker, unused
    gc.collect()
    last = DaemonSession("my-agent")
    last.close()  # waits a second at most
    wait_until(lambda: [each for each in servers[0].events() if each["event"]["type"] == "Ended"])
    events = servers[0].events()
    assert [each["event"]["type"] for each in events] == ["WindowReported", "Call", "Ended"]
    assert {(each["agent"], each["parent"]) for each in events} == {("my-agent", "p1")}
    assert {each["session"] for each in events}.isdisjoint({last.id})


@pytest.mark.parametrize("agent", ["", "x" * 101, "claude"])
def test_impossible_agent_name_is_refused(agent: str) -> None:
    with pytest.raises(InvalidPolicy, match="agent"):
        DaemonSession(agent)


def test_impossible_session_id_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="id"):
        DaemonSession("my-agent", id="x" * 201)
