"""Detect from a command line which agent it runs."""

import os
import re
from collections.abc import Sequence

from brimline.agents import agent_names, all_agents

# commands that run the command behind them
WRAPPERS = frozenset(
    (
        *("npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "node", "deno", "exec", "dlx", "x"),
        *("env", "nice", "nohup", "time", "timeout", "setsid", "stdbuf", "sudo", "caffeinate"),
    )
)

_SUFFIX = re.compile(r"\.(?:[cm]?js|exe|cmd|sh)$")
_VERSION = re.compile(r"(?<=.)@[^/@]*$")
_SKIPPED_WORD = re.compile(r"-.*|\d+(?:\.\d+)?[smhd]?|[A-Za-z_]\w*=.*", re.DOTALL)


def detect_agent(command: Sequence[str]) -> str | None:
    """The agent that a command runs, by the name of its program or behind `npx`, `env` etc.

    None if it is another program; shells and scripts are not looked into.
    """
    for word in command:
        name = _VERSION.sub("", word)
        if agent := _agent_of_package(name):
            return agent
        name = _SUFFIX.sub("", os.path.basename(name))
        if name in agent_names():
            return name
        if name not in WRAPPERS and not _SKIPPED_WORD.fullmatch(word):
            return None
    return None


def _agent_of_package(package: str) -> str | None:
    agents = all_agents()
    return next((one.name for one in agents if package in one.capabilities.npm_packages), None)
