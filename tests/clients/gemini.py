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
# Gemini CLI 0.61 starts itself again with more memory: a third of a short run's CPU time.
# The tests with a terminal let it.
ONE_PROCESS = {"GEMINI_CLI_NO_RELAUNCH": "true"}
SETTINGS: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}

SETTINGS_PATH = ".gemini/settings.json"  # below the home folder


def write_settings(place: Place, settings: Mapping[str, Any]) -> Path:
    """Write settings.json, with further groups of settings; returns its path."""
    file = place.home / SETTINGS_PATH
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(SETTINGS | dict(settings)), encoding="utf-8")
    return file


def run_gemini(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one headless turn; `settings` are further groups of settings.json.

    Without any, settings that are there already stay as they are.
    """
    place = Place(folder)
    if settings is not None or not (place.home / SETTINGS_PATH).exists():
        write_settings(place, settings or {})
    command = [require("gemini"), "-p", prompt, "--output-format", "stream-json", "--yolo"]
    return run_client(
        "gemini",
        [*command, *arguments],
        place,
        scenario,
        environment=ENVIRONMENT | ONE_PROCESS | dict(environment or {}),
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
