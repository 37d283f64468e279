"""A tmux pane: capture its screen, paste text, press keys, and lock it against our processes."""

import hashlib
import os
import re
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from brimline.agents.observations import Pane
from brimline.daemon.tmux.command import PANE_HINT, run_tmux
from brimline.daemon.tmux.screen import Screen, parse_screen
from brimline.errors import CommandFailed
from brimline.files.file_lock import locked_file

CURSOR_FORMAT = "#{cursor_x} #{cursor_y} #{cursor_flag} #{pane_in_mode} #{pane_dead}"

_PANE_ID = re.compile(r"%[0-9]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def remove_controls(text: str) -> str:
    """Remove control characters except line breaks; tabs become blanks."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4))


def pane_from_environment(env: Mapping[str, str]) -> Pane | None:
    """Return the pane that TMUX (`SOCKET,PID,SESSION`) and TMUX_PANE name; None outside tmux."""
    socket, pane = env.get("TMUX", "").rsplit(",", 2)[0], env.get("TMUX_PANE", "")
    if not Path(socket).is_absolute() or not _PANE_ID.fullmatch(pane):
        return None
    return Pane(socket, pane)


class TmuxPane:
    """One pane; `state` is the folder for temporary files. All methods raise CommandFailed."""

    def __init__(self, pane: Pane, state: Path) -> None:
        self._pane, self._state = pane, state

    def capture(self) -> Screen | None:
        """Return the visible screen; None while the pane is in copy mode."""
        # One tmux call: between two calls the client may move its composer.
        capture = ("capture-pane", "-p", "-e", "-t", self._pane.id)
        output = self._run("display-message", "-p", CURSOR_FORMAT, ";", *capture)
        first, *lines = output.split("\n")
        fields = first.split()
        if len(fields) != 5 or fields[4] != "0":
            raise CommandFailed(
                "tmux capture-pane", "the pane is gone", PANE_HINT, was_started=True
            )
        if fields[3] != "0":
            return None
        return parse_screen(lines, int(fields[0]), int(fields[1]), fields[2] == "1")

    def paste(self, text: str) -> None:
        """Paste a text in brackets, so that its line breaks submit nothing."""
        name = f"brimline-{secrets.token_hex(4)}"
        path = self._state / f".{name}"
        # By a file: other users can read arguments, and tmux limits their length.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            run_tmux(self._pane.socket, "load-buffer", "-b", name, str(path))
        finally:
            path.unlink()
        self._run("paste-buffer", "-p", "-d", "-b", name)

    def press(self, key: str, times: int = 1) -> None:
        """Press a key, by tmux's name for it."""
        self._run("send-keys", "-N", str(times), key)

    def _run(self, name: str, *arguments: str) -> str:
        return run_tmux(self._pane.socket, name, "-t", self._pane.id, *arguments)


@contextmanager
def lock_pane(pane: Pane, state: Path, timeout_s: float) -> Generator[TmuxPane]:
    """Lock a pane among all processes with this state folder; raises TimeoutError."""
    digest = hashlib.sha256(f"{pane.socket} {pane.id}".encode()).hexdigest()[:12]
    with locked_file(state / f"pane-{digest}.lock", timeout_s):
        yield TmuxPane(pane, state)


def find_tty(pane: Pane) -> str | None:
    """Return the path of a pane's terminal; None if tmux or the pane is gone."""
    with suppress(CommandFailed):
        return run_tmux(pane.socket, "display-message", "-t", pane.id, "-p", "#{pane_tty}") or None
    return None
