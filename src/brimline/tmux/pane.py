"""A tmux pane through libtmux: looked at, pasted into, its keys pressed; one holder at a time."""

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from brimline.errors import CommandFailed, UnsafeFolder
from brimline.file_lock import locked_file
from brimline.observations import Pane
from brimline.private_folder import check_parents
from brimline.tmux.screen import Screen, screen

if TYPE_CHECKING:
    from libtmux import Server

CURSOR = "#{cursor_x} #{cursor_y} #{cursor_flag} #{pane_in_mode} #{pane_dead}"
"""What tmux is asked of a pane beside its rows."""

THERE = "Is the pane still there?"
OWN_SOCKET = "Run the agent in a tmux of your own."

_ID = re.compile(r"%[0-9]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PaneTaken(Exception):
    """Another process types into the pane."""


def plain(text: str) -> str:
    """A text with nothing in it that a terminal would obey; a tab is four blanks."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return _CONTROL.sub("", lines)


def of_environment(tmux: str | None, pane: str | None) -> Pane | None:
    """The pane that TMUX and TMUX_PANE name; None outside of tmux."""
    socket = (tmux or "").partition(",")[0]
    if not Path(socket).is_absolute() or not pane or not _ID.fullmatch(pane):
        return None
    return Pane(socket, pane)


def check_own_socket(path: str) -> None:
    """Raise CommandFailed unless a tmux socket is our user's, where nobody else can replace it.

    A tmux client runs commands that its server names: on another user's socket that is their code.
    """
    try:
        found = os.stat(path)
        check_parents(Path(path))
    except OSError as error:
        raise CommandFailed("tmux", f"{path}: {error.strerror}", THERE) from error
    except UnsafeFolder as error:
        raise CommandFailed("tmux", f"others can replace {path}", error.hint) from error
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
        raise CommandFailed("tmux", f"{path} is not a socket of yours", OWN_SOCKET)


class Held:
    """A pane that nobody else of ours types into meanwhile. Raises CommandFailed without tmux."""

    def __init__(self, pane: Pane, state: Path) -> None:
        self._pane = pane
        self._state = state
        self._server = _server(pane)

    def look(self) -> Screen | None:
        """What it shows; None where somebody scrolls back in it, and it does not show its end.

        Raises CommandFailed where it is gone.
        """
        # In one call: between two of them a client may draw itself somewhere else.
        rows = (";", "capture-pane", "-p", "-e", "-t", self._pane.id)
        first, *lines = self._cmd("display-message", "-p", CURSOR, *rows).split("\n")
        told = first.split()
        if len(told) != 5 or told[4] != "0":
            raise CommandFailed("tmux", "the pane is gone", THERE)
        if told[3] != "0":
            return None
        return screen(lines, int(told[0]), int(told[1]), told[2] == "1")

    def paste(self, text: str) -> None:
        """Put a text in as one paste, whose line breaks send nothing off."""
        name = f"brimline-{secrets.token_hex(4)}"
        path = self._state / f".{name}"
        # By a file: what tmux takes as an argument is short, and others could read it.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            self._cmd("load-buffer", "-b", name, str(path), target=False)
        finally:
            path.unlink()
        self._cmd("paste-buffer", "-p", "-d", "-b", name)

    def press(self, key: str, times: int = 1) -> None:
        """Press a key, by tmux' name for it."""
        self._cmd("send-keys", "-N", str(times), key)

    def tty(self) -> str | None:
        """The terminal that its program writes to."""
        return self._cmd("display-message", "-p", "#{pane_tty}") or None

    def _cmd(self, name: str, *words: str, target: bool = True) -> str:
        check_own_socket(self._pane.socket)
        done = self._server.cmd(name, *words, target=self._pane.id if target else None)
        if done.returncode:
            reason = " ".join(done.stderr) or f"exit code {done.returncode}"
            raise CommandFailed(f"tmux {name}", reason, THERE)
        return "\n".join(done.stdout)


@contextmanager
def held(pane: Pane, state: Path, patience: float) -> Generator[Held]:
    """Hold a pane, among all processes with this state folder; PaneTaken when it takes too long."""
    place = hashlib.sha256(f"{pane.socket} {pane.id}".encode()).hexdigest()[:12]
    with ExitStack() as stack:
        try:
            stack.enter_context(locked_file(state / f"pane-{place}.lock", patience))
        except TimeoutError:
            raise PaneTaken from None
        yield Held(pane, state)


def tty_of(pane: Pane, state: Path) -> str | None:
    """The terminal of a pane; None where tmux or the pane is gone."""
    with suppress(CommandFailed):
        return Held(pane, state).tty()
    return None


def _server(pane: Pane) -> "Server":
    # It takes a tenth of a second to load, which no start of the daemon shall wait for.
    from libtmux import Server, exc

    try:
        return Server(socket_path=pane.socket)
    except exc.TmuxCommandNotFound as error:
        raise CommandFailed("tmux", "there is no such command", "Is it in PATH?") from error
