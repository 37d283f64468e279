"""Generated requests to every route of both OpenAPI documents: no reply is a 5xx."""

import http.client
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import schemathesis
from schemathesis import Case, GenerationMode

from brimline.files.socket_path import socket_path
from fleet_server import MAX_WAIT_S, FleetProcess, new_token
from hypothesis_examples import run_examples
from postgres_server import local_server
from server.running import Running, UnixConnection
from server.test_daemon import SESSION, status_input

from .kills import USAGE
from .row import RowResult

STOPS_DAEMON = "DELETE /v1/daemon"

Connect = Callable[[bool], http.client.HTTPConnection]
"""Opens a connection for a route; the argument says whether it needs the Unix socket."""


@dataclass
class Server:
    """A server and what its replies were."""

    document: dict[str, Any]
    connect: Connect
    headers: Mapping[str, str]
    operations: int = 0
    requests: int = 0
    accepted: int = 0
    problems: list[str] = field(default_factory=list[str])

    def try_operations(self, examples: int) -> None:
        """Send generated requests to every route: valid and invalid, with a known session too."""
        schema: Any = schemathesis.openapi.from_dict(self.document)
        for loaded in schema.get_all_operations():
            operation = loaded.ok()
            if operation.label == STOPS_DAEMON:
                continue
            self.operations += 1
            known: dict[str, Any] = {"path_parameters": {"id": SESSION}}
            for parts in [{}, known] if "{id}" in operation.path else [{}]:
                for mode in GenerationMode:
                    run_examples(operation.as_strategy(mode, **parts), examples, self._send)

    def _send(self, case: Case[Any]) -> None:
        fields = case.as_transport_kwargs("http://localhost")
        request: Any = requests.Request(**fields).prepare()
        connection = self.connect("x-unix-socket-only" in case.operation.definition.raw)
        try:
            headers = {**request.headers, **self.headers}
            connection.request(request.method, request.path_url, request.body, headers)
            status = connection.getresponse().status  # a stream has no end
        finally:
            connection.close()
        self.requests += 1
        self.accepted += status < 300
        if status >= 500:
            self.problems.append(f"{status}: {case.as_curl_command()}")


def try_daemon(folder: Path, examples: int) -> Server:
    """Send requests to a daemon that has one session with a message."""
    daemon = Running(folder)
    daemon.start()
    try:
        daemon.hook(status_input(150_000), "statusline")
        daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})

        def connect(by_unix_socket: bool) -> http.client.HTTPConnection:
            if by_unix_socket:
                return UnixConnection(socket_path(daemon.state, os.getuid(), "http"))
            return http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=MAX_WAIT_S)

        server = Server(daemon.get("/openapi.json"), connect, daemon.authorization)
        server.try_operations(examples)
    finally:
        daemon.close()
    return server


def try_fleet(folder: Path, examples: int) -> Server:
    """Send requests to a fleet's server that has one session, with a token of every scope."""
    with local_server() as database:
        fleet = FleetProcess(database.url, folder)
        try:
            token = new_token(database.url)
            address = urlsplit(fleet.url)
            assert address.hostname is not None
            host = address.hostname

            def connect(by_unix_socket: bool) -> http.client.HTTPConnection:
                return http.client.HTTPConnection(host, address.port, timeout=MAX_WAIT_S)

            event = {"type": "Call", "id": "c1", "usage": USAGE}
            pushed = {"id": "e1", "session": SESSION, "agent": "claude", "event": event}
            assert fleet.request("POST", "/v1/events", token, {"events": [pushed]}).status == 200
            document = fleet.request("GET", "/openapi.json", token).json
            server = Server(document, connect, {"Authorization": f"Bearer {token}"})
            server.try_operations(examples)
        finally:
            fleet.close()
    return server


def try_routes(folder: Path, examples: int) -> RowResult:
    """Send so many generated requests of each kind to every route of both servers."""
    for name in ("daemon", "fleet"):
        (folder / name).mkdir()
    servers = [try_daemon(folder / "daemon", examples), try_fleet(folder / "fleet", examples)]
    problems = [problem for server in servers for problem in server.problems]
    return RowResult(
        {
            "routes": sum(server.operations for server in servers),
            "requests": sum(server.requests for server in servers),
            "accepted": sum(server.accepted for server in servers),
            "5xx": len(problems),
        },
        {"5xx": 0},
        problems,
    )
