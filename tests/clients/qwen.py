"""Qwen Code: `qwen -p --output-format stream-json`, at an API like OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

MODEL = "qwen3-coder-plus"
ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-dummy",
    "OPENAI_BASE_URL": "{base_url}/v1",
    "OPENAI_MODEL": MODEL,
}
SETTINGS: dict[str, Any] = {
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
}
SETTINGS_PATH = ".qwen/settings.json"  # below the home folder


def write_settings(place: Place, settings: Mapping[str, Any]) -> Path:
    """Write settings.json, with further groups of settings; returns its path."""
    file = place.home / SETTINGS_PATH
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(SETTINGS | dict(settings)), encoding="utf-8")
    return file


def run_qwen(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one headless turn; `--continue` resumes the last session of the folder.

    Without `settings`, those that are there already stay as they are.
    """
    place = Place(folder)
    if settings is not None or not (place.home / SETTINGS_PATH).exists():
        write_settings(place, settings or {})
    command = [require("qwen"), "--yolo", "--auth-type", "openai", "--output-format", "stream-json"]
    return run_client(
        "qwen",
        [*command, "-p", prompt, *arguments],
        place,
        scenario,
        environment=ENVIRONMENT | dict(environment or {}),
        transcripts=".qwen/projects/**/*.json*",
    )


def shell(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    arguments = {"command": command, "description": "Run a command", "is_background": False}
    return Reply(text=f"I run {command}.", tools=(ToolCall("run_shell_command", arguments),))


def delegate(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    arguments = {"description": "Look", "prompt": prompt, "subagent_type": "general-purpose"}
    return Reply(text="I ask an agent.", tools=(ToolCall("agent", arguments),))
