"""The tmux pane of an agent whose hooks do not tell it: by its folder, and by what runs there."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from brimline.observations import Pane

PANES = "#{pane_id}\t#{pane_tty}\t#{pane_current_path}"
PATIENCE = 5.0


def find_pane(agent: str, project: str | None, env: Mapping[str, str], user: int) -> Pane | None:
    """The only pane in which this agent runs in this folder; None where there is none, or two."""
    if project is None:
        return None
    folder = os.path.realpath(project)
    found = [
        Pane(str(socket), id)
        for socket in sockets(env, user)
        for id, tty, path in _panes(socket)
        if os.path.realpath(path) == folder and runs(agent, tty)
    ]
    return found[0] if len(found) == 1 else None


def sockets(env: Mapping[str, str], user: int) -> list[Path]:
    """The user's tmux servers."""
    folder = Path(env.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{user}"
    return sorted(path for path in folder.glob("*") if path.is_socket())


def runs(agent: str, tty: str) -> bool:
    """Whether a program of this name runs on a terminal: itself, or as an interpreter's script."""
    commands = _said("ps", "-o", "args=", "-t", tty.removeprefix("/dev/"))
    return any(agent in _names(command) for command in commands)


def _names(command: str) -> list[str]:
    """What a command could be called: its first word, and the script that an interpreter runs."""
    return [Path(word).name for word in command.split()[:2]]


def _panes(socket: Path) -> Iterator[tuple[str, str, str]]:
    for line in _said("tmux", "-S", str(socket), "list-panes", "-a", "-F", PANES):
        id, _, rest = line.partition("\t")
        tty, _, path = rest.partition("\t")
        yield id, tty, path


def _said(*command: str) -> list[str]:
    """The lines that a program prints; none where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
