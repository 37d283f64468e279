"""Pi: `pi --mode json`, or `pi --mode rpc` with a program that drives it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

MODEL = "fake-claude"
WINDOW = 200_000
SETTINGS = {"compaction": {"enabled": True, "reserveTokens": 16_384, "keepRecentTokens": 100}}
COST = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}


DRIVER = """
import json, subprocess, sys
*command, prompt = sys.argv[1:]
pi = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(**command):
    pi.stdin.write(json.dumps(command).encode() + b"\\n")
    pi.stdin.flush()
send(id="state", type="get_state")
send(id="turn", type="prompt", message=prompt)
for line in pi.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
    if json.loads(line)["type"] == "agent_settled":
        pi.stdin.close()
sys.exit(pi.wait())
"""  # asks for the state, runs one turn, and passes on what Pi prints


def run_pi(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    mode: str = "json",
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
    if not (settings := models.with_name("settings.json")).exists():
        settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
    template = place.root / "models.json"
    template.write_text(json.dumps(_models(api, window, images)), encoding="utf-8")
    command = [require("pi"), "--mode", mode, "--provider", "fake", "--model", MODEL]
    if mode == "rpc":
        command[:0] = [sys.executable, "-c", DRIVER]
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
