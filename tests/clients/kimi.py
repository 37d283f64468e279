"""Kimi Code: `kimi -p --output-format stream-json`, at an API like OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

MODEL = "kimi-k3"
WINDOW = 131_072
ENVIRONMENT = {
    "KIMI_MODEL_NAME": MODEL,
    "KIMI_MODEL_API_KEY": "sk-dummy",
    "KIMI_MODEL_BASE_URL": "{base_url}/v1",
    "KIMI_MODEL_PROVIDER_TYPE": "openai",
    "KIMI_MODEL_MAX_CONTEXT_SIZE": str(WINDOW),
}


def run_kimi(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one headless turn; `--continue` resumes the last session of the folder."""
    return run_client(
        "kimi",
        [require("kimi"), "-p", prompt, "--output-format", "stream-json", *arguments],
        Place(folder),
        scenario,
        environment=ENVIRONMENT | dict(environment or {}),
        transcripts=".kimi-code/**/w*.json*",
    )


def bash(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    return Reply(text=f"I run {command}.", tools=(ToolCall("Bash", {"command": command}),))


def delegate(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    arguments = {"description": "Look", "prompt": prompt, "subagent_type": "coder"}
    return Reply(text="I ask an agent.", tools=(ToolCall("Agent", arguments),))
