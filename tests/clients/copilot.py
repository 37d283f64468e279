"""GitHub Copilot CLI: `copilot -p`, without a login, at a model of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import cache_folder, require
from .run import ClientRun, Place, run_client

MODEL = "claude-sonnet-4.5"
ENVIRONMENT = {
    "COPILOT_OFFLINE": "true",
    "COPILOT_AUTO_UPDATE": "false",
    "COPILOT_PROVIDER_BASE_URL": "{base_url}",
    "COPILOT_PROVIDER_TYPE": "anthropic",
    "COPILOT_PROVIDER_API_KEY": "sk-dummy",
    "COPILOT_MODEL": MODEL,
}
# It unpacks 230 MB at its first start: once for all homes.
UNPACKED = {"XDG_CACHE_HOME": str(cache_folder() / "copilot-unpacked")}


def run_copilot(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one headless turn."""
    command = [require("copilot"), "-p", prompt, "--output-format", "json", "--yolo"]
    return run_client(
        "copilot",
        [*command, *arguments],
        Place(folder),
        scenario,
        environment=ENVIRONMENT | UNPACKED | dict(environment or {}),
        transcripts=".copilot/session-state/*/events.jsonl",
    )


def bash(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    tool = ToolCall("bash", {"command": command, "description": "Run a command"})
    return Reply(text=f"I run {command}.", tools=(tool,))


def task(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    arguments = {"agent_type": "task", "name": "look", "description": "Look", "prompt": prompt}
    return Reply(text="I ask an agent.", tools=(ToolCall("task", arguments),))
