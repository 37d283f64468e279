"""A fleet's server for tests: as a process, or as an application in this process."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import unquote, urlsplit

from brimline.api.identity import AccessScope
from brimline.server.fleet.authentication import create_token
from brimline.server.fleet.server import FleetApp
from brimline.store.postgres.database import PostgresDatabase

ResultT = TypeVar("ResultT")

MAX_WAIT_S = 60.0  # generous: a busy machine is slow, not wrong
ALL_SCOPES: tuple[AccessScope, ...] = ("ingest", "read", "act")
SHOWN_LINE = "is running at "


class FleetReply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class FleetProcess:
    """A replica in a process of its own, on a free port."""

    def __init__(
        self, database: str, folder: Path, *options: str, listen: str = "127.0.0.1:0"
    ) -> None:
        environment = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "BRIMLINE_DATABASE": database,
            "LANG": "C.UTF-8",
        }
        words = [sys.executable, "-m", "brimline", "serve", "--listen", listen, *options]
        self.process = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if SHOWN_LINE not in line:
            self.close()
            raise AssertionError(line)
        self.url: str = line.partition(SHOWN_LINE)[2].split()[0]

    def request(
        self,
        method: str,
        path: str,
        token: str | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        context: ssl.SSLContext | None = None,
    ) -> FleetReply:
        """Send one request; a body that is not bytes is sent as JSON."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=MAX_WAIT_S, context=context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=MAX_WAIT_S)
        try:
            connection.request(method, path, _encode(body), _headers(token, headers))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return FleetReply(response.status, found, response.read())
        finally:
            connection.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(MAX_WAIT_S)
        self.close()
        return code

    def close(self) -> None:
        """Kill the replica if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(MAX_WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


async def ask(
    app: FleetApp,
    method: str,
    path: str,
    token: str | None = None,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    peer: str = "203.0.113.9",
) -> FleetReply:
    """Send a request to an application in this process, as if it came from an address."""
    sent: list[dict[str, Any]] = []
    ended = asyncio.Event()
    bodies = iter([_encode(body) or b""])
    plain, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(plain),
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "headers": [
            (name.lower().encode(), value.encode("utf-8", "surrogateescape"))
            for name, value in {"host": "fleet.example", **_headers(token, headers)}.items()
        ],
        "client": (peer, 50_000),
        "server": ("fleet.example", 443),
        "scheme": "https",
        "http_version": "1.1",
    }

    async def receive() -> dict[str, Any]:
        piece = next(bodies, None)
        if piece is None:
            await ended.wait()  # the client stays until then
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            ended.set()

    await app(scope, cast("Any", receive), send)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return FleetReply(sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent))


async def add_token(
    database: PostgresDatabase,
    organisation: str = "default",
    *scopes: AccessScope,
    name: str = "test",
    expires_at: float | None = None,
) -> str:
    """Store a new token, by default with all scopes; return its text."""
    chosen = scopes or ALL_SCOPES
    text, row = create_token(organisation, name, chosen, time.time(), expires_at)
    assert await database.tokens.insert(row)
    return text


def new_token(url: str, organisation: str = "default", *scopes: AccessScope) -> str:
    """Store a new token in a database; return its text."""
    return _store(url, lambda database: add_token(database, organisation, *scopes))


def new_enrolment(url: str, team: str, max_machines: int = 5) -> str:
    """Store a new enrolment token in a database; return its text."""
    text, row = create_token(
        "default", team, ["enrol"], time.time(), team=team, max_machines=max_machines
    )
    assert _store(url, lambda database: database.tokens.insert(row))
    return text


def _store(url: str, store: Callable[[PostgresDatabase], Coroutine[Any, Any, ResultT]]) -> ResultT:
    async def stored() -> ResultT:
        database = await PostgresDatabase.open(url)
        try:
            return await store(database)
        finally:
            await database.close()

    return asyncio.run(stored())


def _headers(token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    shown = {"authorization": f"Bearer {token}"} if token is not None else {}
    return {**shown, **(headers or {})}


def _encode(body: object) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return json.dumps(body).encode()
