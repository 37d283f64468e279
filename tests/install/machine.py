"""A user's machine with Brimline, whose agents are set up."""

import json
from pathlib import Path
from typing import Any

import msgspec

from brimline.agents.hook_command import HttpTarget, Program
from brimline.agents.transcripts.source import Places
from brimline.install.install import SetupOptions
from brimline.install.plan import Change, apply, plan

HOOK = "/state/brimline-hook"
FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "kimi": ".kimi-code/config.toml",
    "kilo": ".config/kilo/plugins/brimline.js",
    "opencode": ".config/opencode/plugins/brimline.js",
    "pi": ".pi/agent/extensions/brimline.js",
}
PROJECT_FILES = {"claude": ".claude/settings.local.json"}
TARGET = HttpTarget("http://127.0.0.1:8421", "token-of-hooks")


def program(state: str = "/state") -> Program:
    """The hook client, whose launcher is in this state folder."""
    return Program("/usr/bin/python3", "/opt/client.py", f"{state}/hook.sock", f"{state}/spool")


class Machine:
    """A home, a project, and the state folder."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.home, self.project = root / "home", root / "project"
        for folder in (self.home, self.project):
            folder.mkdir(parents=True, exist_ok=True)
        self.places = Places(self.home, {})
        self.options = SetupOptions(
            program=program(), state=root / "state", cwd=self.project, http_target=TARGET, **options
        )

    def file(self, agent: str = "claude") -> Path:
        """The settings file that is changed."""
        if self.options.scope == "user":
            return self.home / FILES[agent]
        return self.project / PROJECT_FILES.get(agent, FILES[agent])

    def write(self, text: str | bytes, agent: str = "claude") -> Path:
        """Write an agent's settings."""
        path = self.file(agent)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
        return path

    def plan(self, agent: str = "claude", **options: Any) -> Change:
        [change] = plan([agent], self.places, msgspec.structs.replace(self.options, **options))
        return change

    def set_up(self, agent: str = "claude", **options: Any) -> Change:
        return apply(self.plan(agent, **options))

    def remove(self, agent: str = "claude", **options: Any) -> Change:
        return apply(self.plan(agent, remove=True, **options))

    def settings(self, agent: str = "claude") -> Any:
        return json.loads(self.file(agent).read_text("utf-8-sig"))

    def folder_names(self, agent: str = "claude") -> list[str]:
        """The names of the files beside the settings."""
        return sorted(path.name for path in self.file(agent).parent.iterdir())

    def hooks(self, agent: str = "claude") -> dict[str, list[Any]]:
        """Every hook by its event, whatever its group."""
        groups = self.settings(agent)["hooks"]
        return {
            event: [hook for group in groups[event] for hook in group["hooks"]] for event in groups
        }
