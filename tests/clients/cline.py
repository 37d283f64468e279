"""Cline CLI: `cline --json`, at an API like OpenAI's chat completions."""

from __future__ import annotations

import json
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

PROVIDER = "openai-compatible"
# {base_url} becomes the address of the fake model.
SETTINGS = {
    "provider": PROVIDER,
    "apiKey": "sk-dummy",
    "model": "gpt-4o",
    "baseUrl": "{base_url}/v1",
}
PROVIDERS = {
    "version": 1,
    "lastUsedProvider": PROVIDER,
    "modes": {},
    "providers": {
        PROVIDER: {
            "settings": SETTINGS,
            "updatedAt": "2026-01-02T03:04:05.000Z",
            "tokenSource": "manual",
        }
    },
}
ENVIRONMENT = {
    "CLINE_SESSION_BACKEND_MODE": "local",  # otherwise it leaves a process that serves sessions
    "CLINE_NO_AUTO_UPDATE": "1",
}


def run_cline(scenario: Scenario, folder: Path, prompt: str) -> ClientRun:
    """Run one headless turn; only its terminal interface resumes a session."""
    template = folder / "providers.json"
    providers = Place(folder).home / ".cline/data/settings/providers.json"
    providers.parent.mkdir(parents=True, exist_ok=True)
    template.write_text(json.dumps(PROVIDERS), encoding="utf-8")
    # A prompt without a blank is taken for a command; the client removes it again.
    return run_client(
        "cline",
        [require("cline"), "--json", f"{prompt} "],
        Place(folder),
        scenario,
        environment=ENVIRONMENT,
        transcripts=".cline/data/sessions/*/*.json",
        fill={template: providers},
    )


def run_commands(command: str, reply_words: int = 0) -> Reply:
    """A reply that says a line, and that many words, and runs a shell command."""
    text = f"I run {command}." + " word" * reply_words
    return Reply(text=text, tools=(ToolCall("run_commands", {"commands": [command]}),))


def spawn_agent(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    arguments = {"systemPrompt": "You look around.", "task": prompt}
    return Reply(text="I ask an agent.", tools=(ToolCall("spawn_agent", arguments),))
