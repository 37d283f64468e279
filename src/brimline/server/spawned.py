"""Where a hook was run from: the session that spawned its own, and the tmux pane.

An agent tells its session's id to every process that it runs, in a variable; a session that was
started by such a process has the id in the environment that its own processes began with.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping

import msgspec

from brimline.monitor.heard import Pane

VARIABLES = (
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SESSION_ID",
    "GEMINI_SESSION_ID",
    "PI_SESSION_ID",
    "OPENCODE_SESSION_ID",
)
"""By which the agents tell the id of a session to what they run in it."""

STEPS = 32
"""So far up it is looked."""

PATIENCE = 2.0
"""So many seconds `ps` may take."""

_PANE = re.compile(r"%[0-9]+", re.ASCII)
_TOLD = re.compile(rf"(?:^|\s)({'|'.join(VARIABLES)})=(\S+)")


class Process(msgspec.Struct, frozen=True):
    """A process of this user: its parent, and the sessions that it was told of at its start."""

    parent: int
    sessions: tuple[str, ...]


def spawner(pid: int, session: str) -> str | None:
    """The session that spawned the one whose hook this process is; None where none is found.

    Of two that a process was told of, the one that is not known further up is the nearer. It reads
    other processes: on macOS, where `ps` does that, it takes some time.
    """
    near: list[str] = []
    for process in _upwards(pid):
        known = [other for other in process.sessions if other != session]
        gone = [other for other in near if other not in known]
        if gone:
            return gone[0]
        near = near or known
    return near[0] if near else None


def pane_of(env: Mapping[str, str]) -> Pane | None:
    """The tmux pane that a hook's environment tells of; None where it is in none."""
    pane = env.get("TMUX_PANE")
    if pane is None or not _PANE.fullmatch(pane):
        return None
    socket = env.get("TMUX", "").rpartition(",")[0].rpartition(",")[0]
    return Pane(socket, pane) if socket else None


def _upwards(pid: int) -> Iterator[Process]:
    """A process and those above it, as far as they are this user's and can be read."""
    listed = None if sys.platform == "linux" else parsed(listing())
    for _ in range(STEPS):
        process = _of_proc(pid) if listed is None else listed.get(pid)
        if process is None:
            return
        yield process
        pid = process.parent


def _of_proc(pid: int) -> Process | None:
    """A process by Linux' own files."""
    place = f"/proc/{pid}"
    try:
        if pid <= 1 or os.stat(place).st_uid != os.getuid():
            return None
        with open(f"{place}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
        with open(f"{place}/environ", "rb") as file:
            told = file.read().decode("utf-8", "replace").split("\0")
    except (OSError, ValueError, IndexError):
        return None
    env = dict(entry.split("=", 1) for entry in told if "=" in entry)
    return Process(parent, tuple(env[name] for name in VARIABLES if env.get(name)))


def listing() -> str:
    """All processes of this user with the environment that each began with, as macOS lists them."""
    command = ["/bin/ps", "-x", "-E", "-ww", "-o", "pid=,ppid=,command="]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def parsed(listed: str) -> dict[int, Process]:
    """What `ps` listed, by the number of the process; a line that is none is passed over."""
    found: dict[int, Process] = {}
    for line in listed.splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and words[0].isdecimal() and words[1].isdecimal():
            told = dict(_TOLD.findall(words[2]))
            sessions = tuple(told[name] for name in VARIABLES if name in told)
            found[int(words[0])] = Process(int(words[1]), sessions)
    return found
