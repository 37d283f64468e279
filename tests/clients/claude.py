"""Claude Code: `claude -p --output-format stream-json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

ENVIRONMENT = {
    "ANTHROPIC_BASE_URL": "{base_url}",
    "ANTHROPIC_API_KEY": "sk-ant-dummy",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # Otherwise it kills a hook of the session's end after 1.5 s, which a busy machine may take.
    "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "60000",
}
MODEL = "claude-opus-5-5"
STREAM = ("--output-format", "stream-json", "--verbose")
TRANSCRIPTS = ".claude/projects/**/*.json*"
"""The pattern of Claude Code's own files below its home."""


def run_claude(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    model: str = MODEL,
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one headless turn; give `--resume ID` and the like as further arguments."""
    command = [require("claude"), "-p", prompt, *STREAM, "--model", model]
    command += ["--allowedTools", "Bash,Read,Agent", *arguments]
    return run_client(
        "claude",
        command,
        Place(folder),
        scenario,
        environment=ENVIRONMENT | dict(environment or {}),
        transcripts=TRANSCRIPTS,
    )


def bash(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    tool = ToolCall("Bash", {"command": command, "description": "Run a command"})
    return Reply(text=f"I run {command}.", tools=(tool,))


def agent(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    task = {"description": "Look around", "prompt": prompt, "subagent_type": "general-purpose"}
    return Reply(text="I ask an agent.", tools=(ToolCall("Agent", task),))
