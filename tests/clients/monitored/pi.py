"""Pi in `--mode json`."""

from __future__ import annotations

from collections.abc import Mapping

from brimline.testing.fake_model import Scenario

from ..pi import bash, run_pi
from ..run import ClientRun
from .extended import Extended


class Pi(Extended):
    """Pi, with an extension of the user's own beside ours."""

    agent = "pi"
    session = '"$PI_SESSION_ID"'
    key = "id"
    shell = staticmethod(bash)
    path = ".pi/agent/extensions/brimline.js"
    theirs = "export default function () {}\n"

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run it once."""
        which = ("-c",) if again else ()
        return run_pi(scenario, self.folder, "Go.", *which, *arguments, environment=environment)

    def complaints(self, run: ClientRun) -> list[str]:
        """Every line that is not of its stream."""
        return run.stderr.splitlines()
