"""The daemon without a terminal: started and waited for, and what it says kept in a log."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from brimline.cli.context import CommandContext
from brimline.cli.daemon_requests import request
from brimline.daemon.sockets import LOCK_NAME, DaemonUnresponsive, find_unresponsive
from brimline.errors import CommandFailed, NotRunning
from brimline.files.folder_safety import make_private_folder
from brimline.hooks.client.autostart import (
    LOG_NAME,
    SERVE_ARGUMENTS,
    START_LOCK_FD,
    STOPPED_MARK,
    daemon_environment,
)

# A log that is larger when a daemon starts is put aside; the one before it is forgotten.
MAX_LOG_BYTES = 1 << 20

DAEMON_PATH = "/v1/daemon"  # the daemon's status; DELETE ends it

DAEMON_PACKAGE = "uvicorn"  # one of those that brimline-core leaves out

MAX_ERROR_LINES = 4  # lines of the log that an error shows

# Seconds: a daemon may take so long until it answers, and to end; so long between questions. One
# that ends waits for the requests that are under way, and some seconds for each hook's word.
START_TIMEOUT_S, STOP_TIMEOUT_S, POLL_INTERVAL_S = 15.0, 15.0, 0.05

UNWRITABLE = "Make the file writable, or set BRIMLINE_STATE_DIR to another folder."


def require_daemon() -> None:
    """Raise ModuleNotFoundError if only brimline-core is installed: it cannot run the daemon."""
    if find_spec(DAEMON_PACKAGE) is None:
        raise ModuleNotFoundError(name=DAEMON_PACKAGE)


def start(context: CommandContext, port: int | None, output: TextIO | None = None) -> int:
    """Start a daemon and wait until it answers; return the exit code."""
    if address := daemon_address(context):
        print(f"Brimline is already running at {address}", file=output)
        return 0
    require_daemon()
    log = log_path(context)
    with os.fdopen(open_log(log), "ab") as file:
        begin = file.tell()
        child = _spawn_daemon(context, log, file.fileno(), port)
    if address := _wait_for_answer(context, child):
        stops = "`brimline open` opens the dashboard, `brimline serve --stop` stops it"
        print(f"Brimline is running at {address} ({stops})", file=output)
        return 0
    return _print_failure(child, log, begin)


def _spawn_daemon(
    context: CommandContext, log: Path, file: int, port: int | None
) -> "subprocess.Popen[bytes]":
    """Start a process that outlives this one and its terminal."""
    env = {os.fsencode(name): os.fsencode(value) for name, value in context.places.env.items()}
    if context.settings.daemon.database is not None:  # no argument: others can read those
        env[b"BRIMLINE_DATABASE"] = os.fsencode(context.settings.daemon.database)
    return subprocess.Popen(
        [sys.executable, *SERVE_ARGUMENTS, "--port", str(port or "any")],
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=file,
        cwd="/",
        env=daemon_environment(str(log.parent), env),
        start_new_session=True,
    )


def _wait_for_answer(context: CommandContext, child: "subprocess.Popen[bytes]") -> str | None:
    """Return the address of the daemon, which may be another that was started meanwhile."""
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        ended = child.poll() is not None
        address = daemon_address(context)
        if address or ended:
            return address
        time.sleep(POLL_INTERVAL_S)
    return None


def _print_failure(child: "subprocess.Popen[bytes]", log: Path, begin: int) -> int:
    if child.poll() is None:
        print(
            f"brimline: the daemon does not answer yet\nhint: see its log, {log}", file=sys.stderr
        )
        return 1
    with log.open("rb") as file:
        file.seek(begin)
        last_lines = file.read().decode("utf-8", "replace").strip().splitlines()[-MAX_ERROR_LINES:]
    reason = f"brimline: the daemon exited with {child.returncode}"
    print("\n".join(last_lines) or reason, file=sys.stderr)
    return 1


def stop(context: CommandContext) -> bool:
    """Stop the daemon and return whether it has ended; raises NotRunning.

    The hooks of open sessions do not start it again.
    """
    mark = log_path(context).with_name(STOPPED_MARK)
    with suppress(OSError):
        mark.touch(mode=0o600)
    request(context, "DELETE", DAEMON_PATH)
    end = time.monotonic() + STOP_TIMEOUT_S
    while time.monotonic() < end:
        if find_unresponsive_daemon(context) is None and daemon_address(context) is None:
            return True
        time.sleep(POLL_INTERVAL_S)
    return False


def find_unresponsive_daemon(context: CommandContext) -> DaemonUnresponsive | None:
    """Return the error for a process that holds the daemon's lock, if there is one."""
    return find_unresponsive(log_path(context).with_name(LOCK_NAME))


def daemon_address(context: CommandContext) -> str | None:
    try:
        return str(request(context, "GET", DAEMON_PATH)["address"])
    except NotRunning:
        return None


def page_link(context: CommandContext) -> str:
    """Return a link that opens the dashboard once."""
    return str(request(context, "POST", f"{DAEMON_PATH}/link")["url"])


def log_path(context: CommandContext) -> Path:
    state = context.state
    return Path(os.path.abspath(state)) / LOG_NAME


def open_log(log: Path) -> int:
    """Open the log for appending; one that has grown too large is put aside."""
    try:
        make_private_folder(log.parent)
        if log.is_file() and log.stat().st_size > MAX_LOG_BYTES:
            log.replace(log.with_name(f"{LOG_NAME}.1"))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(log, flags, 0o600)
    except OSError as error:
        raise CommandFailed("brimline serve", f"{log}: {error.strerror}", UNWRITABLE) from error


def keep_start_lock() -> None:
    """Hold the start lock that a hook passed on until this process ends; no child inherits it."""
    with suppress(OSError):
        os.set_inheritable(START_LOCK_FD, False)


def redirect_output(log: Path) -> None:
    file = open_log(log)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(file, stream.fileno())
    os.close(file)
