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
from tmux.terminal import Terminal

from . import claude, codex, gemini, opencode, pi
from .install import node, require
from .run import SOURCES, Place, isolation

MODEL = "claude-sonnet-4-5"
NEWEST = "gpt-6-sol"
"""The newest model of Codex: for an older one it first asks whether to switch."""

LAST_WORDS = "echo it ended with $?\nexec sleep 3600\n"
"""Keeps the pane open after the client ended, to see why."""

PASSED_ON = ' TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" '


@dataclass(frozen=True)
class Started:
    """How a client is started: command, environment, and template files for the model's address."""

    command: Sequence[str | Path]
    environment: Mapping[str, str]
    fill: Mapping[Path, Path] = field(default_factory=dict[Path, Path])


def start_claude(place: Place) -> Started:
    """Claude Code, with every question of a first start answered."""
    known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    answers = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-ant-dummy"], "rejected": []},
        "projects": {str(place.project): known},
    }
    (place.home / ".claude.json").write_text(json.dumps(answers))
    command = [require("claude"), "--model", MODEL, "--permission-mode", "acceptEdits"]
    return Started([*command, "--allowedTools", "Bash,Read"], claude.ENVIRONMENT)


def start_codex(place: Place) -> Started:
    """Codex, in a folder that it trusts."""
    config = place.home / ".codex/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    trusted = f'[projects."{place.project}"]\ntrust_level = "trusted"\n'
    config.write_text(trusted)
    settings = [*codex.SETTINGS, f'model="{NEWEST}"']
    words = [word for setting in settings for word in ("-c", setting)]
    command = [require("codex"), "--dangerously-bypass-hook-trust", *words]
    return Started(command, {"FAKE_KEY": "sk-dummy"})


def start_gemini(place: Place) -> Started:
    """Gemini CLI, with its key, and with what was set up before."""
    file = place.home / ".gemini/settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    before: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(before | gemini.SETTINGS))
    return Started([require("gemini"), "--yolo"], gemini.ENVIRONMENT)


def start_pi(place: Place) -> Started:
    """Pi, with the fake as its provider."""
    models = place.home / ".pi/agent/models.json"
    models.parent.mkdir(parents=True, exist_ok=True)
    model: dict[str, Any] = {"id": pi.MODEL, "name": "Fake", "reasoning": False}
    model |= {"input": ["text"], "cost": pi.COST, "contextWindow": pi.WINDOW, "maxTokens": 8192}
    provider = {"baseUrl": "{base_url}", "api": "anthropic-messages", "apiKey": "sk-dummy"}
    template = place.root / "models.json"
    template.write_text(json.dumps({"providers": {"fake": {**provider, "models": [model]}}}))
    command = [require("pi"), "--provider", "fake", "--model", pi.MODEL]
    return Started(command, {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}, {template: models})


def start_opencode(place: Place) -> Started:
    """opencode, with the fake as its provider."""
    model = {"name": "Fake", "limit": {"context": 200_000, "output": 8192}, "cost": opencode.COST}
    options = {"baseURL": "{base_url}/v1", "apiKey": "sk-dummy"}
    provider = {"npm": "@ai-sdk/anthropic", "options": options, "models": {opencode.MODEL: model}}
    name = f"fake/{opencode.MODEL}"
    config = {"provider": {"fake": provider}, "model": name, "small_model": name}
    told = {"OPENCODE_CONFIG_CONTENT": json.dumps(config | {"autoupdate": False})}
    return Started([require("opencode")], opencode.ENVIRONMENT | told)


CLIENTS: dict[str, Callable[[Place], Started]] = {
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
        started = CLIENTS[agent](self.place)
        self.requests_file = folder / "requests.jsonl"
        script = folder / "run.sh"
        script.write_text(self._script(started, scenario, dict(environment or {}), arguments))
        super().__init__(["sh", str(script)], self.place.project)
        self.begin(lambda: self.until_composer(agent))

    def _script(
        self,
        started: Started,
        scenario: Scenario,
        environment: dict[str, str],
        arguments: Sequence[str],
    ) -> str:
        """Fake and client in one command line, so that both are in one network namespace."""
        script = self.place.root / "scenario.json"
        fake.save(scenario, script)
        words = [*isolation(), sys.executable, "-m", "brimline.testing.fake_model"]
        words += ["--scenario", str(script), "--requests", str(self.requests_file)]
        for template, file in started.fill.items():
            words += ["--fill", str(template), str(file)]
        told = {
            "HOME": str(self.place.home),
            "PATH": f"{node().binary.parent}:/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            **started.environment,
            **environment,
        }
        words += ["--", "env", "-i", *(f"{name}={value}" for name, value in told.items())]
        client = [str(word) for word in (*started.command, *arguments)]
        ours = f"export PYTHONPATH={shlex.quote(str(SOURCES))}\n"
        return f"{ours}{shlex.join(words)}{PASSED_ON}{shlex.join(client)}\n{LAST_WORDS}"

    def say(self, text: str) -> None:
        """Type a text like a user, and submit it.

        Pi keeps what is sent off while it starts: then it takes a second Enter.
        """
        self.type(text)
        self.until(lambda: self._holds(text), f"{text!r} is not typed")
        self.until(lambda: self._sent_off(text), f"{text!r} is not sent off")

    def _holds(self, text: str) -> bool:
        return self.composer(self.agent).text == text

    def _sent_off(self, text: str) -> bool:
        self.press("Enter")
        return self.soon(lambda: not self._holds(text))

    def requests(self) -> list[str]:
        """The bodies of the requests for an answer, in their order."""
        if not self.requests_file.exists():
            return []
        lines = self.requests_file.read_text("utf-8").splitlines()
        return [line for line in lines if "count_tokens" not in line]
