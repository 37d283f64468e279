"""tmux panes: find them, capture their screens, paste text, press keys; only of our own user."""

import hashlib
import os
import re
import secrets
import stat
import subprocess
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from brimline.agents.observations import Pane
from brimline.daemon.tmux.screen import Screen, parse_screen
from brimline.errors import CommandFailed, UnsafeFolder
from brimline.files.file_lock import locked_file
from brimline.files.folder_safety import check_parents
from brimline.files.project_folder import resolve_path

TMUX_TIMEOUT_S = 10.0
PANE_HINT = "Check that the pane still exists."

_PANE_ID = re.compile(r"%[0-9]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

CURSOR_FORMAT = "#{cursor_x} #{cursor_y} #{cursor_flag} #{pane_in_mode} #{pane_dead}"
PANE_FORMAT = "#{pane_id}\t#{pane_pid}\t#{pane_current_path}"


def run_tmux(socket: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Return what a tmux command prints; raises CommandFailed."""
    check_own_socket(socket)
    try:
        result = subprocess.run(
            ["tmux", "-S", socket, *arguments],
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=TMUX_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandFailed(
            "tmux", "command not found", "Install tmux, or add it to PATH."
        ) from error
    except OSError as error:
        raise CommandFailed("tmux", error.strerror or str(error)) from error
    except subprocess.TimeoutExpired as error:
        reason = f"no answer in {TMUX_TIMEOUT_S:g} s"
        raise CommandFailed(f"tmux {arguments[0]}", reason, PANE_HINT, was_started=True) from error
    if result.returncode:
        reason = result.stderr.strip() or f"exit code {result.returncode}"
        raise CommandFailed(f"tmux {arguments[0]}", reason, PANE_HINT, was_started=True)
    return result.stdout.removesuffix("\n")


def check_own_socket(path: str) -> None:
    """Raise CommandFailed unless the socket is our user's and no other user can replace it.

    A tmux client runs commands that its server names: on another user's socket that is their code.
    """
    try:
        status = os.stat(path)
        check_parents(Path(path))
    except OSError as error:
        raise CommandFailed("tmux", f"{path}: {error.strerror}", PANE_HINT) from error
    except UnsafeFolder as error:
        raise CommandFailed("tmux", f"other users can replace {path}", error.hint) from error
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
        reason = f"{path} is not a socket of this user"
        raise CommandFailed("tmux", reason, "Run the agent in a tmux server of your own.")


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


def find_pane(agent: str, project: str | None, env: Mapping[str, str], user: int) -> Pane | None:
    """Return the only pane in which this agent runs in this folder; None if there are 0 or 2."""
    if project is None:
        return None
    folder = resolve_path(project)
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
