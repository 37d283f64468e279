"""The fake model on a loopback port, one thread per connection."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from .apis import Json, ServerSentEvent, Wire, anthropic, chat, gemini, responses
from .billed import Billed, BillingLog, Refused
from .model import Answered, Failed, ScriptedModel
from .scenario import Scenario

POLL_INTERVAL_S = 0.02  # seconds until the server notices that it is to stop

ROUTES: tuple[tuple[str, Wire], ...] = (
    ("/messages", anthropic.WIRE),
    ("/responses", responses.WIRE),
    (responses.COMPACT, responses.COMPACTING),
    ("/chat/completions", chat.WIRE),
    (":generateContent", gemini.WIRE),
    (":streamGenerateContent", gemini.WIRE),
)
COUNTING: tuple[tuple[str, Wire, str], ...] = (
    ("/messages/count_tokens", anthropic.WIRE, "input_tokens"),
    (":countTokens", gemini.WIRE, "totalTokens"),
)


class FakeModel:
    """A model API on 127.0.0.1 that answers from a scenario and keeps a billing log."""

    def __init__(
        self,
        scenario: Scenario | None = None,
        *,
        log: Path | None = None,
        requests: Path | None = None,
        port: int = 0,
    ) -> None:
        self._log = BillingLog(log)
        self._server = _Server(port, ScriptedModel(scenario or Scenario(), self._log), requests)
        serve = functools.partial(self._server.serve_forever, poll_interval=POLL_INTERVAL_S)
        self._thread = threading.Thread(target=serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        """The address without a path and without a slash at its end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def billed(self) -> tuple[Billed, ...]:
        """Every call answered so far."""
        return self._log.billed

    @property
    def refused(self) -> tuple[Refused, ...]:
        """Every call answered with an error so far."""
        return self._log.refused


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, model: ScriptedModel, requests: Path | None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.model = model
        self.requests = requests
        self.requests_lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a client hang up without a trace on the terminal."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def fake(self) -> _Server:
        """The server that took the connection."""
        return cast("_Server", self.server)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the billing log is the record."""

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self._note(b"")
        if path.endswith("/models"):
            self._send(200, {"object": "list", "data": [], "models": []})
        else:
            self._send(404, {"error": {"message": f"the fake model has no {path}"}})

    def do_POST(self) -> None:
        body = self._body()
        self._note(body)
        try:
            self._post(body, self.path.partition("?")[0])
        except msgspec.DecodeError as error:
            self._send(400, {"error": {"message": f"{self.path}: {error}"}})

    def _post(self, body: bytes, path: str) -> None:
        for end, wire, name in COUNTING:
            if path.endswith(end):
                return self._send(200, {name: self.fake.model.count(wire, body, self.path)})
        for end, wire in ROUTES:
            if path.endswith(end):
                return self._ask(wire, body)
        return self._send(404, {"error": {"message": f"the fake model has no {path}"}})

    def _ask(self, wire: Wire, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        match self.fake.model.ask(wire, body, self.path, headers):
            case Failed(status, error, delay):
                time.sleep(delay)
                self._send(status, error)
            case Answered(turn, stream):
                time.sleep(turn.reply.delay)
                request_id = f"req_fake{turn.sequence:06d}"
                if stream:
                    self._stream(wire.events(turn), turn.reply.pace, request_id)
                else:
                    self._send(200, wire.answer(turn), request_id)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def _chunks(self) -> Iterable[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _send(self, status: int, body: Json, request_id: str = "req_fake") -> None:
        text = msgspec.json.encode(body)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self._send_api_headers(request_id)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _send_api_headers(self, request_id: str) -> None:
        """Send the scenario's headers, and the id under the names of Anthropic and OpenAI."""
        for name in ("request-id", "x-request-id"):
            self.send_header(name, request_id)
        for name, value in self.fake.model.headers.items():
            self.send_header(name, value)

    def _stream(self, events: Iterable[ServerSentEvent], pace: float, request_id: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self._send_api_headers(request_id)
        self.end_headers()
        for event in events:
            self.wfile.write(_encode(event))
            self.wfile.flush()
            time.sleep(pace)
        self.close_connection = True

    def _note(self, body: bytes) -> None:
        """Record the request, if the caller wants to see what a client sends."""
        if self.fake.requests is None:
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        content = msgspec.Raw(body) if body.startswith(b"{") else body.decode(errors="replace")
        note = {"method": self.command, "path": self.path, "headers": headers, "body": content}
        with self.fake.requests_lock, self.fake.requests.open("ab") as file:
            file.write(msgspec.json.encode(note) + b"\n")


def _encode(event: ServerSentEvent) -> bytes:
    data = event.data.encode() if isinstance(event.data, str) else msgspec.json.encode(event.data)
    name = b"" if event.name is None else b"event: " + event.name.encode() + b"\n"
    return name + b"data: " + data + b"\n\n"
