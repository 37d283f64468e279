"""HTTP requests to one address, directly or by the proxy of the environment."""

import asyncio
import os
import re
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

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
    """Sends requests to an address over one connection, which stays open between them.

    Requests must not overlap. Redirects are not followed: a request is for this address only.
    """

    def __init__(self, address: str) -> None:
        """Raises HttpFailed if the address is not http or https."""
        self._url = urlsplit(address)
        if self._url.scheme not in ("http", "https") or self._url.hostname is None:
            raise HttpFailed("expected an http or https address")
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str],
        path: str = "",
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> HttpReply:
        """Post a body to a path below the address; raises HttpFailed."""
        return await self.request("POST", headers, body, path, timeout_s)

    async def request(
        self, method: str, headers: Mapping[str, str], body: bytes, path: str, timeout_s: float
    ) -> HttpReply:
        """Send a request to a path below the address; raises HttpFailed."""
        was_open = self._connection is not None
        try:
            async with asyncio.timeout(timeout_s):
                try:
                    return await self._exchange(method, headers, body, path)
                except ConnectionError:
                    if not was_open:
                        raise
                    self.close()  # the server has closed it since the last request
                    return await self._exchange(method, headers, body, path)
        except (OSError, ValueError) as error:
            self.close()
            raise HttpFailed(_describe_failure(error, timeout_s)) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            _, writer = self._connection
            writer.transport.abort()  # with TLS, `close` would wait up to 30 s for the other side
            self._connection = None

    async def _exchange(
        self, method: str, headers: Mapping[str, str], body: bytes, path: str
    ) -> HttpReply:
        """Raises ConnectionError if the server has closed the connection without a reply."""
        url, proxy = self._url, find_proxy(self._url)
        reader, writer = self._connection or await self._connect(proxy)
        host = url.netloc.rpartition("@")[2]
        target = (url.path.rstrip("/") + path if path else url.path) or "/"
        target += f"?{url.query}" if url.query else ""
        fields = {"Host": host, "User-Agent": f"brimline/{__version__}", **headers}
        if proxy is not None and url.scheme == "http":  # else the proxy sees only the tunnel
            target = f"http://{host}{target}"
            fields |= _proxy_credentials(proxy)
        fields["Content-Length"] = str(len(body))
        writer.write(encode_head(method, target, fields) + body)
        await writer.drain()
        reply = ReplyReader(reader)
        content = await reply.read_all(MAX_REPLY_BYTES)
        if not reply.keeps_open:
            self.close()
        return HttpReply(reply.status, reply.headers, content)

    async def _connect(
        self, proxy: SplitResult | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        peer = proxy or self._url
        self._connection = await asyncio.open_connection(
            peer.hostname, _port(peer), ssl=peer.scheme == "https" or None
        )
        if proxy is not None and self._url.scheme == "https":
            await _open_tunnel(*self._connection, self._url, proxy)
        return self._connection


async def request_once(
    method: str,
    address: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    timeout_s: float = REQUEST_TIMEOUT_S,
) -> HttpReply:
    """Send a request over a connection of its own; raises HttpFailed."""
    with closing(HttpClient(address)) as client:
        headers = {**headers, "Connection": "close"}
        return await client.request(method, headers, body, "", timeout_s)


class ReplyReader:
    """Reads one reply from a connection; status and headers are known after the first `read`."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._parser = HttpResponseParser(self)
        self._body = bytearray()
        self._read_bytes = 0
        self._has_head = self._is_complete = False
        self.headers: dict[str, str] = {}
        self.keeps_open = False

    @property
    def status(self) -> int:
        return self._parser.get_status_code()

    async def read(self) -> bytes:
        """Return what comes next of the body, or nothing at its end.

        Raises ConnectionError if the server closes the connection without a reply. HttpFailed is
        another end: the server has processed the request, which must not be sent again.
        """
        while not self._body and not self._is_complete:
            data = await self._reader.read(READ_BYTES)
            if data:
                self._feed(data)
            else:
                self._end()
        part = bytes(self._body)
        self._body.clear()
        return part

    async def read_all(self, max_bytes: int) -> bytes:
        """Return the whole body, cut off after `max_bytes`; raises as `read`."""
        body = bytearray()
        while part := await self.read():
            body += part[: max_bytes - len(body)]
        return bytes(body)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            raise HttpFailed(f"the answer is not HTTP: {error}") from error
        except HttpParserUpgrade as error:  # not a subclass
            raise HttpFailed("the server changes to another protocol") from error
        self._read_bytes += len(data)
        if not self._has_head and self._read_bytes > MAX_HEAD_BYTES:
            raise HttpFailed(f"the head of the reply has more than {MAX_HEAD_BYTES:,} bytes")

    def _end(self) -> None:
        if not self._read_bytes:
            raise ConnectionResetError("the server closed the connection")
        is_chunked = self.headers.get("transfer-encoding", "").lower().endswith("chunked")
        if not self._has_head or is_chunked or "content-length" in self.headers:
            raise HttpFailed("the server closed the connection before the end of its reply")
        self._is_complete, self.keeps_open = True, False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._has_head = True
        self.keeps_open = self._parser.should_keep_alive()  # not known any more after the body

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._is_complete = True


def encode_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a request; a line break within a line raises ValueError."""
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if not all(line.isprintable() for line in lines):
        raise ValueError("a header has a control character")
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def _describe_failure(error: Exception, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}; {TRUST_HINT}"
    # asyncio names each address: "[Errno 111] Connect call failed ('127.0.0.1', 9)".
    if match := re.search(r"\[Errno (\d+)\] Connect", str(error)):
        return os.strerror(int(match[1]))
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


async def _open_tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: SplitResult, proxy: SplitResult
) -> None:
    """Let a proxy connect to the address, and encrypt what follows; raises HttpFailed."""
    target = _host_port(url)
    writer.write(encode_head("CONNECT", target, {"Host": target, **_proxy_credentials(proxy)}))
    await writer.drain()
    version, status, *_ = [*(await reader.readline()).decode("latin-1").split(), "", ""]
    if not version.startswith("HTTP/") or not status.isdecimal():
        raise HttpFailed("the proxy did not answer with HTTP")
    if status != "200":
        raise HttpFailed(f"the proxy answered with HTTP status {status}")
    while (await reader.readline()).strip():
        pass
    await writer.start_tls(ssl.create_default_context(), server_hostname=url.hostname)


def _proxy_credentials(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"}
