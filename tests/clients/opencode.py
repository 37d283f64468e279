"""opencode and its fork Kilo CLI: `opencode run --format json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brimline.testing.fake_model import Reply, Scenario, ToolCall

from .install import pins, require
from .run import ClientRun, Place, run_client

MODEL = "fake-claude"
ENVIRONMENT = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
# Reading its list of thousands of models takes opencode 1.18.18 a quarter of a run's CPU time.
NO_MODELS = {"OPENCODE_MODELS_PATH": str(Path(__file__).with_name("no_models.json"))}
DATABASE = ".local/share/opencode/opencode.db"
LOGIN = ".local/share/opencode/auth.json"
EXPORT = "opencode export"
PLUGIN_PACKAGES = {"opencode": "@opencode-ai/plugin", "kilo": "@kilocode/plugin"}
COST = {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}

CHATGPT_PLAN = {
    "type": "oauth",
    "access": "dummy",
    "refresh": "dummy",
    "expires": 99_999_999_999_999,
    "accountId": "dummy",
}
API_KEY = {"type": "api", "key": "sk-dummy"}
MODEL_URL = "BRIMLINE_TEST_MODEL_URL"
# A plan's requests go to a fixed address, which no setting of opencode 1.18.18 changes.
REDIRECT_PLUGIN = f"""
const fetchUrl = globalThis.fetch
const OPENAI = /^https:\\/\\/(chatgpt\\.com\\/backend-api\\/codex|api\\.openai\\.com\\/v1)/
const redirect = (url, options) =>
  fetchUrl(String(url?.url ?? url).replace(OPENAI, process.env.{MODEL_URL}), options)
globalThis.fetch = Object.assign(redirect, fetchUrl)
export const Redirect = async () => ({{}})
"""


KILO_ENVIRONMENT = {
    **{name.replace("OPENCODE", "KILO"): value for name, value in ENVIRONMENT.items()},
    "KILO_MODELS_PATH": NO_MODELS["OPENCODE_MODELS_PATH"],
    "KILO_TELEMETRY_LEVEL": "off",  # without a network it waits for that at its end
}


def write_plugin_lock(place: Place, client: str = "opencode") -> None:
    """Write the lock of the package that the client provides to plugins.

    Without it the client fetches the package first, which takes a minute without a network.
    """
    folder = place.home / ".config" / client
    package = {PLUGIN_PACKAGES[client]: pins()[client].version}
    lock = {"packages": {"": {"dependencies": package}}}
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    (folder / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def write_openai_login(place: Place, login: Mapping[str, object]) -> None:
    """Sign in to opencode's own provider `openai`, whose requests then go to the fake model."""
    file = place.home / LOGIN
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"openai": login}), encoding="utf-8")
    plugin = place.home / ".config/opencode/plugins/redirect.js"
    plugin.write_text(REDIRECT_PLUGIN, encoding="utf-8")


def run_opencode(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    window: int | None = 200_000,
    package: str = "@ai-sdk/anthropic",
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one turn; `-c` continues the last session of the folder.

    Without a `window` the user's own configuration has the model's limit.
    """
    place = Place(folder)
    models = {} if (place.home / LOGIN).exists() else NO_MODELS
    command = [require("opencode"), "run", "--format", "json", "--print-logs"]
    command += [*arguments, prompt]
    config = {"OPENCODE_CONFIG_CONTENT": json.dumps(_config(window, package))}
    return run_client(
        "opencode",
        command,
        place,
        scenario,
        environment=ENVIRONMENT | models | config | dict(environment or {}),
        transcripts=DATABASE,
    )


def run_kilo(
    scenario: Scenario,
    folder: Path,
    prompt: str,
    *arguments: str,
    window: int | None = 200_000,
    environment: Mapping[str, str] | None = None,
) -> ClientRun:
    """Run one turn of Kilo CLI, as `run_opencode` does of opencode."""
    config = {"KILO_CONFIG_CONTENT": json.dumps(_config(window, "@ai-sdk/anthropic"))}
    return run_client(
        "kilo",
        [require("kilo"), "run", "--auto", "--format", "json", "--print-logs", *arguments, prompt],
        Place(folder),
        scenario,
        environment=KILO_ENVIRONMENT | config | dict(environment or {}),
        transcripts=".local/share/kilo/kilo.db",
    )


def export_opencode(run: ClientRun, folder: Path) -> ClientRun:
    """Run `opencode export` on the session of a run; the stream is one JSON document."""
    session = run.billed[0].session_id
    return run_client(
        EXPORT,
        [require("opencode"), "export", str(session)],
        Place(folder),
        Scenario(),
        environment=ENVIRONMENT | NO_MODELS,
        transcripts=DATABASE,
    )


def _config(window: int | None, package: str) -> dict[str, Any]:
    limit = {} if window is None else {"limit": {"context": window, "output": 8192}}
    model = {"name": "Fake", "cost": COST, **limit}
    options = {"baseURL": "{base_url}/v1", "apiKey": "sk-dummy"}
    provider = {"npm": package, "options": options, "models": {MODEL: model}}
    return {
        "provider": {"fake": provider},
        "model": f"fake/{MODEL}",
        "small_model": f"fake/{MODEL}",
        "autoupdate": False,
        "share": "disabled",
    }


def bash(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    tool = ToolCall("bash", {"command": command, "description": "Run a command"})
    return Reply(text=f"I run {command}.", tools=(tool,))


def task(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    arguments = {"description": "Look around", "prompt": prompt, "subagent_type": "general"}
    return Reply(text="I ask an agent.", tools=(ToolCall("task", arguments),))
