"""Claude Code on this machine: where it is, its version, and how it is started."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from brimline.agents.claude.capabilities import SESSION_VARIABLES
from brimline.baselines.process import ClientProcess, ClientTimeout
from brimline.errors import BaselineFailed
from brimline.transcripts.source import Places

AGENT = "claude"
INSTALL_PATHS = (".local/bin/claude", ".claude/local/claude")
"""Where its installers put it, below home, when it is not in the PATH."""

INSTALL_HINT = "Install Claude Code, or put `claude` into the PATH."
CONTEXT_HINT = "See what `claude -p /context` says."


class ClaudeCommand(msgspec.Struct, frozen=True):
    """A client to be asked: its command, where it runs, and for how long each time.

    `settling` is how long its MCP servers are given to connect, in seconds as well.
    """

    path: str
    cwd: Path
    env: Mapping[str, str]
    model: str | None = None
    timeout_s: float = 30.0
    server_wait_s: float = 10.0

    def start(self, *arguments: str) -> ClientProcess:
        """Start it; BaselineFailed where that cannot be done."""
        try:
            return ClientProcess([self.path, *arguments], self.cwd, self.env, self.timeout_s)
        except OSError as error:
            reason = f"cannot start {self.path}: {error.strerror or error}"
            raise BaselineFailed(AGENT, reason, INSTALL_HINT) from error

    @property
    def model_options(self) -> Sequence[str]:
        """The arguments that choose the model."""
        return () if self.model is None else ("--model", self.model)

    def timeout_error(self, what: str, said: bytes = b"") -> BaselineFailed:
        """That it did not answer in time, with what it said instead."""
        reason = with_output(f"no answer to {what} in {self.timeout_s:g} s", said)
        return BaselineFailed(AGENT, reason, CONTEXT_HINT)


def with_output(happened: str, said: bytes) -> str:
    """What happened, with what came instead of an answer."""
    text = said.decode("utf-8", "replace").strip()[:80]
    return f"{happened}; it printed {text!r}" if text else happened


def find_command(places: Places) -> str:
    """The client's command: in the PATH, else where its installers put it; else BaselineFailed."""
    found = shutil.which("claude", path=places.env.get("PATH", ""))
    beside = (shutil.which(str(places.home / place)) for place in INSTALL_PATHS)
    command = found or next(filter(None, beside), None)
    if command is None:
        raise BaselineFailed(AGENT, "Claude Code is not installed", INSTALL_HINT)
    return command


def client_environment(places: Places) -> dict[str, str]:
    """What the client runs in: this environment, and nothing of a session that we run inside."""
    return {name: value for name, value in places.env.items() if name not in SESSION_VARIABLES}


def read_version(client: ClaudeCommand) -> str:
    """What `--version` prints; BaselineFailed where that is no version."""
    with client.start("--version") as talk:
        try:
            said = next(talk.lines(), b"")
        except ClientTimeout as error:
            raise client.timeout_error("--version") from error
        if found := re.match(rb"\s*v?(\d+\.\d+[\w.+-]*)", said):
            return found[1].decode()
        came = with_output(talk.describe_exit(), said)
        raise BaselineFailed(AGENT, f"{client.path} is not Claude Code: {came}", INSTALL_HINT)
