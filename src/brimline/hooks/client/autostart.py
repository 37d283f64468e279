"""Starting the daemon from a hook or status line when none runs: a part of client.py.

The daemon belongs to the user, not to the agent: it inherits no stream, folder, process group or
session variable of the agent. The process that gets the start lock starts the daemon, which
inherits the lock and holds it until it ends: so only one is started, however many sessions start at
once. launch.c does the same in C.

A session's start always starts it. Within a session a restart is tried once a minute at most, and
not after `brimline serve --stop`. The lock file has a byte since the first restart, and the time of
the last as its own.
"""

import fcntl
import posix
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import _exit as leave
else:
    from posix import _exit as leave

LOG_NAME = "serve.log"
START_LOCK = "start.lock"  # in the state folder
START_LOCK_FD = 3  # on which the daemon inherits the lock
STOPPED_MARK = "stopped"  # in the state folder after `brimline serve --stop`, until the next start
RESTART_INTERVAL_S = 60

AUTOSTART_VARIABLE = b"BRIMLINE_AUTOSTART"
# -P: nothing is imported from the agent's working folder.
SERVE_ARGUMENTS = ("-P", "-m", "brimline", "serve")
MAX_DESCRIPTORS = 1 << 16

# The user's own variables, by name and prefix, and those with such a prefix that are a session's.
NAMES = (
    b"HOME", b"PATH", b"USER", b"LOGNAME", b"SHELL", b"LANG", b"TZ", b"TMPDIR",
    b"DISPLAY", b"WAYLAND_DISPLAY", b"XAUTHORITY", b"DBUS_SESSION_BUS_ADDRESS",
    b"CLAUDE_CONFIG_DIR", b"CODEX_HOME", b"COPILOT_HOME", b"GEMINI_CLI_HOME", b"OPENCODE_DB",
    b"PI_CODING_AGENT_DIR", b"PI_CODING_AGENT_SESSION_DIR", b"QWEN_HOME", b"QWEN_RUNTIME_DIR",
    b"CLINE_DIR", b"CLINE_DATA_DIR", b"CLINE_SESSION_DATA_DIR", b"KILO_DB", b"KIMI_CODE_HOME",
    b"GOOSE_PATH_ROOT",
    b"HTTP_PROXY", b"HTTPS_PROXY", b"NO_PROXY", b"http_proxy", b"https_proxy", b"no_proxy",
    b"SSL_CERT_FILE", b"SSL_CERT_DIR",
)  # fmt: skip
PREFIXES = (b"BRIMLINE_", b"LC_", b"XDG_")
SESSION_NAMES = (b"BRIMLINE_PARENT", b"BRIMLINE_SESSION")


def start_daemon(spool: str, is_restart: bool) -> bool:
    """Start a daemon for the state folder of a spool, unless disabled or already starting.

    Returns whether one is starting now.
    """
    if posix.environ.get(AUTOSTART_VARIABLE) == b"0":
        return False
    try:
        take_start_lock(spool)
    except BlockingIOError:
        return True
    except OSError:
        return False
    if is_restart and not take_restart(state_folder(spool)):
        return False
    child = posix.fork()
    if child:
        posix.waitpid(child, 0)
        return True
    try:
        posix.setsid()
        if not posix.fork():
            become_daemon(spool)
    finally:
        leave(0)


def take_start_lock(spool: str) -> None:
    """Take the start lock, on START_LOCK_FD; BlockingIOError if another process has it."""
    path = f"{state_folder(spool)}/{START_LOCK}"
    file = posix.open(path, posix.O_RDWR | posix.O_CREAT | posix.O_NOFOLLOW, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if file != START_LOCK_FD:
        posix.dup2(file, START_LOCK_FD)
        posix.close(file)
    posix.set_inheritable(START_LOCK_FD, True)


def take_restart(state: str) -> bool:
    """Return whether a restart is due, and note it as tried."""
    try:
        posix.stat(f"{state}/{STOPPED_MARK}")
    except OSError:
        lock = posix.fstat(START_LOCK_FD)
        age = time.time() - lock.st_mtime  # negative if the clock was set back
        if lock.st_size and 0 <= age < RESTART_INTERVAL_S:
            return False
        return posix.pwrite(START_LOCK_FD, b".", 0) == 1
    return False


def state_folder(spool: str) -> str:
    return spool.rpartition("/")[0]


def become_daemon(spool: str) -> None:
    """Replace this process by a daemon that inherits only the start lock."""
    state = state_folder(spool)
    posix.chdir("/")
    log = open_log(f"{state}/{LOG_NAME}")
    for stream, file in ((0, open_log("/dev/null")), (1, log), (2, log)):
        posix.dup2(file, stream)
    posix.closerange(START_LOCK_FD + 1, MAX_DESCRIPTORS)
    words = [sys.executable, *SERVE_ARGUMENTS, "--autostart"]
    posix.execve(sys.executable, words, daemon_environment(state, posix.environ))


def open_log(path: str) -> int:
    """Open a file for appending; /dev/null if that fails."""
    try:
        return posix.open(
            path, posix.O_RDWR | posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW, 0o600
        )
    except OSError:
        return posix.open("/dev/null", posix.O_RDWR)


def daemon_environment(state: str, env: "dict[bytes, bytes]") -> "dict[bytes, bytes]":
    """Return the user's own variables, and the state folder in which hooks look for the daemon."""
    inherited = {
        name: value
        for name, value in env.items()
        if name in NAMES or (name.startswith(PREFIXES) and name not in SESSION_NAMES)
    }
    return {**inherited, b"BRIMLINE_STATE_DIR": state.encode("utf-8", "surrogateescape")}
