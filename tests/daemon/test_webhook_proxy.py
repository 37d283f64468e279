"""Webhooks through the proxy of the environment: a real proxy, a real TLS server."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvloop

from brimline.daemon.http_client import HttpFailed, find_proxy
from brimline.daemon.notices import TransportFailed, post_webhook

HOST = "hook.example"  # only the proxy can resolve it
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "REQUEST_METHOD")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class Proxy:
    """A proxy that records the head of each request, answers posts, and connects to `target`."""

    def __init__(self, target: int | None = None, answer: bytes = OK) -> None:
        self.heads: list[str] = []
        self._target, self._answer = target, answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                with client:
                    self._answer_one(client)

    def _answer_one(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head and (more := client.recv(1 << 16)):
            head += more
        self.heads.append(head.decode())
        client.sendall(self._answer)
        if self._target is None or not head.startswith(b"CONNECT"):
            return
        with socket.create_connection(("127.0.0.1", self._target)) as server:
            back = threading.Thread(target=pipe, args=(server, client))
            back.start()
            pipe(client, server)
            back.join()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()


def pipe(source: socket.socket, to: socket.socket) -> None:
    """Copy until one side ends."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)


@pytest.fixture
def make_proxy() -> Iterator[Callable[..., Proxy]]:
    """Starts proxies that end with the test."""
    proxies: list[Proxy] = []

    def make(target: int | None = None, answer: bytes = OK) -> Proxy:
        proxies.append(Proxy(target, answer))
        return proxies[-1]

    yield make
    for proxy in proxies:
        proxy.close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without proxies."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.fixture
def tls_port(tmp_path: Path, environment: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a TLS server with a trusted certificate, which answers one request."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={HOST}"
    files = ["-addext", f"subjectAltName=DNS:{HOST}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True)
    environment.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            client, _ = listener.accept()
            with context.wrap_socket(client, server_side=True) as encrypted:
                encrypted.recv(1 << 16)
                encrypted.sendall(OK)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.close()
    thread.join(10)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_http_webhook_goes_to_the_proxy(
    environment: pytest.MonkeyPatch, make_proxy: Callable[..., Proxy], name: str, scheme: str
) -> None:
    proxy = make_proxy()
    environment.setenv(name, f"{scheme}{proxy.address}")
    asyncio.run(post_webhook(f"http://{HOST}/hook?a=b", b"{}"))
    (head,) = proxy.heads
    assert head.startswith(f"POST http://{HOST}/hook?a=b HTTP/1.1\r\nHost: {HOST}\r\n")
    assert "Proxy-Authorization" not in head


Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_https_webhook_goes_through_a_tunnel(
    environment: pytest.MonkeyPatch,
    make_proxy: Callable[..., Proxy],
    tls_port: int,
    run: Run,
    name: str,
) -> None:
    """The proxy sees neither the path nor the body; its certificate is checked end to end."""
    proxy = make_proxy(tls_port)
    environment.setenv(name, f"http://us%40er:pass@{proxy.address}")
    run(post_webhook(f"https://{HOST}/secret-hook", b"{}"))
    (head,) = proxy.heads
    assert head == (
        f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\n"
        "Proxy-Authorization: Basic dXNAZXI6cGFzcw==\r\n\r\n"
    )


def test_proxy_credentials_are_sent_with_an_http_webhook(
    environment: pytest.MonkeyPatch, make_proxy: Callable[..., Proxy]
) -> None:
    proxy = make_proxy()
    environment.setenv("HTTP_PROXY", f"http://user@{proxy.address}")
    asyncio.run(post_webhook(f"http://{HOST}/", b"{}"))
    assert "\r\nProxy-Authorization: Basic dXNlcjo=\r\n" in proxy.heads[0]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "the proxy .* status 407"),
        (b"SSH-2.0\r\n", "the proxy did not answer with HTTP"),
    ],
)
def test_refusal_of_the_proxy_is_reported(
    environment: pytest.MonkeyPatch,
    make_proxy: Callable[..., Proxy],
    answer: bytes,
    problem: str,
) -> None:
    environment.setenv("HTTPS_PROXY", make_proxy(answer=answer).address)
    with pytest.raises(TransportFailed, match=problem):
        asyncio.run(post_webhook(f"https://{HOST}/", b"{}"))


@pytest.mark.parametrize(
    ("address", "without"),
    [
        ("http://hook.example/", "hook.example"),
        ("http://hook.example/", ".example"),
        ("http://hook.example:81/", "other, hook.example:81"),
        ("http://hook.example/", "*"),
        ("http://localhost:8000/", ""),
        ("http://hooks.localhost/", ""),
        ("http://127.0.0.2/", ""),
        ("http://[::1]:8000/", ""),
    ],
)
@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_no_proxy_and_loopback_addresses_are_reached_directly(
    environment: pytest.MonkeyPatch, address: str, without: str, name: str
) -> None:
    environment.setenv("HTTP_PROXY", "http://proxy.example:3128")
    environment.setenv(name, without)
    assert find_proxy(urlsplit(address)) is None


@pytest.mark.parametrize("address", ["http://hook.example:82/", "http://[2001:db8::1]/"])
def test_no_proxy_of_other_hosts_and_ports_leaves_the_proxy(
    environment: pytest.MonkeyPatch, address: str
) -> None:
    environment.setenv("HTTP_PROXY", "http://proxy.example:3128")
    environment.setenv("NO_PROXY", "hook.example:81")
    proxy = find_proxy(urlsplit(address))
    assert proxy is not None
    assert (proxy.hostname, proxy.port) == ("proxy.example", 3128)


def test_proxy_that_is_not_http_is_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("HTTPS_PROXY", "socks5://user:secret@proxy.example")
    with pytest.raises(HttpFailed) as failed:
        find_proxy(urlsplit("https://hook.example/"))
    assert str(failed.value) == "HTTPS_PROXY: expected http://HOST:PORT: got a socks5 address"
