"""Codex: `codex exec --json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import CAPTURED, Reply, Scenario, ToolCall

from .install import require
from .run import ClientRun, Place, run_client

MODEL = "gpt-5.5"
SETTINGS = (
    f'model="{MODEL}"',
    'model_provider="fake"',
    'approval_policy="never"',
    'sandbox_mode="danger-full-access"',
    'model_providers.fake.name="fake"',
    'model_providers.fake.base_url="{base_url}/v1"',
    'model_providers.fake.wire_api="responses"',
    'model_providers.fake.env_key="FAKE_KEY"',
    "features.plugins=false",
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
)


def run_codex(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *settings: str,
    resume: bool = False,
    fork: str | None = None,
    hooks: bool = False,
    plain: bool = False,
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one turn; `settings` are further `key=value` of config.toml, `hooks` are all trusted.

    `fork` is the session to fork. A `plain` run prints no stream; it reports the result of each
    hook on standard error.
    """
    command = [require("codex"), "exec", "--skip-git-repo-check"]
    command += [] if plain else ["--json"]
    command += ["--dangerously-bypass-hook-trust"] if hooks else []
    for setting in (*SETTINGS, *settings):
        command += ["-c", setting]
    if fork:
        command += ["fork", fork]
    elif resume:
        command += ["resume", "--last"]
    command.append(prompt)
    return run_client(
        "codex",
        command,
        Place(folder),
        scenario,
        environment={"FAKE_KEY": "sk-dummy"} | dict(environment or {}),
        transcripts=".codex/sessions/**/rollout-*.jsonl",
    )


def shell(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    tool = ToolCall("exec_command", {"cmd": command})
    return Reply(text=f"I run {command}.", tools=(tool,))


def spawn(message: str) -> Reply:
    """A reply that starts a subagent."""
    tool = ToolCall("spawn_agent", {"message": message}, namespace="multi_agent_v1")
    return Reply(text="I ask an agent.", tools=(tool,))


def wait() -> Reply:
    """A reply that waits for the subagent just started."""
    tool = ToolCall("wait_agent", {"targets": [CAPTURED]}, namespace="multi_agent_v1")
    return Reply(tools=(tool,), capture=r"agent_id\W+([0-9a-f-]{36})")
