"""Goose: `goose run --output-format stream-json`, at Anthropic's API or OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

WINDOW = 60_000
ENVIRONMENT = {
    "GOOSE_CONTEXT_LIMIT": str(WINDOW),
    "GOOSE_DISABLE_KEYRING": "1",
    "GOOSE_DISABLE_SESSION_NAMING": "true",  # that call is in no row of its ledger
    "GOOSE_MODE": "auto",
    "GOOSE_TELEMETRY_ENABLED": "false",
}
ANTHROPIC = {
    "GOOSE_PROVIDER": "anthropic",
    "GOOSE_MODEL": "claude-sonnet-4-5",
    "ANTHROPIC_HOST": "{base_url}",
    "ANTHROPIC_API_KEY": "sk-dummy",
}
OPENAI = {
    "GOOSE_PROVIDER": "openai",
    "GOOSE_MODEL": "gpt-4o",
    "OPENAI_HOST": "{base_url}",
    "OPENAI_API_KEY": "sk-dummy",
}


def run_goose(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    environment: Mapping[str, str] = ANTHROPIC,
) -> ClientRun:
    """Run one headless turn; `--resume` continues the last session."""
    command = [require("goose"), "run", "--quiet", "--output-format", "stream-json"]
    return run_client(
        "goose",
        [*command, "--with-builtin", "developer", *arguments, "-t", prompt],
        Place(folder),
        scenario,
        environment=ENVIRONMENT | dict(environment),
        transcripts=".local/share/goose/sessions/sessions.db",
    )


def shell(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    return Reply(text=f"I run {command}.", tools=(ToolCall("shell", {"command": command}),))


def delegate(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    return Reply(text="I ask.", tools=(ToolCall("delegate", {"instructions": prompt}),))
