"""The daemon answers, whatever lies in place of a file: a FIFO, a device, a folder, a link."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .running import Running

pytestmark = pytest.mark.slow

AGENTS = ("claude", "codex", "gemini", "pi", "opencode")
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
TOO_LARGE_BYTES = 33 << 20
"""More than the limit of settings, of a line and of a message; it takes no room on the disk."""


def make_sparse_file(path: Path) -> None:
    """A file larger than what is read of any."""
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
    """A daemon, a home folder and a project in which every file is something else."""

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
        """What a hook of an agent in the project is answered."""
        told = {"session_id": session, "hook_event_name": event, "cwd": str(self.project), **more}
        return self.daemon.ask(json.dumps(told).encode(), agent=agent)

    def check_daemon(self) -> None:
        """The daemon answers, and brings a message with a hook."""
        assert self.daemon.get("/healthz")
        self.daemon.post("/v1/sessions/sound/messages", {"text": "still here"})
        said = self.hook("claude", "UserPromptSubmit", "sound", cwd=str(self.sound_project))
        assert "still here" in said


@pytest.fixture(params=KINDS)
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A daemon, not started yet, among files of one kind."""
    made = Scene(tmp_path, KINDS[request.param])
    yield made
    made.daemon.close()


def test_daemon_answers_whatever_lies_in_a_files_place(scene: Scene) -> None:
    """Hooks of every agent are answered in such a project, with such transcripts and handoffs."""
    daemon = scene.daemon
    daemon.start()
    paths = {
        agent: str(daemon.home / name) for agent, name in zip(AGENTS, TRANSCRIPTS, strict=True)
    }
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


TRANSCRIPTS = (HOME_FILES[2], HOME_FILES[6], HOME_FILES[10], HOME_FILES[13], HOME_FILES[15])


def test_handoff_of_anything_but_a_file_is_refused(scene: Scene) -> None:
    """The path of a document is refused with a reason, and the daemon goes on."""
    scene.daemon.start()
    path = str(scene.project / PROJECT_FILES[0])
    body = {"path": path, "author": "agent"}
    code, said = scene.daemon.over_unix("POST", "/v1/sessions/s1/handoff", body)
    assert code == 422
    assert path in said["error"]
    scene.check_daemon()


def test_commands_end_whatever_lies_in_a_files_place(scene: Scene) -> None:
    """A command ends, with what it could read or a reason, and with no traceback."""
    path = str(scene.daemon.home / HOME_FILES[2])
    for words in (("status", "--all"), ("report",), ("windows",), ("doctor",), ("inspect", path)):
        done = scene.daemon.command(*words)
        assert done.returncode in (0, 1, 2), words
        assert "Traceback" not in done.stderr, words
        assert path not in words or path in done.stderr
