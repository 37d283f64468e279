"""Claude Code, headless."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Scenario

from .. import claude
from ..run import ClientRun, Place
from ..scenes import SESSION
from .base import Monitored

OWN = '{"cleanupPeriodDays": 30}\n'
"""What the user had set before."""


class Claude(Monitored):
    """Claude Code, with a model whose window is 200K."""

    agent = "claude"
    session = '"$CLAUDE_CODE_SESSION_ID"'
    shell = staticmethod(claude.bash)
    model = "claude-sonnet-4-5"

    def write_settings(self) -> Path:
        """settings.json, with what the user had set before."""
        file = Place(self.folder).home / ".claude/settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(OWN)
        return file

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run it once; the session's id is given."""
        which = ("--resume" if again else "--session-id", SESSION)
        return claude.run_claude(
            scenario,
            self.folder,
            "Go.",
            *which,
            *arguments,
            model=self.model,
            environment=environment,
        )

    def users(self, body: str) -> list[str]:
        """What the user said in a request, or a hook; it reminds of the latter once more."""
        return [text for text in super().users(body) if not text.startswith("<system-reminder>")]
