"""PgBouncer in transaction mode, with fewer connections to PostgreSQL than replicas have to it."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from postgres_server import SERVER_UID, START_TIMEOUT_S, LocalServer, execute
from reserved_port import ReservedPort
from system_programs import require_program

CONFIGURATION = """[databases]
{database} = host={host} user={user}
[pgbouncer]
pool_mode = transaction
default_pool_size = 4
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
"""


@contextmanager
def pgbouncer(
    server: LocalServer, database: str = "postgres", user: str = "postgres"
) -> Generator[str, None, None]:
    """Start it before a database; yields the address of the database behind it."""
    program, port = require_program("pgbouncer"), ReservedPort()
    folder = Path(tempfile.mkdtemp(prefix="brimline-pgbouncer-"))
    folder.chmod(0o755)  # it refuses to run as root
    file = folder / "pgbouncer.ini"
    options = {"database": database, "host": server.folder, "user": user, "port": port.number}
    file.write_text(CONFIGURATION.format(**options))
    uid = SERVER_UID if os.geteuid() == 0 else None
    process = subprocess.Popen([program, str(file)], user=uid, stderr=subprocess.DEVNULL)
    url = f"postgresql://{user}@127.0.0.1:{port.number}/{database}"
    try:
        _wait_for(url, process)
        yield url
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            execute(url, "SELECT 1")
            return
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
