"""Replicas of the fleet's server on one PostgreSQL, as processes, with their CPU time."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))  # the tests have a PostgreSQL without root and a package

from fleet_server import new_token as new_token  # noqa: E402
from postgres_server import LocalServer, local_server  # noqa: E402

START_TIMEOUT_S = 60.0
ORGANISATION = "default"
# As PostgreSQL is installed, with what fits the machine: each commit reaches the disk.
DATABASE_SETTINGS = (
    "listen_addresses=",
    "max_connections=100",
    "shared_buffers=512MB",
    "max_wal_size=4GB",
)
# One token sends what the tokens of many machines would.
SERVER_SETTINGS = """\
[fleet]
requests_per_minute = 100000000
bytes_per_minute = 1000000000000
"""


class Replica:
    """One process of the server; `cpu_s` counts its killed predecessors too."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self._folder, self._database_url = folder, database_url
        self._ended_cpu_s = 0.0
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self._start()
        self.wait_until_ready()

    def _start(self) -> None:
        config = self._folder / "config.toml"
        config.write_text(SERVER_SETTINGS)
        listen = f"127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "brimline", "serve", "--listen", listen]
        environment = os.environ | {
            "BRIMLINE_DATABASE": self._database_url,
            "BRIMLINE_CONFIG": str(config),
        }
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5)
                return
            assert time.monotonic() < deadline, (self._folder / "server.log").read_text()
            time.sleep(0.05)

    @property
    def cpu_s(self) -> float:
        return self._ended_cpu_s + cpu_seconds(psutil.Process(self._process.pid))

    def kill_and_restart(self) -> None:
        self._ended_cpu_s = self.cpu_s
        self._process.kill()
        self._process.wait()
        self._start()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(START_TIMEOUT_S)


class Fleet:
    """The database and its replicas."""

    def __init__(self, database: LocalServer, replicas: list[Replica]) -> None:
        self.database, self.replicas = database, replicas

    @property
    def ports(self) -> list[int]:
        return [replica.port for replica in self.replicas]

    @property
    def server_cpu_s(self) -> float:
        return sum(replica.cpu_s for replica in self.replicas)

    @property
    def database_cpu_s(self) -> float:
        """The CPU time of PostgreSQL's processes, also of those that have ended."""
        main = psutil.Process(self.database.pid)
        ended = main.cpu_times()
        alive = sum(cpu_seconds(child) for child in main.children(recursive=True))
        return cpu_seconds(main) + ended.children_user + ended.children_system + alive


@contextmanager
def running_fleet(folder: Path, replicas: int) -> Generator[Fleet]:
    with local_server(DATABASE_SETTINGS) as database:
        running: list[Replica] = []
        try:
            for _ in range(replicas):
                running.append(Replica(folder, database.url))
            yield Fleet(database, running)
        finally:
            for replica in running:
                replica.stop()


def cpu_seconds(process: psutil.Process) -> float:
    """The CPU time of a process, 0 if it has ended."""
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return times.user + times.system
    return 0.0
