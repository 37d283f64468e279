"""The hook socket: requests in pieces, clients that are slow, wrong or gone, and large answers."""

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop

from brimline.agents.hook_adapter import HookRequest
from brimline.hooks.client.exchange import MAX_REPLY_BYTES
from brimline.hooks.receipt import decode_receipt
from brimline.observations import Reply
from brimline.server import retry
from brimline.server.hooks import hook_socket
from brimline.server.hooks.dispatcher import Answer, HookDispatcher
from brimline.server.hooks.hook_socket import ACK, HookSocket
from brimline.server.sockets import ListeningSocket
from brimline.store.failures import StoreFailed
from brimline.testing.hook_frames import encode_request, parse_reply, parse_reply_parts

REQUEST = encode_request(HookRequest("hook", "claude", "1-1", 1, {"TERM": "xterm"}, b"{}"))
LARGE = b"x" * 900_000
MATTERS = Answer(b"text", Reply(context="text", message_ids=("m1",)), wants_ack=True)


class Answering:
    """A desk that gives one answer, at once or after a while, and keeps what it is told.

    Its store fails so many times.
    """

    def __init__(self, answer: Answer, after: float | None = None, fails: int = 0) -> None:
        self._answer, self._after, self._fails = answer, after, fails
        self.asked: list[HookRequest] = []
        self.told: list[bool] = []

    async def handle(self, request: HookRequest) -> Answer:
        """The answer."""
        if self._after is not None:
            await asyncio.sleep(self._after)
        self.asked.append(request)
        return self._answer

    async def acknowledge(self, answer: Answer, passed_on: bool) -> None:
        """What became of it."""
        self.fail()
        self.told.append(passed_on)

    def fail(self) -> None:
        """Fail, where that is still to be done."""
        if self._fails:
            self._fails -= 1
            raise StoreFailed("brimline.db", "database is locked", "Another program has it.")


class Failing(Answering):
    """One that cannot keep what it is told."""

    async def handle(self, request: HookRequest) -> Answer:
        """It waits, and fails."""
        if self._after is not None:
            await asyncio.sleep(self._after)
        self.asked.append(request)
        self.fail()
        return self._answer


Talking = Callable[[socket.socket, Answering], Awaitable[None]]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where it listens; a path that is short enough for a socket."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield Path("hook")
    os.chdir(before)


def talk(
    place: Path, desk: Answering, client: Talking, clients: int = 1, client_wait_s: float = 4.0
) -> None:
    """Have clients talk to the socket, one after the other."""

    async def run() -> None:
        dispatcher = cast("HookDispatcher", desk)
        hooks = HookSocket(place, dispatcher, client_wait_s, accept_retry_s=0.01)
        hooks.open()
        try:
            for _ in range(clients):
                with closing(socket.socket(socket.AF_UNIX)) as connection:
                    connection.setblocking(False)
                    await asyncio.get_running_loop().sock_connect(connection, str(place))
                    await client(connection, desk)
        finally:
            await hooks.close()
        assert not place.exists()

    uvloop.run(run())


async def told(desk: Answering) -> bool:
    """What the desk was told last, when it was."""
    while not desk.told:
        await asyncio.sleep(0.001)
    return desk.told.pop()


async def reply(connection: socket.socket) -> bytes:
    """A whole reply."""
    data = b""
    while (text := parse_reply(data)) is None:
        data += await received(connection)
    return text


async def received(connection: socket.socket) -> bytes:
    """What comes next; nothing where it was hung up."""
    async with asyncio.timeout(20):
        return await asyncio.get_running_loop().sock_recv(connection, 1 << 16)


async def sent(connection: socket.socket, data: bytes) -> None:
    """Send it all."""
    await asyncio.get_running_loop().sock_sendall(connection, data)


@pytest.mark.parametrize("after", [None, 0.01], ids=["at once", "later"])
def test_an_answer(place: Path, after: float | None) -> None:
    """A request gets its reply, and where that does not matter it is hung up behind it."""
    desk = Answering(Answer(b"text"), after)

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        assert await reply(connection) == b"text"
        assert await received(connection) == b""

    talk(place, desk, client, clients=3)
    assert [request.env for request in desk.asked] == [{"TERM": "xterm"}] * 3
    assert desk.told == []


def test_delivery_is_confirmed_when_it_is_stored(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that asks for a receipt gets it, and a byte once the store has the delivery."""
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)
    asks = encode_request(HookRequest("hook", "claude", "1-1", 1, {}, b"{}", wants_receipt=True))

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, asks)
        data = b""
        while (parts := parse_reply_parts(data)) is None:
            data += await received(connection)
        assert parts[0] == b"text"
        assert decode_receipt(parts[1]).message_ids == ("m1",)
        await sent(connection, ACK)
        assert await received(connection) == ACK
        assert desk.told == [True]
        assert await received(connection) == b""

    talk(place, Answering(MATTERS), client)
    talk(place, Answering(MATTERS, fails=2), client)


@pytest.mark.parametrize("after", [None, 0.01], ids=["at once", "later"])
def test_passed_on(place: Path, after: float | None) -> None:
    """Where it matters the client's word is waited for; what is no such word is none."""

    async def passes_on(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        assert await reply(connection) == b"text"
        assert desk.told == []
        await sent(connection, ACK)
        assert await told(desk) is True
        assert await received(connection) == b""

    async def dies(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        await reply(connection)
        connection.close()
        assert await told(desk) is False

    async def says_something(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        await reply(connection)
        await sent(connection, b"?")
        assert await told(desk) is False

    for client in (passes_on, dies, says_something):
        talk(place, Answering(MATTERS, after), client)


def test_gone_before_the_answer(place: Path) -> None:
    """A client that did not wait got nothing; what it was to get is given back."""

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        await asyncio.sleep(0.02)
        connection.close()
        assert await told(desk) is False

    talk(place, Answering(MATTERS, 0.1), client)


@pytest.mark.parametrize("after", [None, 0.01], ids=["at once", "later"])
def test_store_that_fails(
    place: Path, after: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    """It is hung up without a reply, so that the client goes on alone; the next one is answered."""
    desk = Failing(Answer(b"text"), after, fails=2)

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        if len(desk.asked) < 2:
            assert await received(connection) == b""
        else:
            assert await reply(connection) == b"text"

    talk(place, desk, client, clients=3)
    assert len(caplog.records) == 1
    assert (
        "cannot store hook events, clients will spool them: brimline.db: database is locked"
        in caplog.text
    )


def test_passed_on_while_the_store_fails(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """That an answer was passed on is told until it is kept; that it was lost is told once."""
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)

    async def passes_on(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        await reply(connection)
        await sent(connection, ACK)
        assert await told(desk) is True

    async def dies(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        await reply(connection)
        connection.close()
        while len(caplog.records) < 2:
            await asyncio.sleep(0.001)
        assert desk.told == []

    talk(place, Answering(MATTERS, fails=3), passes_on)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "cannot store deliveries, will retry"
    ]
    talk(place, Answering(MATTERS, fails=1), dies)


def test_too_large_an_answer(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An answer that no client would take is lost, which is said, and it is hung up."""
    large = Answer(b"x" * (MAX_REPLY_BYTES + 1), MATTERS.reply, wants_ack=True)

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        assert await received(connection) == b""
        assert await told(desk) is False

    talk(place, Answering(large), client)
    assert "cannot answer a hook of claude" in caplog.text


def test_pieces(place: Path) -> None:
    """A request may come in any pieces."""
    desk = Answering(Answer(b""))

    async def client(connection: socket.socket, desk: Answering) -> None:
        for at in range(0, len(REQUEST), 7):
            await sent(connection, REQUEST[at : at + 7])
            await asyncio.sleep(0)
        assert await reply(connection) == b""

    talk(place, desk, client)
    assert [request.id for request in desk.asked] == ["1-1"]


def test_large(place: Path) -> None:
    """A request and a reply may be larger than a socket holds."""
    request = HookRequest("statusline", "claude", "1-1", 1, {}, LARGE)
    desk = Answering(Answer(LARGE))

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, encode_request(request))
        await asyncio.sleep(0.05)  # it has written what there is room for
        assert await reply(connection) == LARGE
        assert await received(connection) == b""

    talk(place, desk, client)
    assert desk.asked == [request]


@pytest.mark.parametrize("wrong", [b"GET / HTTP/1.1\r\n", b"x" * 200, b"BRIMLINE 1 2 0\nno"])
def test_wrong(place: Path, wrong: bytes) -> None:
    """Who asks wrongly is hung up on, and the next is heard."""
    desk = Answering(Answer(b"text"))

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, wrong)
        assert await received(connection) == b""

    talk(place, desk, client, clients=2)
    assert desk.asked == []


@pytest.mark.parametrize("part", [b"", REQUEST[:-1]], ids=["nothing", "not all"])
def test_too_slow(place: Path, part: bytes) -> None:
    """Who does not ask in time is hung up on."""

    async def client(connection: socket.socket, desk: Answering) -> None:
        if part:
            await sent(connection, part)
        assert await received(connection) == b""

    talk(place, Answering(Answer(b"")), client, clients=2, client_wait_s=0.02)


def test_never_says(place: Path) -> None:
    """Nor is the word waited for any longer."""

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        assert await reply(connection) == b"text"
        assert await told(desk) is False

    talk(place, Answering(MATTERS), client, client_wait_s=0.02)


def test_another_user(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user is not listened to."""

    def user_of(connection: socket.SocketType) -> int:
        return os.getuid() + 1

    monkeypatch.setattr(hook_socket, "peer_uid", user_of)
    desk = Answering(Answer(b"text"))

    async def client(connection: socket.socket, desk: Answering) -> None:
        assert await received(connection) == b""

    talk(place, desk, client)
    assert desk.asked == []


def test_too_many(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no more connections can be had it waits a while, and goes on."""
    full: list[Any] = [OSError(errno.EMFILE, "Too many open files"), BlockingIOError()]
    real = ListeningSocket.accept

    def next_one(self: ListeningSocket) -> tuple[socket.socket, Any]:
        if full:
            raise full.pop(0)
        return real(self)

    monkeypatch.setattr(ListeningSocket, "accept", next_one)
    desk = Answering(Answer(b"text"))

    async def client(connection: socket.socket, desk: Answering) -> None:
        await sent(connection, REQUEST)
        assert await reply(connection) == b"text"

    talk(place, desk, client)
    assert [record.message for record in caplog.records] == [
        "cannot accept hook connections, retrying in 0.01 s: [Errno 24] Too many open files"
    ]


def test_close_while_they_talk(place: Path) -> None:
    """What is under way is answered before it closes; who only waits is hung up on."""

    async def run() -> None:
        desk = Answering(Answer(b"text"), after=0.05)
        hooks = HookSocket(place, cast("HookDispatcher", desk))
        hooks.open()
        loop = asyncio.get_running_loop()
        with (
            closing(socket.socket(socket.AF_UNIX)) as asking,
            closing(socket.socket(socket.AF_UNIX)) as idle,
        ):
            for connection in (asking, idle):
                connection.setblocking(False)
                await loop.sock_connect(connection, str(place))
            await sent(asking, REQUEST)
            await asyncio.sleep(0.02)
            await hooks.close()
            assert await reply(asking) == b"text"
            assert await received(idle) == b""

    uvloop.run(run())


def test_hooks_that_wait_are_taken_together(place: Path) -> None:
    """A loop that is busy has few rounds per second: each takes all connections that wait."""

    async def run() -> int:
        desk = Answering(Answer(b"text"))
        hooks = HookSocket(place, cast("HookDispatcher", desk))
        hooks.open()
        clients = [socket.socket(socket.AF_UNIX) for _ in range(10)]
        for client in clients:
            client.connect(str(place))
            client.sendall(REQUEST)
        rounds = 0
        while len(desk.asked) < len(clients):
            rounds += 1
            await asyncio.sleep(0)
        for client in clients:
            client.close()
        await hooks.close()
        return rounds

    assert uvloop.run(run()) < 5


def test_client_that_gave_up_is_skipped(place: Path) -> None:
    """A busy daemon does not process what a client has spooled by now; it does what others sent.

    Two requests of long ago wait when the loop comes to them: one client has hung up.
    """

    async def run() -> list[str]:
        desk = Answering(Answer(b"text"))
        hooks = HookSocket(place, cast("HookDispatcher", desk))
        hooks.open()
        clients = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for number, client in enumerate(clients):
            client.connect(str(place))
            client.sendall(
                encode_request(HookRequest("hook", "claude", f"1-{number}", 1, {}, b"{}"))
            )
        clients[0].close()
        while not desk.asked:
            await asyncio.sleep(0)
        clients[1].close()
        await hooks.close()
        return [request.id for request in desk.asked]

    assert uvloop.run(run()) == ["1-1"]
