"""Gemini CLI, headless.

By default it compresses at half of its window, so levels are tested with a threshold that is never
reached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from brimline.testing.fake_model import Reply, Scenario

from ..gemini import complete, invoke, run_gemini, shell, write_settings
from ..run import ClientRun, Place
from ..scenes import SESSION, SNAPSHOT
from .base import MonitoredClient
from .script import hand_over

AGAIN = ("--resume", "latest")
NEW = ("--session-id", SESSION)


class Gemini(MonitoredClient):
    """Gemini CLI, with the threshold of its compressions."""

    agent = "gemini"
    starts_slowly = True
    endpoint = ":streamGenerateContent"
    window = 1_048_576
    session_word = SESSION
    last_step = 0
    compaction_steps = 3
    handoff_counts = (0, 1, 1)
    levels = ((0, 65.0), (1, 65.0))
    level_scale = 0.6  # by default it compacts at half of its window; its daemon has another home
    shell = staticmethod(shell)
    subagent_script = (
        (invoke("Look around."),),
        (shell("echo sub"), shell("echo on"), complete("Nothing.")),
    )
    threshold = 0.99

    def write_settings(self) -> Path:
        """Write settings.json with the threshold."""
        model = {"model": {"compressionThreshold": self.threshold}}
        return write_settings(Place(self.folder), model)

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run one turn with the current settings."""
        which = AGAIN if again else NEW
        return run_gemini(scenario, self.folder, "Go.", *which, *arguments, environment=environment)

    def record_hook(self, event: str) -> Path:
        """Add a hook that writes its input to files; returns their folder."""
        folder = self.folder / event
        folder.mkdir(parents=True)
        settings = json.loads(self.settings.read_text())
        hook = {"type": "command", "command": f"cat > {folder}/$(date +%s%N)", "timeout": 2_000}
        settings["hooks"][event] = [{"hooks": [hook]}]
        self.settings.write_text(json.dumps(settings))
        return folder

    def compact(self, daemon_requests: Mapping[int, str] | None = None) -> ClientRun:
        """Hand over in one turn; the next one, which is returned, compresses after a request."""
        return self.compress(
            hand_over(self.shell, "--session", SESSION), daemon_requests=daemon_requests
        )

    def compress(
        self, *before: Reply, daemon_requests: Mapping[int, str] | None = None
    ) -> ClientRun:
        """The same with these replies in the first turn."""
        self.threshold = 0.6
        self.write_settings()
        self.set_up()
        self.run(self.steps(0, self.ramp(0.5, 0.02), *before))
        main, ramp = self.loop(self.compaction_steps, daemon_requests), self.ramp(0.61, after=0.5)
        return self.run(Scenario(main=main, ramp=ramp, summary=SNAPSHOT))

    def conversation(self, run: ClientRun) -> list[str]:
        """Every request without repeated tool results: `--resume` sends the last one twice."""
        return [_without_repeats(line) for line in super().conversation(run)]

    def requests(self, run: ClientRun) -> list[str]:
        """All requests to the endpoint: summaries use another one."""
        return self.conversation(run)

    def main_requests(self, run: ClientRun) -> list[str]:
        """The requests that start like the session."""
        return [body for body in self.conversation(run) if "<session_context>" in body]

    def after_compaction(self, run: ClientRun) -> list[str]:
        """The requests of the second turn without the first."""
        return self.conversation(run)[1:]

    def user_texts(self, body: str) -> list[str]:
        """The texts of the user, or of a hook, in a request."""
        contents = json.loads(body)["body"]["contents"]
        parts = [part for one in contents if one["role"] == "user" for part in one["parts"]]
        return [part["text"] for part in parts if "text" in part]


def _without_repeats(line: str) -> str:
    request = json.loads(line)
    for content in request["body"]["contents"]:
        parts = {json.dumps(part): part for part in content["parts"]}
        content["parts"] = list(parts.values())
    return json.dumps(request)
