"""A command line that runs an agent: which agent, where its program is, and with another prompt."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from brimline.agents import agent_names, all_agents, display_name, get_agent
from brimline.agents.prompt_argument import PromptPlace, find_prompt
from brimline.errors import InvalidRequest

# Commands that run the command behind them.
WRAPPERS = frozenset(
    (
        *("npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "node", "deno", "exec", "dlx", "x"),
        *("env", "nice", "nohup", "time", "timeout", "setsid", "stdbuf", "sudo", "caffeinate"),
    )
)
_SUFFIX = re.compile(r"\.(?:[cm]?js|exe|cmd|sh)$")
_VERSION = re.compile(r"(?<=.)@[^/@]*$")
_SKIPPED_WORD = re.compile(r"-.*|\d+(?:\.\d+)?[smhd]?|[A-Za-z_]\w*=.*", re.DOTALL)


class AgentProgram(NamedTuple):
    """The agent that a command runs, and the place of its program among the words."""

    agent: str
    place: int


def detect_agent(command: Sequence[str]) -> str | None:
    """The agent that a command runs; None if it is another program."""
    program = find_program(command)
    return program.agent if program else None


def find_program(command: Sequence[str]) -> AgentProgram | None:
    """Find an agent's program by its name, also behind `npx`, `env` etc.

    None if it is another program; shells and scripts are not looked into.
    """
    for place, word in enumerate(command):
        name = _VERSION.sub("", word)
        if agent := _agent_of_package(name):
            return AgentProgram(agent, place)
        name = _SUFFIX.sub("", os.path.basename(name))
        if name in agent_names():
            return AgentProgram(name, place)
        if name not in WRAPPERS and not _SKIPPED_WORD.fullmatch(word):
            return None
    return None


def _agent_of_package(package: str) -> str | None:
    agents = all_agents()
    return next((one.name for one in agents if package in one.capabilities.npm_packages), None)


def find_prompt_place(command: Sequence[str]) -> PromptPlace:
    """Return where a command has its prompt; raises InvalidRequest if it cannot be replaced."""
    program = find_program(command)
    if program is None:
        able = [one for one in all_agents() if one.capabilities.prompt_argument is not None]
        clients = " or ".join(one.capabilities.display_name for one in able)
        hint = f"Run {clients} itself after --: a script's prompt cannot be replaced."
        raise InvalidRequest(f"cannot find the prompt of {command[0]!r}", hint)
    rule = get_agent(program.agent).capabilities.prompt_argument
    if rule is None:
        reason = f"the prompt of {display_name(program.agent)} cannot be replaced"
        raise InvalidRequest(reason, "Use --stop-at with --iterations instead.")
    words = command[: program.place + 1]
    found = find_prompt(command[program.place + 1 :], rule)
    return PromptPlace((*words, *found.before), found.after, found.prompt)
