"""Start an agent's client with a prompt to continue from a handoff document."""

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from brimline.agents import all_agents, display_name, get_agent
from brimline.agents.observations import Pane
from brimline.daemon.tmux.pane import pane_from_environment, run_tmux
from brimline.errors import CommandFailed, InvalidRequest
from brimline.handoff.user_messages import continuation_prompt

SESSION_PREFIX = "BRIMLINE_SESSION"  # of the variables that name the session of a process


class ClientCommand(msgspec.Struct, frozen=True):
    """The command that starts a client in a folder."""

    arguments: tuple[str, ...]
    folder: str

    @property
    def shell_line(self) -> str:
        return f"cd {shlex.quote(self.folder)} && {shlex.join(self.arguments)}"


def client_command(agent: str, path: str, folder: str) -> ClientCommand:
    """Return the command that continues from a document; raises UnknownAgent, InvalidRequest."""
    capabilities, prompt = get_agent(agent).capabilities, continuation_prompt(path)
    if not capabilities.starts_with_prompt:
        hint = f"Start it in {folder}, and give it this prompt: {prompt}"
        raise InvalidRequest(f"{display_name(agent)} cannot be started with a prompt", hint)
    return ClientCommand((*capabilities.start_command, prompt), folder)


def open_window(command: ClientCommand, env: Mapping[str, str]) -> Pane | None:
    """Start a client in a new window of the tmux that we run in; None outside tmux.

    The window has the environment of the tmux session, as one that the user opens. Raises
    CommandFailed.
    """
    here = pane_from_environment(env)
    if here is None:
        return None
    _find_program(command, env)
    socket, program = here.socket, command.arguments[0]
    window = run_tmux(socket, "display-message", "-p", "-t", here.id, "#{window_id}", env=env)
    options = ("-a", "-t", window, "-c", command.folder, "-n", program, "-P", "-F", "#{pane_id}")
    # tmux finds the program by the PATH of its client, which is why it gets this environment.
    pane = run_tmux(socket, "new-window", *options, "--", *command.arguments, env=env)
    return Pane(socket, pane)


def exec_client(command: ClientCommand, env: Mapping[str, str]) -> NoReturn:
    """Replace this process by the client; raises CommandFailed."""
    program = _find_program(command, env)
    try:
        os.chdir(command.folder)
        os.execve(program, command.arguments, dict(env))
    except OSError as error:
        raise CommandFailed(command.arguments[0], error.strerror or str(error)) from error


def without_agent_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Remove the variables from which a program knows that it runs inside an agent."""
    every = [agent.capabilities for agent in all_agents()]
    inside = (SESSION_PREFIX, *(prefix for one in every for prefix in one.inside_prefixes))
    user = tuple(prefix for one in every for prefix in one.user_prefixes)
    return {
        name: value
        for name, value in env.items()
        if not name.startswith(inside) or name.startswith(user)
    }


def _find_program(command: ClientCommand, env: Mapping[str, str]) -> str:
    """Return the client's path; raises CommandFailed if it or its folder does not exist."""
    name = command.arguments[0]
    if not Path(command.folder).is_dir():  # tmux would start it in another folder
        hint = f"Start it in the folder of your choice: {shlex.join(command.arguments)}"
        raise CommandFailed(name, f"the folder {command.folder} does not exist", hint)
    program = shutil.which(name, path=env.get("PATH"))
    if program is None:
        raise CommandFailed(name, "command not found", "Install it, or add it to PATH.")
    return program
