"""Qwen Code, headless."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from brimline.testing.fake_model import Reply, Scenario

from ..qwen import delegate, run_qwen, shell, write_settings
from ..run import ClientRun, Place
from ..scenes import SESSION, SNAPSHOT
from .base import MonitoredClient


def _slow(command: str) -> Reply:
    return shell(f"sleep 0.5; {command}")


class Qwen(MonitoredClient):
    """Qwen Code, with its default window.

    It records a call while the tools of that call run: they take a moment here.
    """

    agent = "qwen"
    starts_slowly = True
    endpoint = "/chat/completions"
    window = 1_000_000
    session_word = '"$QWEN_CODE_SESSION_ID"'
    ends_in_headless_runs = False  # 0.24.4 runs SessionEnd in interactive sessions alone
    handoff_counts = (0, 1, 1)
    subagent_script = ((delegate("Look around."),), (_slow("echo sub"), _slow("echo on")))
    forked: str | None = None

    shell = staticmethod(_slow)

    def write_settings(self) -> Path:
        """Write settings.json as the user has it."""
        return write_settings(Place(self.folder), {})

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run one turn; a compression's summary has the part that the client looks for."""
        which = ("--resume", SESSION) if again else ("--session-id", SESSION)
        if self.forked is not None:
            which = ("--resume", self.forked, "--fork-session")
        scenario = msgspec.structs.replace(scenario, summary=SNAPSHOT)
        return run_qwen(scenario, self.folder, "Go.", *which, *arguments, environment=environment)

    def fork(self, of: ClientRun, scenario: Scenario) -> ClientRun:
        """Run one turn in a fork of a session."""
        self.forked = self.session_of(of)
        return self.run(scenario)

    def user_texts(self, body: str) -> list[str]:
        """The texts of the user, or of a hook, in a request."""
        messages = [one for one in json.loads(body)["body"]["messages"] if one["role"] == "user"]
        parts = [part for one in messages for part in _parts_of(one["content"])]
        return [part["text"] for part in parts if part["type"] == "text"]


def _parts_of(content: str | list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
