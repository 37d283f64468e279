"""The daemon without a terminal: started and waited for, and what it says kept in a log."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from brimline.cli.context import Context
from brimline.cli.daemon_requests import request
from brimline.errors import CommandFailed, NotRunning
from brimline.folder_safety import make_private_folder
from brimline.hooks.client.autostart import (
    LOG_NAME,
    SERVE_ARGUMENTS,
    START_LOCK_FD,
    daemon_environment,
)
from brimline.server.sockets import LOCK_NAME, DaemonUnresponsive, find_unresponsive

# A log that is larger when a daemon starts is put aside; the one before it is forgotten.
LARGEST = 1 << 20

DAEMON = "/v1/daemon"  # the daemon's status; DELETE ends it

LINES = 4  # lines of the log that an error shows

# Seconds: a daemon may take so long until it answers, and to end; so long between questions. One
# that ends waits for the requests that are under way, and some seconds for each hook's word.
START_TIMEOUT_S, STOP_TIMEOUT_S, POLL_INTERVAL_S = 15.0, 15.0, 0.05

UNWRITABLE = "Make the file writable, or set BRIMLINE_STATE_DIR to another folder."


def start(context: Context, port: int | None, output: TextIO | None = None) -> int:
    """Start one and come back when it answers: 0; or say why it does not: 1."""
    if address := answers(context):
        print(f"Brimline is already running at {address}", file=output)
        return 0
    log = log_of(context)
    with os.fdopen(opened(log), "ab") as file:
        begin = file.tell()
        child = _spawned(context, log, file.fileno(), port)
    if address := _came_up(context, child):
        stops = "`brimline open` opens the dashboard, `brimline serve --stop` stops it"
        print(f"Brimline is running at {address} ({stops})", file=output)
        return 0
    return _failed(child, log, begin)


def _spawned(context: Context, log: Path, file: int, port: int | None) -> "subprocess.Popen[bytes]":
    """A process that outlives this one and its terminal, in the user's own environment."""
    env = {os.fsencode(name): os.fsencode(value) for name, value in context.places.env.items()}
    return subprocess.Popen(
        [sys.executable, *SERVE_ARGUMENTS, "--port", str(port or "any")],
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=file,
        cwd="/",
        env=daemon_environment(str(log.parent), env),
        start_new_session=True,
    )


def _came_up(context: Context, child: "subprocess.Popen[bytes]") -> str | None:
    """Where a daemon answers; it may be another that was started at the same time."""
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        ended = child.poll() is not None
        address = answers(context)
        if address or ended:
            return address
        time.sleep(POLL_INTERVAL_S)
    return None


def _failed(child: "subprocess.Popen[bytes]", log: Path, begin: int) -> int:
    if child.poll() is None:
        print(
            f"brimline: the daemon does not answer yet\nhint: see its log, {log}", file=sys.stderr
        )
        return 1
    with log.open("rb") as file:
        file.seek(begin)
        said = file.read().decode("utf-8", "replace").strip().splitlines()[-LINES:]
    print(
        "\n".join(said) or f"brimline: the daemon exited with {child.returncode}", file=sys.stderr
    )
    return 1


def stop(context: Context) -> bool:
    """End the one that runs, and tell whether it is gone; NotRunning where none answers."""
    request(context, "DELETE", DAEMON)
    end = time.monotonic() + STOP_TIMEOUT_S
    while time.monotonic() < end:
        if held(context) is None and answers(context) is None:
            return True
        time.sleep(POLL_INTERVAL_S)
    return False


def held(context: Context) -> DaemonUnresponsive | None:
    """What to say of a process that has the daemon's lock, where none answers."""
    return find_unresponsive(log_of(context).with_name(LOCK_NAME))


def answers(context: Context) -> str | None:
    """Where a daemon of this user answers; None where none does."""
    try:
        return str(request(context, "GET", DAEMON)["address"])
    except NotRunning:
        return None


def page_link(context: Context) -> str:
    """Return an address that opens the page of the running daemon, once."""
    return str(request(context, "POST", f"{DAEMON}/link")["url"])


def log_of(context: Context) -> Path:
    """Where a daemon without a terminal says what it has to say."""
    state = context.state
    return Path(os.path.abspath(state)) / LOG_NAME


def opened(log: Path) -> int:
    """The log, to append to, for the user alone; one that has grown too large is put aside."""
    try:
        make_private_folder(log.parent)
        if log.is_file() and log.stat().st_size > LARGEST:
            log.replace(log.with_name(f"{LOG_NAME}.1"))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(log, flags, 0o600)
    except OSError as error:
        raise CommandFailed("brimline serve", f"{log}: {error.strerror}", UNWRITABLE) from error


def keep_start_lock() -> None:
    """Hold the start lock that a hook handed over until this process ends, and no child of it."""
    with suppress(OSError):
        os.set_inheritable(START_LOCK_FD, False)


def log_to(log: Path) -> None:
    """Let this process say everything into the log."""
    file = opened(log)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(file, stream.fileno())
    os.close(file)
