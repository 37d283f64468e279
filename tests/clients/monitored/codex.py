"""Codex in `exec`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brimline.testing.fake_model import Scenario

from ..codex import run_codex, shell, spawn, wait
from ..run import ClientRun, Place
from .base import MonitoredClient

OWN = '{"description": "mine", "hooks": {}}\n'  # the user's own settings


class Codex(MonitoredClient):
    """Codex; with `plain` it prints the results of its hooks."""

    agent = "codex"
    endpoint = "/v1/responses"
    window = 258_400
    session_word = '"$CODEX_THREAD_ID"'
    session_key = "thread_id"
    levels = ((0, 50.0), (0, 65.0), (1, 65.0))
    """Its first call after the compaction sends little, its second is above both levels."""
    shell = staticmethod(shell)
    subagent_script = (spawn("Look around."), wait()), (shell("echo sub"),)
    user_hooks = OWN
    plain = False
    forked: str | None = None

    def write_settings(self) -> Path:
        """Write hooks.json with the user's own settings."""
        file = Place(self.folder).home / ".codex/hooks.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.user_hooks)
        return file

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run one turn with all hooks trusted."""
        return run_codex(
            scenario,
            self.folder,
            self.prompt,
            *arguments,
            resume=again,
            fork=self.forked,
            hooks=True,
            plain=self.plain,
            environment=environment,
        )

    def fork(self, of: ClientRun, scenario: Scenario) -> ClientRun:
        """Run one turn in a fork of a session."""
        self.forked = self.session_of(of)
        return self.run(scenario)

    def main_requests(self, run: ClientRun) -> list[str]:
        """The requests of the session's own thread, without those of subagents."""
        own = f'\\"thread_id\\":\\"{self.session_of(run)}'
        return [body for body in self.conversation(run) if own in body]

    def user_texts(self, body: str) -> list[str]:
        """The texts of the user, or of a hook, in a request."""
        items: list[dict[str, Any]] = json.loads(body)["body"]["input"]
        return [str(item) for item in items if item.get("role") == "user"]
