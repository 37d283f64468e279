"""An OpenTelemetry collector on loopback that records what arrives."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

MAX_WAIT_S = 60.0


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The JSON of the body, unpacked."""
        is_packed = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if is_packed else self.body)


class RecordingCollector:
    """Answers each request with the next of `statuses`, then with 200, and with `reply`.

    `received` has every request that got a 200, `attempts` the status of each request. While `gate`
    is not set, requests wait: `waiting` counts those that arrived.
    """

    def __init__(self, *statuses: int, port: int = 0, reply: bytes = b"{}") -> None:
        self.received: list[Received] = []
        self.attempts: list[int] = []
        self.waiting = 0
        self.reply = reply
        self.gate = threading.Event()
        self.gate.set()
        left = list(statuses)
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self) -> None:
                with suppress(ConnectionError):  # a client may be killed, or not wait for a reply
                    super().handle()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.waiting += 1
                collector.gate.wait(MAX_WAIT_S)
                status = left.pop(0) if left else 200
                if status == 200:
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    collector.received.append(Received(self.path, headers, body))
                collector.attempts.append(status)
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(collector.reply)))
                self.end_headers()
                self.wfile.write(collector.reply)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def paths(self) -> list[str]:
        return [each.path for each in self.received]

    def until(self, fits: Callable[[], object]) -> None:
        """Wait until what was received fits."""
        end = time.monotonic() + MAX_WAIT_S
        while not fits():
            assert time.monotonic() < end, (self.attempts, self.paths())
            time.sleep(0.02)

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def recording_collector(
    *statuses: int, port: int = 0, reply: bytes = b"{}"
) -> Generator[RecordingCollector, None, None]:
    collector = RecordingCollector(*statuses, port=port, reply=reply)
    try:
        yield collector
    finally:
        collector.close()
