"""The real clients as people run them: in a pane of a real tmux, against the fake model."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import brimline.testing.fake_model as fake
from brimline.testing.fake_model import Scenario
from daemon.tmux.terminal import Terminal

from . import claude, codex, gemini, opencode, pi
from .install import node, require
from .run import SOURCES, Place, isolation_prefix

MODEL = "claude-sonnet-4-5"
NEWEST_CODEX_MODEL = "gpt-6-sol"  # for an older one Codex first asks whether to switch

# Keeps the pane open after the client ended, to show its exit code.
KEEP_PANE_OPEN = "echo it ended with $?\nexec sleep 3600\n"

TMUX_VARIABLES = ' TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" '


@dataclass(frozen=True)
class ClientCommand:
    """How a client is started: command, environment, and templates with the model's address."""

    command: Sequence[str | Path]
    environment: Mapping[str, str]
    fill: Mapping[Path, Path] = field(default_factory=dict[Path, Path])


def start_claude(place: Place) -> ClientCommand:
    """Claude Code, with all questions of its first start answered."""
    known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    answers = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-ant-dummy"], "rejected": []},
        "projects": {str(place.project): known},
    }
    (place.home / ".claude.json").write_text(json.dumps(answers))
    command = [require("claude"), "--model", MODEL, "--permission-mode", "acceptEdits"]
    return ClientCommand([*command, "--allowedTools", "Bash,Read"], claude.ENVIRONMENT)


def start_codex(place: Place) -> ClientCommand:
    """Codex, in a folder that it trusts."""
    config = place.home / ".codex/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    trusted = f'[projects."{place.project}"]\ntrust_level = "trusted"\n'
    config.write_text(trusted)
    settings = [*codex.SETTINGS, f'model="{NEWEST_CODEX_MODEL}"']
    words = [word for setting in settings for word in ("-c", setting)]
    command = [require("codex"), "--dangerously-bypass-hook-trust", *words]
    return ClientCommand(command, {"FAKE_KEY": "sk-dummy"})


def start_gemini(place: Place) -> ClientCommand:
    """Gemini CLI, with a login and the settings that exist already."""
    file = place.home / ".gemini/settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    before: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(before | gemini.SETTINGS))
    return ClientCommand([require("gemini"), "--yolo"], gemini.ENVIRONMENT)


def start_pi(place: Place) -> ClientCommand:
    """Pi, with the fake model as its provider."""
    models = place.home / ".pi/agent/models.json"
    models.parent.mkdir(parents=True, exist_ok=True)
    model: dict[str, Any] = {"id": pi.MODEL, "name": "Fake", "reasoning": False}
    model |= {"input": ["text"], "cost": pi.COST, "contextWindow": pi.WINDOW, "maxTokens": 8192}
    provider = {"baseUrl": "{base_url}", "api": "anthropic-messages", "apiKey": "sk-dummy"}
    template = place.root / "models.json"
    template.write_text(json.dumps({"providers": {"fake": {**provider, "models": [model]}}}))
    command = [require("pi"), "--provider", "fake", "--model", pi.MODEL]
    return ClientCommand(command, {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}, {template: models})


def start_opencode(place: Place) -> ClientCommand:
    """opencode, with the fake model as its provider."""
    model = {"name": "Fake", "limit": {"context": 200_000, "output": 8192}, "cost": opencode.COST}
    options = {"baseURL": "{base_url}/v1", "apiKey": "sk-dummy"}
    provider = {"npm": "@ai-sdk/anthropic", "options": options, "models": {opencode.MODEL: model}}
    name = f"fake/{opencode.MODEL}"
    config = {"provider": {"fake": provider}, "model": name, "small_model": name}
    variables = {"OPENCODE_CONFIG_CONTENT": json.dumps(config | {"autoupdate": False})}
    environment = opencode.ENVIRONMENT | opencode.NO_MODELS | variables
    return ClientCommand([require("opencode")], environment)


CLIENTS: dict[str, Callable[[Place], ClientCommand]] = {
    "claude": start_claude,
    "codex": start_codex,
    "gemini": start_gemini,
    "opencode": start_opencode,
    "pi": start_pi,
}


class Interactive(Terminal):
    """A client in a pane, cut off from every network but loopback."""

    def __init__(
        self,
        agent: str,
        folder: Path,
        scenario: Scenario,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.agent = agent
        self.place = Place(folder)
        self.place.make()
        client_command = CLIENTS[agent](self.place)
        self.requests_file = folder / "requests.jsonl"
        script = folder / "run.sh"
        script.write_text(
            self._script(client_command, scenario, dict(environment or {}), arguments)
        )
        super().__init__(["sh", str(script)], self.place.project)
        self.begin(lambda: self.until_composer(agent))

    def _script(
        self,
        client_command: ClientCommand,
        scenario: Scenario,
        environment: dict[str, str],
        arguments: Sequence[str],
    ) -> str:
        """Return a script that runs fake model and client in one network namespace."""
        script = self.place.root / "scenario.json"
        fake.save(scenario, script)
        words = [*isolation_prefix(), sys.executable, "-m", "brimline.testing.fake_model"]
        words += ["--scenario", str(script), "--requests", str(self.requests_file)]
        for template, file in client_command.fill.items():
            words += ["--fill", str(template), str(file)]
        variables = {
            "HOME": str(self.place.home),
            "PATH": f"{node().binary.parent}:/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            **client_command.environment,
            **environment,
        }
        words += ["--", "env", "-i", *(f"{name}={value}" for name, value in variables.items())]
        client = [str(word) for word in (*client_command.command, *arguments)]
        export = f"export PYTHONPATH={shlex.quote(str(SOURCES))}\n"
        return f"{export}{shlex.join(words)}{TMUX_VARIABLES}{shlex.join(client)}\n{KEEP_PANE_OPEN}"

    def say(self, text: str) -> None:
        """Type a text like a user, and submit it.

        Pi keeps a text that is submitted while it starts: a second Enter submits it.
        """
        self.type(text)
        self.until(lambda: self._is_composed(text), f"{text!r} is not typed")
        self.until(lambda: self._submit(text), f"{text!r} is not submitted")

    def _is_composed(self, text: str) -> bool:
        return self.composer(self.agent).text == text

    def _submit(self, text: str) -> bool:
        self.press("Enter")
        return self.soon(lambda: not self._is_composed(text))

    def requests(self) -> list[str]:
        """The bodies of the model requests, in order."""
        if not self.requests_file.exists():
            return []
        lines = self.requests_file.read_text("utf-8").splitlines()
        return [line for line in lines if "count_tokens" not in line]
