"""Posts over a connection that stays open, to a real server."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from brimline.daemon.http_client import MAX_REPLY_BYTES, HttpClient, HttpFailed, HttpReply

Serve = Callable[[int, bytes], bytes | None]  # connection and request -> reply, None to hang up
Use = Callable[[HttpClient], Coroutine[Any, Any, None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-One: 1\r\n\r\nok"


def use_client(serve: Serve, use: Use, address: str = "") -> None:
    """Run a client against a server, which numbers its connections from 0."""

    async def run() -> None:
        connections: list[asyncio.StreamWriter] = []

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            number = len(connections)
            connections.append(writer)
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(line.split(b": ") for line in head.split(b"\r\n")[1:-2])
                body = await reader.readexactly(int(fields[b"Content-Length"]))
                reply = serve(number, head + body)
                if reply is None:
                    break
                writer.write(reply)
                if b"Connection: close" in reply:
                    break
            writer.close()

        server = await asyncio.start_server(
            lambda reader, writer: _until_end(accept(reader, writer)), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        client = HttpClient(f"http://127.0.0.1:{port}{address}")
        try:
            await use(client)
        finally:
            client.close()
            server.close()
            for connection in connections:
                connection.close()

    asyncio.run(run())


async def _until_end(accepted: Coroutine[Any, Any, None]) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        await accepted


def test_posts_share_a_connection() -> None:
    seen: list[tuple[int, bytes]] = []

    def serve(number: int, request: bytes) -> bytes:
        seen.append((number, request))
        return OK

    async def use(client: HttpClient) -> None:
        assert await client.post(b"a", {"X-Key": "k"}) == HttpReply(
            200, {"content-length": "2", "x-one": "1"}, b"ok"
        )
        await client.post(b"bc", {}, path="/v1/logs")

    use_client(serve, use, "/base/?q=1")
    assert [number for number, _ in seen] == [0, 0]
    assert seen[0][1].startswith(b"POST /base/?q=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Key: k\r\n" in seen[0][1]
    assert seen[1][1].startswith(b"POST /base/v1/logs?q=1 HTTP/1.1\r\n")
    assert seen[1][1].endswith(b"\r\n\r\nbc")


def test_connection_that_the_server_closed_is_opened_again() -> None:
    """Without a word, or after it said so: the next post gets its reply by another one."""
    seen: list[int] = []
    replies = [OK, None, OK, b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end", OK]

    def serve(number: int, request: bytes) -> bytes | None:
        seen.append(number)
        return replies[len(seen) - 1]

    async def use(client: HttpClient) -> None:
        assert [(await client.post(b"", {})).body for _ in range(4)] == [
            b"ok", b"ok", b"to the end", b"ok"
        ]  # fmt: skip

    use_client(serve, use)
    assert seen == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (None, "closed the connection"),
        (b"SSH-2.0\r\n\r\n", "is not HTTP"),
        (b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nX-Endless: " + b"x" * 300_000, "head of the reply has more than"),
    ],
)
def test_server_without_a_usable_reply_fails(reply: bytes | None, problem: str) -> None:
    async def use(client: HttpClient) -> None:
        with pytest.raises(HttpFailed, match=problem):
            await client.post(b"", {})

    use_client(lambda number, request: reply, use)


def closing(reply: bytes) -> bytes:
    """Have the server close the connection after a reply."""
    return reply.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


@pytest.mark.parametrize(
    "part",
    [
        b"HTTP/1.1 200 OK\r\nContent-Len",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789",
        b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\n012",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\n012\r\n",
    ],
)
def test_truncated_reply_fails_and_its_post_is_not_repeated(part: bytes) -> None:
    """The server has processed the post, also one on a connection that was open already."""
    seen: list[int] = []

    def serve(number: int, request: bytes) -> bytes:
        seen.append(number)
        return OK if len(seen) == 1 else closing(part)

    async def use(client: HttpClient) -> None:
        await client.post(b"", {})
        with pytest.raises(HttpFailed, match="before the end of its reply"):
            await client.post(b"", {})

    use_client(serve, use)
    assert seen == [0, 0]


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nto the e",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nto the e\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nto the e",
        b"HTTP/1.0 200 OK\r\nX-One: 1\r\n\r\nto the e",
    ],
)
def test_whole_reply_on_a_connection_that_is_closed_succeeds(reply: bytes) -> None:
    async def use(client: HttpClient) -> None:
        assert (await client.post(b"", {})).body == b"to the e"

    use_client(lambda number, request: closing(reply), use)


def test_long_reply_is_cut_off() -> None:
    async def use(client: HttpClient) -> None:
        reply = await client.post(b"", {})
        assert (reply.status, len(reply.body)) == (413, MAX_REPLY_BYTES)

    length = MAX_REPLY_BYTES + 100_000
    head = b"HTTP/1.1 413 Large\r\nContent-Length: %d\r\n\r\n" % length
    use_client(lambda number, request: head + b"x" * length, use)


def test_line_break_in_a_header_is_refused() -> None:
    async def use(client: HttpClient) -> None:
        with pytest.raises(HttpFailed, match="control character"):
            await client.post(b"", {"X-Key": "k\r\nX-Other: 1"})

    use_client(lambda number, request: OK, use)


def test_cancelled_post_closes_its_connection() -> None:
    """The reply to it must not be read as that of the next post."""
    seen: list[int] = []

    def serve(number: int, request: bytes) -> bytes:
        seen.append(number)
        return b"" if len(seen) == 1 else OK

    async def use(client: HttpClient) -> None:
        post = asyncio.create_task(client.post(b"", {}))
        while not seen:
            await asyncio.sleep(0)
        post.cancel()
        with pytest.raises(asyncio.CancelledError):
            await post
        assert (await client.post(b"", {})).body == b"ok"

    use_client(serve, use)
    assert seen == [0, 1]
