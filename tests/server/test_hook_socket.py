"""The hook socket: requests in pieces, clients that are slow, wrong or gone, and large replies."""

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
import uvloop

from brimline.agents.hook_adapter import HookRequest
from brimline.agents.observations import Reply
from brimline.daemon import retry
from brimline.daemon.hook_requests import hook_socket
from brimline.daemon.hook_requests.dispatcher import Answer, HookDispatcher
from brimline.daemon.hook_requests.hook_socket import ACK, HookSocket
from brimline.daemon.sockets import ListeningSocket
from brimline.errors import StoreFailed
from brimline.hooks.client.exchange import MAX_REPLY_BYTES
from brimline.hooks.protocol import decode_receipt
from brimline.testing.hook_frames import encode_request, parse_reply, parse_reply_parts

REQUEST = encode_request(HookRequest("hook", "claude", "1-1", 1, {"TERM": "xterm"}, b"{}"))
LARGE = b"x" * 900_000
MATTERS = Answer(b"text", Reply(context="text", message_ids=("m1",)), wants_ack=True)


MAX_WAIT_S = 60.0
T = TypeVar("T")


def run_bounded(work: Awaitable[T]) -> T:
    """Run in uvloop, which the timeout of a test does not interrupt."""
    return uvloop.run(asyncio.wait_for(work, MAX_WAIT_S))


class FakeDispatcher:
    """Gives one reply, at once or after a delay, and records requests; its store may fail first."""

    def __init__(self, answer: Answer, after: float | None = None, fails: int = 0) -> None:
        self._answer, self._after, self._fails = answer, after, fails
        self.requests: list[HookRequest] = []
        self.outcomes: list[bool | None] = []
        self.has_begun = False

    async def handle(self, request: HookRequest) -> Answer:
        self.has_begun = True
        if self._after is not None:
            await asyncio.sleep(self._after)
        self.requests.append(request)
        return self._answer

    async def acknowledge(self, answer: Answer, passed_on: bool | None) -> None:
        self.fail_if_due()
        self.outcomes.append(passed_on)

    def fail_if_due(self) -> None:
        if self._fails:
            self._fails -= 1
            raise StoreFailed("brimline.db", "database is locked", "Another program has it.")


class FailingDispatcher(FakeDispatcher):
    async def handle(self, request: HookRequest) -> Answer:
        if self._after is not None:
            await asyncio.sleep(self._after)
        self.requests.append(request)
        self.fail_if_due()
        return self._answer


Talking = Callable[[socket.socket, FakeDispatcher], Awaitable[None]]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A path that is short enough for a socket."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield Path("hook")
    os.chdir(before)


def run_clients(
    path: Path, desk: FakeDispatcher, client: Talking, clients: int = 1, client_wait_s: float = 4.0
) -> None:
    """Run clients against the socket, one after the other."""

    async def run() -> None:
        dispatcher = cast("HookDispatcher", desk)
        hooks = HookSocket(path, dispatcher, client_wait_s, accept_retry_s=0.01)
        hooks.open()
        try:
            for _ in range(clients):
                with closing(socket.socket(socket.AF_UNIX)) as connection:
                    connection.setblocking(False)
                    await asyncio.get_running_loop().sock_connect(connection, str(path))
                    await client(connection, desk)
        finally:
            await hooks.close()
        assert not path.exists()

    run_bounded(run())


async def last_outcome(desk: FakeDispatcher) -> bool | None:
    """Wait for the last acknowledgement and return it; None if the client may have printed."""
    while not desk.outcomes:
        await asyncio.sleep(0.001)
    return desk.outcomes.pop()


async def begin(desk: FakeDispatcher) -> None:
    """Wait until a request is being handled."""
    while not desk.has_begun:
        await asyncio.sleep(0.001)


async def read_reply(connection: socket.socket) -> bytes:
    data = b""
    while (text := parse_reply(data)) is None:
        data += await receive(connection)
    return text


async def receive(connection: socket.socket) -> bytes:
    """Return the next bytes; empty when the socket was closed."""
    async with asyncio.timeout(MAX_WAIT_S):
        return await asyncio.get_running_loop().sock_recv(connection, 1 << 16)


async def send_all(connection: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, data)


@pytest.mark.parametrize("after", [None, 0.01], ids=["at once", "later"])
def test_reply_that_needs_no_acknowledgement_closes_the_connection(
    path: Path, after: float | None
) -> None:
    desk = FakeDispatcher(Answer(b"text"), after)

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        assert await read_reply(connection) == b"text"
        assert await receive(connection) == b""

    run_clients(path, desk, client, clients=3)
    assert [request.env for request in desk.requests] == [{"TERM": "xterm"}] * 3
    assert desk.outcomes == []


def test_receipt_is_confirmed_when_the_delivery_is_stored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)
    asks = encode_request(HookRequest("hook", "claude", "1-1", 1, {}, b"{}", wants_receipt=True))

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, asks)
        data = b""
        while (parts := parse_reply_parts(data)) is None:
            data += await receive(connection)
        assert parts[0] == b"text"
        assert decode_receipt(parts[1]).message_ids == ("m1",)
        await send_all(connection, ACK)
        assert await receive(connection) == ACK
        assert desk.outcomes == [True]
        assert await receive(connection) == b""

    run_clients(path, FakeDispatcher(MATTERS), client)
    run_clients(path, FakeDispatcher(MATTERS, fails=2), client)


@pytest.mark.parametrize("after", [None, 0.01], ids=["at once", "later"])
def test_only_an_acknowledgement_byte_counts_as_delivered(path: Path, after: float | None) -> None:
    async def passes_on(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        assert await read_reply(connection) == b"text"
        assert desk.outcomes == []
        await send_all(connection, ACK)
        assert await last_outcome(desk) is True
        assert await receive(connection) == b""

    async def dies(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        await read_reply(connection)
        connection.close()
        assert await last_outcome(desk) is None

    async def says_something(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        await read_reply(connection)
        await send_all(connection, b"?")
        assert await last_outcome(desk) is None

    for client in (passes_on, dies, says_something):
        run_clients(path, FakeDispatcher(MATTERS, after), client)


def test_reply_to_a_disconnected_client_is_returned_as_lost(path: Path) -> None:
    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        await begin(desk)
        connection.close()
        assert await last_outcome(desk) is False

    run_clients(path, FakeDispatcher(MATTERS, 0.1), client)


@pytest.mark.parametrize("after", [None, 0.01], ids=["at once", "later"])
def test_failing_store_closes_the_connection_without_a_reply(
    path: Path, after: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    desk = FailingDispatcher(Answer(b"text"), after, fails=2)

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        if len(desk.requests) < 2:
            assert await receive(connection) == b""
        else:
            assert await read_reply(connection) == b"text"

    run_clients(path, desk, client, clients=3)
    assert len(caplog.records) == 1
    assert (
        "cannot store hook events, clients will spool them: brimline.db: database is locked"
        in caplog.text
    )


def test_delivery_is_retried_until_stored_and_a_loss_reported_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)

    async def passes_on(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        await read_reply(connection)
        await send_all(connection, ACK)
        assert await last_outcome(desk) is True

    async def dies(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        await read_reply(connection)
        connection.close()
        while len(caplog.records) < 2:
            await asyncio.sleep(0.001)
        assert desk.outcomes == []

    run_clients(path, FakeDispatcher(MATTERS, fails=3), passes_on)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "cannot store deliveries, will retry"
    ]
    run_clients(path, FakeDispatcher(MATTERS, fails=1), dies)


def test_oversized_reply_is_lost_and_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    large = Answer(b"x" * (MAX_REPLY_BYTES + 1), MATTERS.reply, wants_ack=True)

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        assert await receive(connection) == b""
        assert await last_outcome(desk) is False

    run_clients(path, FakeDispatcher(large), client)
    assert "cannot answer a hook of claude" in caplog.text


def test_request_may_arrive_in_any_pieces(path: Path) -> None:
    desk = FakeDispatcher(Answer(b""))

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        for at in range(0, len(REQUEST), 7):
            await send_all(connection, REQUEST[at : at + 7])
            await asyncio.sleep(0)
        assert await read_reply(connection) == b""

    run_clients(path, desk, client)
    assert [request.id for request in desk.requests] == ["1-1"]


def test_request_and_reply_may_exceed_the_socket_buffer(path: Path) -> None:
    request = HookRequest("statusline", "claude", "1-1", 1, {}, LARGE)
    desk = FakeDispatcher(Answer(LARGE))

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, encode_request(request))
        await asyncio.sleep(0.05)  # it has written what there is room for
        assert await read_reply(connection) == LARGE
        assert await receive(connection) == b""

    run_clients(path, desk, client)
    assert desk.requests == [request]


@pytest.mark.parametrize("wrong", [b"GET / HTTP/1.1\r\n", b"x" * 200, b"BRIMLINE 1 2 0\nno"])
def test_invalid_request_closes_only_its_connection(path: Path, wrong: bytes) -> None:
    desk = FakeDispatcher(Answer(b"text"))

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, wrong)
        assert await receive(connection) == b""

    run_clients(path, desk, client, clients=2)
    assert desk.requests == []


@pytest.mark.parametrize("part", [b"", REQUEST[:-1]], ids=["nothing", "not all"])
def test_slow_request_is_disconnected(path: Path, part: bytes) -> None:
    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        if part:
            await send_all(connection, part)
        assert await receive(connection) == b""

    run_clients(path, FakeDispatcher(Answer(b"")), client, clients=2, client_wait_s=0.02)


def test_missing_acknowledgement_is_not_waited_for(path: Path) -> None:
    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        assert await read_reply(connection) == b"text"
        assert await last_outcome(desk) is None

    # The request must arrive in this time, too.
    run_clients(path, FakeDispatcher(MATTERS), client, client_wait_s=0.5)


def test_request_of_another_user_is_ignored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def user_of(connection: socket.SocketType) -> int:
        return os.getuid() + 1

    monkeypatch.setattr(hook_socket, "peer_uid", user_of)
    desk = FakeDispatcher(Answer(b"text"))

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        assert await receive(connection) == b""

    run_clients(path, desk, client)
    assert desk.requests == []


def test_accept_resumes_after_the_descriptor_limit(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full: list[Any] = [OSError(errno.EMFILE, "Too many open files"), BlockingIOError()]
    real = ListeningSocket.accept

    def next_one(self: ListeningSocket) -> tuple[socket.socket, Any]:
        if full:
            raise full.pop(0)
        return real(self)

    monkeypatch.setattr(ListeningSocket, "accept", next_one)
    desk = FakeDispatcher(Answer(b"text"))

    async def client(connection: socket.socket, desk: FakeDispatcher) -> None:
        await send_all(connection, REQUEST)
        assert await read_reply(connection) == b"text"

    run_clients(path, desk, client)
    assert [record.message for record in caplog.records] == [
        "cannot accept hook connections, retrying in 0.01 s: [Errno 24] Too many open files"
    ]


def test_close_answers_running_requests_and_disconnects_idle_clients(path: Path) -> None:
    async def run() -> None:
        desk = FakeDispatcher(Answer(b"text"), after=0.05)
        hooks = HookSocket(path, cast("HookDispatcher", desk))
        hooks.open()
        loop = asyncio.get_running_loop()
        with (
            closing(socket.socket(socket.AF_UNIX)) as asking,
            closing(socket.socket(socket.AF_UNIX)) as idle,
        ):
            for connection in (asking, idle):
                connection.setblocking(False)
                await loop.sock_connect(connection, str(path))
            await send_all(asking, REQUEST)
            await begin(desk)
            await hooks.close()
            assert await read_reply(asking) == b"text"
            assert await receive(idle) == b""

    run_bounded(run())


def test_one_round_of_the_loop_accepts_all_waiting_connections(path: Path) -> None:
    async def run() -> int:
        desk = FakeDispatcher(Answer(b"text"))
        hooks = HookSocket(path, cast("HookDispatcher", desk))
        hooks.open()
        clients = [socket.socket(socket.AF_UNIX) for _ in range(10)]
        for client in clients:
            client.connect(str(path))
            client.sendall(REQUEST)
        rounds = 0
        while len(desk.requests) < len(clients):
            rounds += 1
            await asyncio.sleep(0)
        for client in clients:
            client.close()
        await hooks.close()
        return rounds

    assert run_bounded(run()) < 5


def test_request_of_a_disconnected_client_is_skipped(path: Path) -> None:
    """Two old requests wait; the client of one has disconnected."""

    async def run() -> list[str]:
        desk = FakeDispatcher(Answer(b"text"))
        hooks = HookSocket(path, cast("HookDispatcher", desk))
        hooks.open()
        clients = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for number, client in enumerate(clients):
            client.connect(str(path))
            client.sendall(
                encode_request(HookRequest("hook", "claude", f"1-{number}", 1, {}, b"{}"))
            )
        clients[0].close()
        while not desk.requests:
            await asyncio.sleep(0)
        clients[1].close()
        await hooks.close()
        return [request.id for request in desk.requests]

    assert run_bounded(run()) == ["1-1"]
