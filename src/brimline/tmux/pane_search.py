"""Find the tmux pane of an agent without hooks, by its folder and the program that runs there."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from brimline.errors import CommandFailed
from brimline.observations import Pane
from brimline.tmux.command import run_tmux

PANE_FORMAT = "#{pane_id}\t#{pane_tty}\t#{pane_current_path}"
PS_TIMEOUT_S = 5.0


def find_pane(agent: str, project: str | None, env: Mapping[str, str], user: int) -> Pane | None:
    """Return the only pane in which this agent runs in this folder; None if there are 0 or 2."""
    if project is None:
        return None
    folder = os.path.realpath(project)
    panes = [
        pane
        for pane, tty, path in _list_panes(env, user)
        if os.path.realpath(path) == folder and runs_on_terminal(agent, tty)
    ]
    return panes[0] if len(panes) == 1 else None


def runs_on_terminal(agent: str, tty: str) -> bool:
    """Whether a program of this name runs on a terminal, itself or as an interpreter's script."""
    command = ["ps", "-o", "args=", "-t", tty.removeprefix("/dev/")]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PS_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    lines = result.stdout.splitlines() if result.returncode == 0 else []
    return any(agent == Path(word).name for line in lines for word in line.split()[:2])


def _list_panes(env: Mapping[str, str], user: int) -> Iterator[tuple[Pane, str, str]]:
    """Yield the panes of the user's tmux servers, each with its terminal and its folder."""
    folder = Path(env.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{user}"
    for socket in sorted(map(str, folder.glob("*"))):
        with suppress(CommandFailed):
            for line in run_tmux(socket, "list-panes", "-a", "-F", PANE_FORMAT).splitlines():
                id, _, rest = line.partition("\t")
                tty, _, path = rest.partition("\t")
                yield Pane(socket, id), tty, path
