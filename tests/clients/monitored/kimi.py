"""Kimi Code, headless."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brimline.testing.fake_model import Reply, Scenario

from ..kimi import bash, delegate, run_kimi
from ..run import ClientRun, Place
from .base import MonitoredClient

OWN = """# mine
[[hooks]]
event = "Stop"
command = "true"

[loop_control]
max_steps_per_turn = 50
"""


class Kimi(MonitoredClient):
    """Kimi Code, which takes messages when a turn begins or ends, and never within one.

    The daemon finds its files below the home folder.
    """

    agent = "kimi"
    starts_slowly = True
    shares_home = True
    endpoint = "/chat/completions"
    window = 1_000_000
    ends_in_headless_runs = False  # 2.1.0 runs no SessionEnd in them
    subagent_script = ((delegate("Look around."),), (bash("echo sub"), Reply(text="Nothing.")))
    shell = staticmethod(bash)

    def write_settings(self) -> Path:
        """Write config.toml as the user has it, with a hook of the user's own."""
        file = Place(self.folder).home / ".kimi-code/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(OWN)
        return file

    def files(self) -> dict[str, str]:
        """The settings and their backup: the client writes other files next to them."""
        return {file.name: file.read_text() for file in self.settings.parent.glob("config.toml*")}

    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run one turn."""
        which = ["--continue"] if again else []
        size = {"KIMI_MODEL_MAX_CONTEXT_SIZE": str(self.window)}
        return run_kimi(
            scenario, self.folder, "Go.", *which, *arguments, environment=size | dict(environment)
        )

    def session_of(self, run: ClientRun) -> str:
        """The session id in the last line of the stream."""
        return json.loads(run.stdout.splitlines()[-1])["session_id"]

    def user_texts(self, body: str) -> list[str]:
        """The texts of the user, or of a hook, in a request."""
        messages = [one for one in json.loads(body)["body"]["messages"] if one["role"] == "user"]
        return [text for one in messages for text in _texts_of(one["content"])]

    def timeline(self, run: ClientRun) -> Any:
        """The daemon's timeline, once it has the last call of the run."""
        path = f"/v1/sessions/{self.session_of(run)}/timeline"
        output, usage = run.of("main")[-1].usage.output, run.of("main")[-1].usage
        sent = usage.input + usage.cache_read + usage.cache_write

        def has_last_call(timeline: Any) -> bool:
            calls = timeline["calls"][-1:]
            return any(_sent(call) == sent and call["output"] == output for call in calls)

        return self.daemon.until(path, has_last_call)


def _sent(call: Any) -> int:
    return call["input"] + call["cache_read"] + call["cache_write"]


def _texts_of(content: str | list[dict[str, str]]) -> list[str]:
    return [content] if isinstance(content, str) else [part["text"] for part in content]
