"""The daemon answers when a FIFO, device, folder or link is in place of a file."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .running import Running

pytestmark = pytest.mark.slow

AGENTS = ("claude", "codex", "copilot", "gemini", "pi", "opencode")
PROJECT_FILES = (
    ".brimline.toml",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".pi/settings.json",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
)
HOME_FILES = (
    ".claude.json",
    ".claude/settings.json",
    ".claude/projects/p/session.jsonl",
    ".claude/projects/p/agent-old.jsonl",
    ".claude/projects/p/session/subagents/agent-a1.jsonl",
    ".codex/config.toml",
    ".codex/sessions/rollout-1.jsonl",
    ".copilot/session-state/copilot-1/events.jsonl",
    ".gemini/settings.json",
    ".gemini/projects.json",
    ".gemini/tmp/p/.project_root",
    ".gemini/tmp/p/chats/session-1.json",
    ".pi/agent/settings.json",
    ".pi/agent/models.json",
    ".pi/agent/sessions/p/1_s.jsonl",
    ".config/opencode/opencode.json",
    ".local/share/opencode/opencode.db",
    ".local/share/opencode/storage/session/p/ses_1.json",
    ".cache/brimline/again",
    ".cache/brimline/state",
)
# Above the limits of settings, lines and messages; the file is sparse.
TOO_LARGE_BYTES = 33 << 20


def make_sparse_file(path: Path) -> None:
    """Make a file larger than the limit of any file that is read."""
    with path.open("wb") as file:
        file.truncate(TOO_LARGE_BYTES)


KINDS: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "too large": make_sparse_file,
    "dangling link": lambda path: path.symlink_to("/nowhere/at/all"),
    "link loop": lambda path: path.symlink_to(path),
    "unreadable": lambda path: path.touch(mode=0),
    "link to a fifo": lambda path: (os.mkfifo(f"{path}.fifo"), path.symlink_to(f"{path}.fifo"))[1],
}


class Scene:
    """A daemon, home and project in which every file is of one special kind."""

    def __init__(self, folder: Path, make: Callable[[Path], None]) -> None:
        self.daemon = Running(folder)
        self.project = folder / "project"
        self.sound_project = folder / "sound"
        self.sound_project.mkdir()
        for place, names in ((self.project, PROJECT_FILES), (self.daemon.home, HOME_FILES)):
            for name in names:
                path = place / name
                path.parent.mkdir(parents=True, exist_ok=True)
                make(path)

    def hook(self, agent: str, event: str, session: str, **more: Any) -> str:
        """Return the reply to a hook of an agent in the project."""
        hook_input = {
            "session_id": session,
            "hook_event_name": event,
            "cwd": str(self.project),
            **more,
        }
        return self.daemon.ask(json.dumps(hook_input).encode(), agent=agent)

    def check_daemon(self) -> None:
        """The daemon answers and delivers a message with a hook."""
        assert self.daemon.get("/healthz")
        self.daemon.post("/v1/sessions/sound/messages", {"text": "still here"})
        reply = self.hook("claude", "UserPromptSubmit", "sound", cwd=str(self.sound_project))
        assert "still here" in reply


@pytest.fixture(params=KINDS)
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A daemon among files of one kind, not started yet."""
    special_scene = Scene(tmp_path, KINDS[request.param])
    yield special_scene
    special_scene.daemon.close()


def test_hooks_of_every_agent_are_answered_among_special_files(scene: Scene) -> None:
    daemon = scene.daemon
    daemon.start()
    paths = {agent: str(daemon.home / HOME_FILES[place]) for agent, place in TRANSCRIPTS.items()}
    for agent in AGENTS:
        for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact"):
            scene.hook(agent, event, f"{agent}-1", transcript_path=paths[agent], tool_name="t")
    scene.hook(
        "claude", "SubagentStop", "claude-1", transcript_path=paths["claude"], agent_id="a1",
        agent_transcript_path=str(daemon.home / HOME_FILES[4]),
    )  # fmt: skip
    scene.hook("claude", "SessionStart", "claude-1", source="compact")
    scene.hook("claude", "UserPromptSubmit", "nul", cwd="a\0b", transcript_path="c\0d")
    scene.check_daemon()
    known = {view["session"]["id"] for view in daemon.get("/v1/sessions")}
    assert known >= {"nul", *(f"{agent}-1" for agent in AGENTS)}
    assert daemon.stop() == 0


TRANSCRIPTS = {"claude": 2, "codex": 6, "copilot": 7, "gemini": 11, "pi": 14, "opencode": 16}


def test_handoff_of_a_special_file_is_rejected(scene: Scene) -> None:
    scene.daemon.start()
    path = str(scene.project / PROJECT_FILES[0])
    body = {"path": path, "author": "agent"}
    code, reply = scene.daemon.over_unix("POST", "/v1/sessions/s1/handoff", body)
    assert code == 422
    assert path in reply["error"]
    scene.check_daemon()


def test_commands_end_without_a_traceback_among_special_files(scene: Scene) -> None:
    path = str(scene.daemon.home / HOME_FILES[2])
    for words in (("status", "--all"), ("report",), ("windows",), ("doctor",), ("inspect", path)):
        result = scene.daemon.command(*words)
        assert result.returncode in (0, 1, 2), words
        assert "Traceback" not in result.stderr, words
        is_read = "no model call in it" in result.stdout
        assert path not in words or is_read or path in result.stderr
