"""Whose command a command line is, by its words alone."""

import os
import re
from collections.abc import Sequence

from brimline.agents import AGENTS

PACKAGES = {
    "@anthropic-ai/claude-code": "claude",
    "@openai/codex": "codex",
    "@mariozechner/pi-coding-agent": "pi",
    "@earendil-works/pi-coding-agent": "pi",
    "@google/gemini-cli": "gemini",
    "opencode-ai": "opencode",
}
"""The packages that bring the agents, as `npx` takes them."""

STARTERS = frozenset(
    (
        *("npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "node", "deno", "exec", "dlx", "x"),
        *("env", "nice", "nohup", "time", "timeout", "setsid", "stdbuf", "sudo", "caffeinate"),
    )
)
"""Commands that run the command behind them."""

_ENDING = re.compile(r"\.(?:[cm]?js|exe|cmd|sh)$")
_VERSION = re.compile(r"(?<=.)@[^/@]*$")
_PASSED_OVER = re.compile(r"-.*|\d+(?:\.\d+)?[smhd]?|[A-Za-z_]\w*=.*", re.DOTALL)


def agent_of(command: Sequence[str]) -> str | None:
    """The agent that a command runs: by its name, wherever it lies, or behind `npx`, `env`, ...

    None where the first word that counts is no agent's: what a shell or a script runs is not
    looked into.
    """
    for word in command:
        name = _VERSION.sub("", word)
        if agent := PACKAGES.get(name):
            return agent
        name = _ENDING.sub("", os.path.basename(name))
        if name in AGENTS:
            return name
        if name not in STARTERS and not _PASSED_OVER.fullmatch(word):
            return None
    return None
