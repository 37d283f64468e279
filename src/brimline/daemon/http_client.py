"""HTTP posts to one address, directly or by the proxy of the environment."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from httptools import HttpParserError, HttpResponseParser

from brimline._version import __version__
from brimline.errors import BrimlineError
from brimline.files.loopback import is_loopback

REQUEST_TIMEOUT_S = 10.0
MAX_REPLY_BYTES = 4 << 20
MAX_HEAD_BYTES = 1 << 17
READ_BYTES = 1 << 16
TRUST_HINT = "set SSL_CERT_FILE to a file with its certificate authority"


class HttpFailed(BrimlineError):
    """A request that got no answer."""


class HttpReply(NamedTuple):
    """An answer; the names of headers are in lower case, a long body is cut off."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def retry_after_s(self, max_s: float) -> float:
        """Return the seconds of `Retry-After`, at most `max_s`; 0 if it is missing or a date."""
        text = self.headers.get("retry-after", "")
        return min(float(text), max_s) if text.isdecimal() else 0.0


class HttpClient:
    """Posts to an address over one connection, which stays open between posts.

    Posts must not overlap. Redirects are not followed: the request is for this address only.
    """

    def __init__(self, address: str) -> None:
        """Raises HttpFailed if the address is not http or https."""
        self._url = urlsplit(address)
        if self._url.scheme not in ("http", "https") or self._url.hostname is None:
            raise HttpFailed("expected an http or https address")
        self._connection: _Connection | None = None

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str],
        path: str = "",
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> HttpReply:
        """Post a body to a path below the address; raises HttpFailed."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._post(body, headers, path)
        except (OSError, TimeoutError, ValueError, HttpParserError) as error:
            self.close()
            raise HttpFailed(_describe_failure(error, timeout_s)) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next post opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _post(self, body: bytes, headers: Mapping[str, str], path: str) -> HttpReply:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                return await self._exchange(connection, body, headers, path)
            except ConnectionError:  # it was closed since the last post
                pass
        return await self._exchange(await _Connection.open(self._url), body, headers, path)

    async def _exchange(
        self, connection: "_Connection", body: bytes, headers: Mapping[str, str], path: str
    ) -> HttpReply:
        try:
            reply, may_be_used_again = await connection.exchange(body, headers, path)
        except BaseException:
            connection.close()
            raise
        if may_be_used_again:
            self._connection = connection
        else:
            connection.close()
        return reply


class _Connection:
    def __init__(
        self,
        url: SplitResult,
        proxy: SplitResult | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._url, self._proxy, self._reader, self._writer = url, proxy, reader, writer

    @classmethod
    async def open(cls, url: SplitResult) -> "_Connection":
        proxy = find_proxy(url)
        reader, writer = await _connect(url if proxy is None else proxy)
        try:
            if proxy is not None and url.scheme == "https":
                await _open_tunnel(reader, writer, url, proxy)
        except BaseException:
            writer.transport.abort()
            raise
        return cls(url, proxy, reader, writer)

    async def exchange(
        self, body: bytes, headers: Mapping[str, str], path: str
    ) -> tuple[HttpReply, bool]:
        """Return the reply, and whether the connection may be used again.

        Raises ConnectionError if the server has closed the connection without a reply.
        """
        self._writer.write(_request(self._url, self._proxy, body, headers, path))
        await self._writer.drain()
        reader = _ReplyReader()
        while not reader.is_complete:
            data = await self._reader.read(READ_BYTES)
            if not data:
                return reader.at_end(), False
            reader.feed(data)
        return reader.reply, reader.keeps_open

    def close(self) -> None:
        """Close at once: with TLS, `close` would wait for the other side, for up to 30 s."""
        self._writer.transport.abort()


class _ReplyReader:
    """Parses one reply."""

    def __init__(self) -> None:
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._has_head, self._read_bytes = False, 0
        self.keeps_open = self.is_complete = False
        self._parser = HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Parse what arrived next; raises HttpFailed if the head is too long."""
        self._parser.feed_data(data)
        self._read_bytes += len(data)
        if not self._has_head and self._read_bytes > MAX_HEAD_BYTES:
            raise HttpFailed(f"the head of the reply has more than {MAX_HEAD_BYTES:,} bytes")

    def at_end(self) -> HttpReply:
        """Return the reply of a server that ends it by closing the connection.

        Raises ConnectionError if there is none. HttpFailed is a part of one: the server has
        processed the request, which must not be sent again.
        """
        if not self._read_bytes:
            raise ConnectionResetError("the server closed the connection")
        is_chunked = self._headers.get("transfer-encoding", "").lower().endswith("chunked")
        if not self._has_head or is_chunked or "content-length" in self._headers:
            raise HttpFailed("the server closed the connection before the end of its reply")
        return self.reply

    @property
    def reply(self) -> HttpReply:
        return HttpReply(self._parser.get_status_code(), self._headers, bytes(self._body))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._has_head = True
        self.keeps_open = self._parser.should_keep_alive()  # not known any more after the body

    def on_body(self, body: bytes) -> None:
        self._body += body[: MAX_REPLY_BYTES - len(self._body)]

    def on_message_complete(self) -> None:
        self.is_complete = True


def _describe_failure(error: Exception, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, HttpParserError):
        return f"the answer is not HTTP: {error}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}; {TRUST_HINT}"
    reason = error.strerror if isinstance(error, OSError) else None  # without `[Errno 111]`
    return reason or str(error) or type(error).__name__


def find_proxy(url: SplitResult) -> SplitResult | None:
    """Return the proxy for an address, by the environment; raises HttpFailed.

    A loopback address has none.
    """
    from urllib.request import getproxies_environment, proxy_bypass  # slow to import

    address = getproxies_environment().get(url.scheme)
    if not address or is_loopback(url.hostname or "") or proxy_bypass(_host_port(url)):
        return None
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    if proxy.scheme not in ("http", "https") or proxy.hostname is None:
        name = f"{url.scheme.upper()}_PROXY"
        raise HttpFailed(f"{name}: expected http://HOST:PORT: got a {proxy.scheme} address")
    return proxy


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _host_port(url: SplitResult) -> str:
    host = url.hostname or ""
    return f"[{host}]:{_port(url)}" if ":" in host else f"{host}:{_port(url)}"


async def _connect(url: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    is_https = url.scheme == "https"
    return await asyncio.open_connection(url.hostname, _port(url), ssl=is_https or None)


async def _open_tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: SplitResult, proxy: SplitResult
) -> None:
    """Let a proxy connect to the address, and encrypt what follows; raises HttpFailed."""
    target = _host_port(url)
    lines = (f"CONNECT {target} HTTP/1.1", f"Host: {target}", *_proxy_credentials(proxy))
    writer.write(_head(lines))
    await writer.drain()
    match (await reader.readline()).split():
        case [version, b"200", *_] if version.startswith(b"HTTP/"):
            pass
        case [version, status, *_] if version.startswith(b"HTTP/") and status.isdigit():
            raise HttpFailed(f"the proxy answered with HTTP status {status.decode('latin-1')}")
        case _:
            raise HttpFailed("the proxy did not answer with HTTP")
    while (await reader.readline()).strip():
        pass
    await writer.start_tls(ssl.create_default_context(), server_hostname=url.hostname)


def _request(
    url: SplitResult, proxy: SplitResult | None, body: bytes, headers: Mapping[str, str], path: str
) -> bytes:
    host = url.netloc.rpartition("@")[2]
    target = (url.path.rstrip("/") + path if path else url.path) or "/"
    target += f"?{url.query}" if url.query else ""
    lines = [f"Host: {host}", f"User-Agent: brimline/{__version__}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    if proxy is not None and url.scheme == "http":  # else the proxy sees only the tunnel
        target = f"http://{host}{target}"
        lines += _proxy_credentials(proxy)
    return _head((f"POST {target} HTTP/1.1", *lines)) + body


def _head(lines: Sequence[str]) -> bytes:
    """Return the head of a request; a line break within a line raises ValueError."""
    if not all(line.isprintable() for line in lines):
        raise ValueError("a header has a control character")
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def _proxy_credentials(proxy: SplitResult) -> list[str]:
    if proxy.username is None:
        return []
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [f"Proxy-Authorization: Basic {b64encode(user.encode()).decode()}"]
