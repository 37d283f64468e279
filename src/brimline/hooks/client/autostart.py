"""Starting the daemon where a session starts and there is none: a part of client.py.

It belongs to the user and not to the agent: it has no stream, no folder, no process group and no
session's variables of the agent's, and nobody waits for it. One process takes the start lock; the
daemon inherits it and holds it until it ends. So one daemon is started, however many sessions start
at once. launch.c does the same in C.
"""

import fcntl
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import _exit as leave
else:
    from posix import _exit as leave

LOG = "serve.log"
START_LOCK = "start.lock"
START_LOCK_FD = 3
"""The name of the start lock in the state folder, and the descriptor that a daemon inherits."""

SWITCH = b"BRIMLINE_AUTOSTART"
COMMAND = ("-P", "-m", "brimline", "serve")
"""What Python is told; -P: nothing is imported from the folder that the agent works in."""

DESCRIPTORS = 1 << 16
"""No agent leaves so many open."""

NAMES = (
    b"HOME", b"PATH", b"USER", b"LOGNAME", b"SHELL", b"LANG", b"TZ", b"TMPDIR",
    b"DISPLAY", b"WAYLAND_DISPLAY", b"XAUTHORITY", b"DBUS_SESSION_BUS_ADDRESS",
    b"CLAUDE_CONFIG_DIR", b"CODEX_HOME", b"GEMINI_CLI_HOME", b"OPENCODE_DB",
    b"PI_CODING_AGENT_DIR", b"PI_CODING_AGENT_SESSION_DIR",
    b"HTTP_PROXY", b"HTTPS_PROXY", b"NO_PROXY", b"http_proxy", b"https_proxy", b"no_proxy",
    b"SSL_CERT_FILE", b"SSL_CERT_DIR",
)  # fmt: skip
PREFIXES = (b"BRIMLINE_", b"LC_", b"XDG_")
NOT = (b"BRIMLINE_PARENT", b"BRIMLINE_SESSION")
"""The variables that are the user's own: by name, by prefix, and which of those are not."""


def start(spool: str) -> None:
    """Start a daemon for the state folder of a spool, unless that is switched off or under way."""
    if posix.environ.get(SWITCH) == b"0" or not take_start_lock(spool):
        return
    child = posix.fork()
    if child:
        posix.waitpid(child, 0)
        return
    try:
        posix.setsid()
        if not posix.fork():
            become(spool)
    finally:
        leave(0)


def take_start_lock(spool: str) -> bool:
    """Whether this process is the one that starts the daemon; it then has START_LOCK_FD."""
    path = f"{state_of(spool)}/{START_LOCK}"
    try:
        file = posix.open(path, posix.O_RDWR | posix.O_CREAT | posix.O_NOFOLLOW, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    if file != START_LOCK_FD:
        posix.dup2(file, START_LOCK_FD)
        posix.close(file)
    posix.set_inheritable(START_LOCK_FD, True)
    return True


def state_of(spool: str) -> str:
    """The state folder that a spool is in."""
    return spool.rpartition("/")[0]


def become(spool: str) -> None:
    """Let this process be a daemon, with nothing of what it has of the agent but the start lock."""
    state = state_of(spool)
    posix.chdir("/")
    log = opened(f"{state}/{LOG}")
    for stream, file in ((0, opened("/dev/null")), (1, log), (2, log)):
        posix.dup2(file, stream)
    posix.closerange(START_LOCK_FD + 1, DESCRIPTORS)
    words = [sys.executable, *COMMAND, "--autostart"]
    posix.execve(sys.executable, words, environment(state, posix.environ))


def opened(path: str) -> int:
    """A file to append to; where that cannot be, one that forgets all."""
    try:
        return posix.open(
            path, posix.O_RDWR | posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW, 0o600
        )
    except OSError:
        return posix.open("/dev/null", posix.O_RDWR)


def environment(state: str, env: "dict[bytes, bytes]") -> "dict[bytes, bytes]":
    """What a daemon runs in: the user's own variables, and the folder that hooks look for it in."""
    kept = {name: value for name, value in env.items() if is_kept(name)}
    return {**kept, b"BRIMLINE_STATE_DIR": state.encode("utf-8", "surrogateescape")}


def is_kept(name: bytes) -> bool:
    """Whether a variable is the user's own, and not one of a session."""
    return name in NAMES or (name.startswith(PREFIXES) and name not in NOT)
