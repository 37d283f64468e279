"""Claude Code, headless."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Scenario

from .. import claude
from ..run import ClientRun, Place
from ..scenes import SESSION
from .base import MonitoredClient

OWN = '{"cleanupPeriodDays": 30}\n'  # the user's own settings


class Claude(MonitoredClient):
    """Claude Code, with a model whose window is 200K."""

    agent = "claude"
    session_word = '"$CLAUDE_CODE_SESSION_ID"'
    shell = staticmethod(claude.bash)
    model = "claude-sonnet-4-5"

    def write_settings(self) -> Path:
        """Write settings.json with the user's own settings."""
        file = Place(self.folder).home / ".claude/settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(OWN)
        return file

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run one turn with a fixed session id."""
        which = ("--resume" if again else "--session-id", SESSION)
        return claude.run_claude(
            scenario,
            self.folder,
            self.prompt,
            *which,
            *arguments,
            model=self.model,
            environment=environment,
        )

    def fork(self, of: ClientRun, scenario: Scenario) -> ClientRun:
        """Run one turn in a fork of a session."""
        return self.run(scenario, "--fork-session")

    def user_texts(self, body: str) -> list[str]:
        """The texts of the user or of a hook, without the reminders that repeat a hook's."""
        return [
            text for text in super().user_texts(body) if not text.startswith("<system-reminder>")
        ]
