"""Pi: `pi --mode json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

MODEL = "fake-claude"
WINDOW = 200_000
SETTINGS = {"compaction": {"enabled": True, "reserveTokens": 16_384, "keepRecentTokens": 100}}
COST = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}


def run_pi(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    api: str = "anthropic-messages",
    window: int = WINDOW,
    images: bool = False,
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one turn; `-c` continues the last session of the folder.

    `images`: the model takes them.
    """
    place = Place(folder)
    models = place.home / ".pi/agent/models.json"
    models.parent.mkdir(parents=True, exist_ok=True)
    models.with_name("settings.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    template = place.root / "models.json"
    template.write_text(json.dumps(_models(api, window, images)), encoding="utf-8")
    command = [require("pi"), "--mode", "json", "--provider", "fake", "--model", MODEL]
    return run_client(
        "pi",
        [*command, *arguments, prompt],
        place,
        scenario,
        environment={"PI_OFFLINE": "1", "PI_TELEMETRY": "0", **(environment or {})},
        transcripts=".pi/agent/sessions/**/*.jsonl",
        fill={template: models},
    )


def _models(api: str, window: int, images: bool) -> dict[str, object]:
    path = "" if api == "anthropic-messages" else "/v1"
    model = {"id": MODEL, "name": "Fake", "reasoning": False, "cost": COST}
    model |= {"input": ["text", "image"] if images else ["text"]}
    model |= {"contextWindow": window, "maxTokens": 8192}
    provider = {"baseUrl": "{base_url}" + path, "api": api, "apiKey": "sk-dummy"}
    return {"providers": {"fake": {**provider, "models": [model]}}}


def bash(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    return Reply(text=f"I run {command}.", tools=(ToolCall("bash", {"command": command}),))
