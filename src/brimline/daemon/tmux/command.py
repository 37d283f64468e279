"""Run tmux commands, only on sockets of our own user."""

import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from brimline.errors import CommandFailed, UnsafeFolder
from brimline.files.folder_safety import check_parents

TMUX_TIMEOUT_S = 10.0
PANE_HINT = "Check that the pane still exists."


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
