"""Pi in `--mode json`."""

from __future__ import annotations

from collections.abc import Mapping

from brimline.testing.fake_model import Scenario

from ..pi import bash, run_pi
from ..run import ClientRun
from .extension_client import ExtensionClient


class Pi(ExtensionClient):
    """Pi with an extension of the user's own."""

    agent = "pi"
    session_word = '"$PI_SESSION_ID"'
    session_key = "id"
    shell = staticmethod(bash)
    path = ".pi/agent/extensions/brimline.js"
    user_extension = "export default function () {}\n"

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run one turn."""
        which = ("-c",) if again else ()
        return run_pi(scenario, self.folder, "Go.", *which, *arguments, environment=environment)

    def fork(self, of: ClientRun, scenario: Scenario) -> ClientRun:
        """Run one turn in a fork of a session."""
        self.again = False
        return self.run(scenario, "--fork", self.session_of(of))

    def errors_shown(self, run: ClientRun) -> list[str]:
        """Every line on standard error."""
        return run.stderr.splitlines()
