"""Starting an agent's client anew, with a document to go on from."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from brimline.errors import CommandFailed, UnknownAgent
from brimline.observations import Pane
from brimline.tmux.clear_requests import prompt_for
from brimline.tmux.pane import of_environment

COMMANDS: dict[str, tuple[str, ...]] = {
    "claude": ("claude",),
    "codex": ("codex",),
    "gemini": ("gemini", "--prompt-interactive"),
    "pi": ("pi",),
    "opencode": ("opencode", "--prompt"),
}
"""What starts a client that stays, before its first prompt."""

INSIDE = ("CLAUDECODE", "CLAUDE_CODE_", "CODEX_", "GEMINI_CLI", "OPENCODE", "PI_CODING_AGENT",
          "PI_SESSION_ID", "BRIMLINE_SESSION")  # fmt: skip
"""How the variables begin that tell a program inside which agent it runs."""

USERS = ("CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR",
         "CLAUDE_CODE_USE_", "CLAUDE_CODE_AUTO_COMPACT", "CLAUDE_CODE_MAX_",
         "CLAUDE_CODE_DISABLE_", "OPENCODE_CONFIG", "OPENCODE_DISABLE_")  # fmt: skip
"""And those of them that are the user's own settings."""


class Start(msgspec.Struct, frozen=True):
    """A client that shall go on from a document, in a folder."""

    command: tuple[str, ...]
    folder: str

    @property
    def line(self) -> str:
        """The same as a line for a shell."""
        return f"cd {shlex.quote(self.folder)} && {shlex.join(self.command)}"


def start(agent: str, path: str, folder: str) -> Start:
    """How an agent's client is started to go on from a document; raises UnknownAgent."""
    if agent not in COMMANDS:
        raise UnknownAgent(agent, COMMANDS)
    return Start((*COMMANDS[agent], prompt_for(path)), folder)


def window(new: Start, env: Mapping[str, str]) -> Pane | None:
    """Start it in a new window of the tmux that we run in, and give its pane; None outside of it.

    The window has the environment of the tmux session, as one has that is opened by hand. Raises
    CommandFailed.
    """
    here = of_environment(env.get("TMUX"), env.get("TMUX_PANE"))
    if here is None:
        return None
    _program(new, env)
    beside = _tmux(env, here, "display-message", "-p", "-t", here.id, "#{window_id}")
    words = ("new-window", "-a", "-t", beside, "-c", new.folder, "-n", new.command[0])
    made = _tmux(env, here, *words, "-P", "-F", "#{pane_id}", "--", *new.command)
    return Pane(here.socket, made)


def become(new: Start, env: Mapping[str, str]) -> NoReturn:
    """Be the client from now on, in this terminal; raises CommandFailed where it is not there."""
    program = _program(new, env)
    try:
        os.chdir(new.folder)
        os.execve(program, new.command, dict(env))
    except OSError as error:
        raise CommandFailed(new.command[0], error.strerror or str(error)) from error


def outside(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without what tells a program that it runs inside an agent."""
    return {
        name: value
        for name, value in env.items()
        if not name.startswith(INSIDE) or name.startswith(USERS)
    }


def _program(new: Start, env: Mapping[str, str]) -> str:
    """Where the client is; CommandFailed where it is not, or its folder: tmux takes another."""
    if not Path(new.folder).is_dir():
        elsewhere = f"Start it yourself where it shall work: {shlex.join(new.command)}"
        raise CommandFailed(new.command[0], f"there is no folder {new.folder}", elsewhere)
    program = shutil.which(new.command[0], path=env.get("PATH"))
    if program is None:
        raise CommandFailed(new.command[0], "there is no such command", "Is it in PATH?")
    return program


def _tmux(env: Mapping[str, str], here: Pane, name: str, *words: str) -> str:
    """What a command of tmux prints; a window that it opens has the PATH of who asked for it."""
    command = ["tmux", "-S", here.socket, name, *words]
    try:
        done = subprocess.run(command, env=dict(env), capture_output=True, text=True, check=False)
    except OSError as error:
        raise CommandFailed("tmux", error.strerror or str(error)) from error
    if done.returncode:
        raise CommandFailed(f"tmux {name}", done.stderr.strip())
    return done.stdout.strip()
