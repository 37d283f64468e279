"""The Claude Code command of this machine: its path, its version, how it is started."""

import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from brimline.agents.claude import SESSION_VARIABLES
from brimline.agents.fresh_session.process import ClientProcess, ClientTimeout
from brimline.agents.transcripts.source import Places
from brimline.errors import BaselineFailed

AGENT = "claude"
INSTALL_PATHS = (".local/bin/claude", ".claude/local/claude")  # below home, if not in PATH

INSTALL_HINT = "Install Claude Code, or add `claude` to your PATH."
CONTEXT_HINT = "Check the output of `claude -p /context`."


class ClaudeCommand(msgspec.Struct, frozen=True):
    """How to run the client; `timeout_s` is for each run, `server_wait_s` for its MCP servers."""

    path: str
    cwd: Path
    env: Mapping[str, str]
    model: str | None = None
    timeout_s: float = 30.0
    server_wait_s: float = 10.0

    def start(self, *arguments: str) -> ClientProcess:
        """Start the client; raises BaselineFailed."""
        try:
            return ClientProcess([self.path, *arguments], self.cwd, self.env, self.timeout_s)
        except OSError as error:
            reason = f"cannot start {self.path}: {error.strerror or error}"
            raise BaselineFailed(AGENT, reason, INSTALL_HINT) from error

    @property
    def model_options(self) -> Sequence[str]:
        return () if self.model is None else ("--model", self.model)

    def timeout_error(self, what: str, output: bytes = b"") -> BaselineFailed:
        reason = with_output(f"no answer to {what} in {self.timeout_s:g} s", output)
        return BaselineFailed(AGENT, reason, CONTEXT_HINT)


def with_output(description: str, output: bytes) -> str:
    """Add the start of an unexpected output to a description."""
    excerpt = output.decode("utf-8", "replace").strip()[:80]
    return f"{description}; it printed {excerpt!r}" if excerpt else description


def find_command(places: Places) -> str:
    """Return the client's path; raises BaselineFailed.

    PATH comes first, then the usual places, then the client that the Claude Agent SDK bundles.
    """
    in_path = shutil.which("claude", path=places.env.get("PATH", ""))
    elsewhere = (shutil.which(str(places.home / path)) for path in INSTALL_PATHS)
    command = in_path or next(filter(None, elsewhere), None) or _find_bundled()
    if command is None:
        raise BaselineFailed(AGENT, "Claude Code is not installed", INSTALL_HINT)
    return command


def _find_bundled() -> str | None:
    sdk = find_spec("claude_agent_sdk")
    if sdk is None or sdk.origin is None:
        return None
    return shutil.which(str(Path(sdk.origin).parent / "_bundled" / "claude"))


def client_environment(places: Places) -> dict[str, str]:
    """Return the environment without the variables of a session that we may run in."""
    return {name: value for name, value in places.env.items() if name not in SESSION_VARIABLES}


def read_version(client: ClaudeCommand) -> str:
    """Return what `--version` prints; raises BaselineFailed if that is no version."""
    with client.start("--version") as process:
        try:
            output = next(process.lines(), b"")
        except ClientTimeout as error:
            raise client.timeout_error("--version") from error
        if match := re.match(rb"\s*v?(\d+\.\d+[\w.+-]*)", output):
            return match[1].decode()
        reason = with_output(process.describe_exit(), output)
        raise BaselineFailed(AGENT, f"{client.path} is not Claude Code: {reason}", INSTALL_HINT)
