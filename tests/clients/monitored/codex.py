"""Codex in `exec`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brimline.testing.fake_model import Scenario

from ..codex import run_codex, shell, spawn, wait
from ..run import ClientRun, Place
from .base import Monitored

OWN = '{"description": "mine", "hooks": {}}\n'
"""What the user had set before."""


class Codex(Monitored):
    """Codex; with `plain` it tells people how its hooks went."""

    agent = "codex"
    endpoint = "/v1/responses"
    window = 258_400
    session = '"$CODEX_THREAD_ID"'
    key = "thread_id"
    filling = (0.35, 0.145, 0.42)
    comes = (1, 1, 1, 1)
    """One more than others: a level is reached as the turn would end, and it goes on."""
    shell = staticmethod(shell)
    errand = (spawn("Look around."), wait()), (shell("echo sub"),)
    theirs = OWN
    plain = False

    def write_settings(self) -> Path:
        """hooks.json, with what the user had set before."""
        file = Place(self.folder).home / ".codex/hooks.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.theirs)
        return file

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run it once, with all hooks trusted."""
        return run_codex(
            scenario,
            self.folder,
            "Go.",
            *arguments,
            resume=again,
            hooks=True,
            plain=self.plain,
            environment=environment,
        )

    def of_main(self, run: ClientRun) -> list[str]:
        """The requests with the session's own thread; a subagent's come at the same time."""
        own = f'\\"thread_id\\":\\"{self.session_of(run)}'
        return [body for body in self.sent(run) if own in body]

    def users(self, body: str) -> list[str]:
        """What the user, or a hook, said in a request."""
        items: list[dict[str, Any]] = json.loads(body)["body"]["input"]
        return [str(item) for item in items if item.get("role") == "user"]
