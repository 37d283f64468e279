"""Gemini CLI: `gemini -p --output-format stream-json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

ENVIRONMENT = {
    "GEMINI_API_KEY": "dummy",
    "GOOGLE_GEMINI_BASE_URL": "{base_url}",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "GEMINI_TELEMETRY_ENABLED": "false",
}
SETTINGS: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


def run_gemini(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    settings: Mapping[str, Any] | None = None,
) -> ClientRun:
    """Run one headless turn; `settings` are further groups of settings.json."""
    place = Place(folder)
    file = place.home / ".gemini/settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(SETTINGS | dict(settings or {})), encoding="utf-8")
    command = [require("gemini"), "-p", prompt, "--output-format", "stream-json", "--yolo"]
    return run_client(
        "gemini",
        [*command, *arguments],
        place,
        scenario,
        environment=ENVIRONMENT,
        transcripts=".gemini/tmp/**/chats/**/*.json*",
    )


def shell(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    tool = ToolCall("run_shell_command", {"command": command, "description": "Run a command"})
    return Reply(text=f"I run {command}.", tools=(tool,))


def invoke(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    tool = ToolCall("invoke_agent", {"agent_name": "generalist", "prompt": prompt})
    return Reply(text="I ask an agent.", tools=(tool,))


def complete(result: str) -> Reply:
    """A reply with which a subagent ends."""
    return Reply(tools=(ToolCall("complete_task", {"result": {"response": result}}),))
