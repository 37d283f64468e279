"""`opencode run`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario

from ..opencode import bash, run_opencode, task, write_fetched
from ..run import ClientRun, Place
from .extended import Extended


class Opencode(Extended):
    """opencode, with a plugin of the user's own beside ours."""

    agent = "opencode"
    session = '"$OPENCODE_SESSION_ID"'
    key = "sessionID"
    kills = (0, 3, 4)
    """Early, just before the compaction, and just after it: a run takes long."""
    shell = staticmethod(bash)
    errand = (task("Look around."),), (bash("echo sub"), Reply(text="Nothing."))
    path = ".config/opencode/plugins/brimline.js"
    theirs = "export const Own = async () => ({})\n"

    def write_settings(self) -> Path:
        """The user's own plugin, and the package for plugins."""
        write_fetched(Place(self.folder))
        return super().write_settings()

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run it once."""
        given = (*(["-c"] if again else []), *arguments)
        return run_opencode(scenario, self.folder, "Go.", *given, environment=environment)

    def complaints(self, run: ClientRun) -> list[str]:
        """The errors in its log."""
        return [line for line in run.stderr.splitlines() if "level=ERROR" in line]
