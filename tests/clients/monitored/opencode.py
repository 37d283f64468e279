"""`opencode run`, and `kilo run` of its fork."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario

from ..opencode import bash, run_kilo, run_opencode, task, write_plugin_lock
from ..run import ClientRun, Place
from .extension_client import ExtensionClient


class Opencode(ExtensionClient):
    """opencode with a plugin of the user's own."""

    agent = "opencode"
    starts_slowly = True
    session_word = '"$OPENCODE_SESSION_ID"'
    session_key = "sessionID"
    shell = staticmethod(bash)
    subagent_script = (task("Look around."),), (bash("echo sub"), Reply(text="Nothing."))
    path = ".config/opencode/plugins/brimline.js"
    client = staticmethod(run_opencode)
    user_extension = "export const Own = async () => ({})\n"

    def write_settings(self) -> Path:
        """Write the user's own plugin, and the package for plugins."""
        write_plugin_lock(Place(self.folder), self.agent)
        return super().write_settings()

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run one turn."""
        given = (*(["-c"] if again else []), *arguments)
        return self.client(scenario, self.folder, "Go.", *given, environment=environment)

    def fork(self, of: ClientRun, scenario: Scenario) -> ClientRun:
        """Run one turn in a fork of a session."""
        return self.run(scenario, "--fork")

    def errors_shown(self, run: ClientRun) -> list[str]:
        """The errors in its log."""
        return [line for line in run.stderr.splitlines() if "level=ERROR" in line]


class Kilo(Opencode):
    """Kilo CLI with the same plugins."""

    agent = "kilo"
    is_fork = True
    own_prompt = 0.034
    session_word = '"$KILO_SESSION_ID"'
    path = ".config/kilo/plugins/brimline.js"
    client = staticmethod(run_kilo)
