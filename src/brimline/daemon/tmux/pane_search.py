"""Find the tmux pane of an agent without hooks, by its folder and the program that runs there."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from brimline.agents.observations import Pane
from brimline.daemon.tmux.command import run_tmux
from brimline.errors import CommandFailed

PANE_FORMAT = "#{pane_id}\t#{pane_pid}\t#{pane_current_path}"


def find_pane(agent: str, project: str | None, env: Mapping[str, str], user: int) -> Pane | None:
    """Return the only pane in which this agent runs in this folder; None if there are 0 or 2."""
    if project is None:
        return None
    folder = os.path.realpath(project)
    panes = [
        pane
        for pane, pid, path in _list_panes(env, user)
        if os.path.realpath(path) == folder and runs_in_pane(agent, pid)
    ]
    return panes[0] if len(panes) == 1 else None


def runs_in_pane(agent: str, pid: int) -> bool:
    """Whether a program of this name runs in a pane, itself or as an interpreter's script.

    `pid` is the pane's first process, which leads the session of all others on its terminal.
    """
    import psutil  # slow to import, and few need it

    def names(number: int) -> list[str]:
        with suppress(OSError, psutil.Error):
            if os.getsid(number) == pid:
                return [Path(word).name for word in psutil.Process(number).cmdline()[:2]]
        return []

    return any(agent in names(number) for number in psutil.pids())


def _list_panes(env: Mapping[str, str], user: int) -> Iterator[tuple[Pane, int, str]]:
    """Yield the panes of the user's tmux servers, each with its first process and its folder."""
    folder = Path(env.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{user}"
    for socket in sorted(map(str, folder.glob("*"))):
        with suppress(CommandFailed):
            for line in run_tmux(socket, "list-panes", "-a", "-F", PANE_FORMAT).splitlines():
                id, _, rest = line.partition("\t")
                pid, _, path = rest.partition("\t")
                if pid.isdigit():  # not the rest of a folder's name with a line break
                    yield Pane(socket, id), int(pid), path
