"""Copilot CLI, headless."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brimline.testing.fake_model import Reply, Scenario

from ..copilot import bash, run_copilot, task
from ..run import ClientRun, Place
from .base import MonitoredClient

OWN = '{"version": 1, "hooks": {}}\n'  # the user's own hooks
SUMMARISED = "Some of the conversation history has been summarized"


def _slow(command: str) -> Reply:
    """A command that takes longer than the client needs to write to its file, 0.1 s."""
    return bash(f"sleep 0.3; {command}")


def _last_sent(timeline: Any) -> int | None:
    call = timeline["calls"][-1] if timeline["calls"] else None
    return call and call["input"] + call["cache_read"] + call["cache_write"]


class Copilot(MonitoredClient):
    """Copilot CLI, which compacts in the background while its turn goes on."""

    agent = "copilot"
    shares_home = True
    window = 168_000
    own_prompt = 0.05
    session_word = '"$COPILOT_AGENT_SESSION_ID"'
    compaction_ramp = (0.35, 0.15, 0.35)
    compaction_steps = 7
    handoff_counts = (0, 1, 1, 1)
    subagent_script = (task("Look around."),), (_slow("echo sub"), Reply(text="Nothing."))
    shell = staticmethod(_slow)

    def write_settings(self) -> Path:
        """Write a file of hooks next to that of Brimline."""
        file = Place(self.folder).home / ".copilot/hooks/own.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(OWN)
        return file

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run one turn."""
        given = (*(["--continue"] if again else []), *arguments)
        return run_copilot(scenario, self.folder, "Go.", *given, environment=environment)

    def after_compaction(self, run: ClientRun) -> list[str]:
        """The requests with the summary: the one for it is made beside others."""
        bodies = zip(self.conversation(run), (one.thread for one in run.billed), strict=True)
        return [body for body, thread in bodies if thread == "main" and SUMMARISED in body]

    def timeline(self, run: ClientRun) -> Any:
        """The daemon's timeline, once it has every call of the run."""
        path = f"/v1/sessions/{self.session_of(run)}/timeline"
        last = run.of("main")[-1].usage
        sent = last.input + last.cache_read + last.cache_write
        return self.daemon.until(path, lambda timeline: _last_sent(timeline) == sent)

    def session_of(self, run: ClientRun) -> str:
        """The session id in the last line of the stream."""
        return json.loads(run.stdout.splitlines()[-1])["sessionId"]
