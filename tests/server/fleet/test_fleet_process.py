"""Replicas of a fleet's server as processes, with a PostgreSQL of their own."""

import asyncio
import signal
import ssl
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from brimline.daemon.uplink.failure import UplinkFailed
from brimline.daemon.uplink.protocol import UplinkBatch, UplinkReply
from brimline.daemon.uplink.sender import UplinkSender
from brimline.settings import UplinkSettings
from fleet_server import MAX_WAIT_S, FleetProcess, new_token
from postgres_server import LocalServer, local_server
from system_programs import require_program

pytestmark = pytest.mark.slow

SESSIONS = "/v1/sessions"
USAGE = {"input": 9, "cache_read": 0, "cache_write": 0, "output": 5}


def call_event(id: str) -> dict[str, object]:
    event = {"type": "Call", "id": id, "usage": USAGE}
    return {"events": [{"id": id, "session": "s", "agent": "claude", "event": event}]}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with local_server() as server:
        yield server


@pytest.fixture(scope="module")
def replica(
    server: LocalServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FleetProcess]:
    replica = FleetProcess(server.url, tmp_path_factory.mktemp("replica"))
    yield replica
    replica.close()


@pytest.fixture(scope="module")
def token(server: LocalServer, replica: FleetProcess) -> str:
    return new_token(server.url)


def test_second_replica_serves_the_same_sessions_and_ends_on_ctrl_c(
    server: LocalServer, replica: FleetProcess, token: str, tmp_path: Path
) -> None:
    assert replica.request("POST", "/v1/events", token, call_event("c1")).status == 200
    other = FleetProcess(server.url, tmp_path)
    try:
        assert other.request("POST", "/v1/events", token, call_event("c2")).status == 200
        for each in (replica, other):
            (view,) = each.request("GET", SESSIONS, token).json
            assert (view["session"]["id"], view["threads"][0]["calls"]) == ("s", 2)
        assert other.request("GET", SESSIONS).status == 401
        assert other.request("GET", "/healthz").json == {"status": "ok"}
        assert other.stop(signal.SIGINT) == 0
    finally:
        other.close()
    assert list(tmp_path.iterdir()) == []  # it needs no folder of its own


def test_responses_and_streams_are_compressed(replica: FleetProcess, token: str) -> None:
    """An event reaches the page at once, not when enough of them fill a block."""
    assert replica.request("POST", "/v1/events", token, call_event("zipped")).status == 200
    gzip = {"accept-encoding": "gzip"}
    schema = replica.request("GET", "/openapi.json", token, headers=gzip)
    plain = replica.request("GET", "/openapi.json", token)
    assert zlib.decompress(schema.body, zlib.MAX_WBITS | 16) == plain.body
    assert len(schema.body) < 0.3 * len(plain.body)
    host = urlsplit(replica.url).netloc
    with closing(HTTPConnection(host, timeout=MAX_WAIT_S)) as connection:
        connection.request("GET", "/v1/stream", headers=gzip | {"authorization": f"Bearer {token}"})
        stream, decoder, text = (
            connection.getresponse(),
            zlib.decompressobj(zlib.MAX_WBITS | 16),
            b"",
        )
        assert stream.headers["content-encoding"] == "gzip"
        while b'"id":"s"' not in text:
            text += decoder.decompress(stream.read1())
        assert replica.request("POST", "/v1/events", token, call_event("next")).status == 200
        text = b""
        while b"event: " not in text:
            text += decoder.decompress(stream.read1())


def send_batch(url: str, token: str) -> UplinkReply:
    """Send an empty batch as a machine's uplink does."""

    async def sent() -> UplinkReply:
        sender = UplinkSender(UplinkSettings(token=token), url, Path("unused"))
        try:
            return await sender.send(UplinkBatch("m1"))
        finally:
            sender.close()

    return asyncio.run(sent())


def test_server_speaks_tls(
    server: LocalServer, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    create = [
        require_program("openssl"), "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec",
        "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    subprocess.run(create, check=True, capture_output=True)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    replica = FleetProcess(server.url, tmp_path, *options, listen="0.0.0.0:0")
    try:
        replica.url = replica.url.replace("0.0.0.0", "127.0.0.1")
        assert replica.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(certificate))
        assert replica.request("GET", SESSIONS, token, context=trusting).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            replica.request("GET", SESSIONS, token, context=ssl.create_default_context())
        with pytest.raises(UplinkFailed, match=r"certificate verify failed: .*SSL_CERT_FILE"):
            send_batch(replica.url, token)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert send_batch(replica.url, token) == UplinkReply(machine="m1", stamp=0)
    finally:
        assert replica.stop() == 0


def test_clients_do_not_fill_the_log(server: LocalServer, token: str, tmp_path: Path) -> None:
    replica = FleetProcess(server.url, tmp_path)
    try:
        for path in ("/v1/events", "/sign-in"):
            with closing(HTTPConnection(urlsplit(replica.url).netloc)) as client:
                client.putrequest("POST", path)
                headers = {"Authorization": f"Bearer {token}", "Sec-Fetch-Site": "same-origin"}
                for header in (headers | {"Content-Length": "9"}).items():
                    client.putheader(*header)
                client.endheaders(b"{")
        assert replica.request("NOSUCH", SESSIONS, token).status == 400
        assert replica.request("GET", SESSIONS, token).status == 200
        replica.process.send_signal(signal.SIGTERM)
        assert replica.process.communicate(timeout=MAX_WAIT_S)[0] == ""
    finally:
        replica.close()


def test_restart_of_postgresql_is_survived(
    server: LocalServer, replica: FleetProcess, token: str
) -> None:
    """Meanwhile requests get a 503 that says when to try again, and no name of the database."""
    assert replica.request("GET", SESSIONS, token).status == 200
    server.crash()
    try:
        reply = replica.request("GET", SESSIONS, token)
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert reply.json["error"] == "the server's database does not answer"
        unknown = replica.request("GET", SESSIONS, f"brim_{'a' * 43}")
        assert (unknown.status, unknown.headers["retry-after"]) == (503, "1")
        assert unknown.json["error"] == "the server's database does not answer"
        assert replica.request("GET", "/healthz").status == 200
        assert replica.request("GET", "/readyz").status == 503
    finally:
        server.start()
    deadline = time.monotonic() + MAX_WAIT_S
    while replica.request("POST", "/v1/events", token, call_event("after")).status != 200:
        assert time.monotonic() < deadline
    assert replica.request("GET", "/readyz").status == 200
    (view,) = replica.request("GET", SESSIONS, token).json
    assert view["session"]["id"] == "s"
    replica.process.send_signal(signal.SIGTERM)
    [line] = replica.process.communicate(timeout=MAX_WAIT_S)[0].splitlines()
    assert line.startswith("requests fail: postgresql:///")
