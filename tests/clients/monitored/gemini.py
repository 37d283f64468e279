"""Gemini CLI, headless.

It compresses at half of its window unless it is told otherwise, so that levels are tested with a
threshold that is out of reach.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario

from ..gemini import complete, invoke, run_gemini, shell, write_settings
from ..run import ClientRun, Place
from ..scenes import SESSION, SNAPSHOT
from .base import Monitored
from .script import handing_over

AGAIN = ("--resume", "latest")
NEW = ("--session-id", SESSION)


class Gemini(Monitored):
    """Gemini CLI, with the threshold of its compressions."""

    agent = "gemini"
    endpoint = ":streamGenerateContent"
    window = 1_048_576
    session = SESSION
    last = 0
    kills = (0, 1, 2)
    comes = (0, 1, 1)
    levels = ((0, 50.0), (1, 50.0))
    shell = staticmethod(shell)
    errand = (invoke("Look around."),), (shell("echo sub"), shell("echo on"), complete("Nothing."))
    threshold = 0.99

    def write_settings(self) -> Path:
        """settings.json."""
        model = {"model": {"compressionThreshold": self.threshold}}
        return write_settings(Place(self.folder), model)

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run it once, with the settings that are there."""
        which = AGAIN if again else NEW
        return run_gemini(scenario, self.folder, "Go.", *which, *arguments, environment=environment)

    def record_hook(self, event: str) -> Path:
        """Have a hook write its input to a file each time; the folder of the files."""
        folder = self.folder / event
        folder.mkdir(parents=True)
        settings = json.loads(self.settings.read_text())
        hook = {"type": "command", "command": f"cat > {folder}/$(date +%s%N)", "timeout": 2_000}
        settings["hooks"][event] = [{"hooks": [hook]}]
        self.settings.write_text(json.dumps(settings))
        return folder

    def compact(self, deeds: Mapping[int, str] | None = None) -> ClientRun:
        """The agent hands a document over in one turn, and goes on in another, whose second request
        comes after a compression; it knocks at some steps. Gives the second."""
        return self.compress(handing_over(self.shell, "--session", SESSION), deeds=deeds)

    def compress(self, *before: Reply, deeds: Mapping[int, str] | None = None) -> ClientRun:
        """The same with other steps in the first turn."""
        self.threshold = 0.6
        self.write_settings()
        self.set_up()
        self.run(self.steps(0, self.ramp(0.5, 0.02), *before))
        main, ramp = self.loop(3, deeds), self.ramp(0.61, after=0.5)
        return self.run(Scenario(main=main, ramp=ramp, summary=SNAPSHOT))

    def asked(self, run: ClientRun) -> list[str]:
        """All that is sent there: it asks for summaries and the like elsewhere."""
        return self.sent(run)

    def of_main(self, run: ClientRun) -> list[str]:
        """The requests that begin as the session did."""
        return [body for body in self.sent(run) if "<session_context>" in body]

    def after_compaction(self, run: ClientRun) -> list[str]:
        """The requests of the second turn, but for the first."""
        return self.sent(run)[1:]

    def users(self, body: str) -> list[str]:
        """What the user, or a hook, said in a request."""
        contents = json.loads(body)["body"]["contents"]
        parts = [part for one in contents if one["role"] == "user" for part in one["parts"]]
        return [part["text"] for part in parts if "text" in part]
