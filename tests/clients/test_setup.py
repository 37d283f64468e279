"""What setup writes, as the real clients take it: no complaint, and every hook is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from brimline.setup.command import Program
from brimline.setup.install import SetupOptions
from brimline.setup.plan import RECIPES, apply, plan
from brimline.testing.fake_model import Reply, Scenario
from brimline.transcripts.source import Places

from . import claude, codex, gemini
from .install import require
from .run import ClientRun, Place, run_client

pytestmark = [pytest.mark.clients, pytest.mark.slow]

RECORDER = """#!/bin/sh
cat > "$0.$3.$$"
"""
"""Stands for the compiled hook client: keeps what it is given. Its third word is the kind."""

THEIRS = "touch theirs"
OWN = "touch own-line"

TERMINAL = """
import glob, os, pty, select, sys, time
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
end = time.monotonic() + 60
while time.monotonic() < end and not glob.glob(sys.argv[1]):
    if select.select([terminal], [], [], 0.1)[0]:
        os.read(terminal, 65536)
os.kill(child, 9)
"""
"""Runs a command on a terminal until a file is there."""


class SetUp:
    """A scratch home in which an agent was set up, with a recorder for a hook client."""

    def __init__(self, root: Path, agent: str, text: str) -> None:
        self.place = Place(root)
        self.recorder = root / "with a space" / "brimline-hook"
        self.recorder.parent.mkdir(parents=True)
        self.recorder.write_text(RECORDER)
        self.recorder.chmod(0o755)
        self._places = Places(self.place.home, {})
        self._agent, self._state = agent, root / "state"
        self.file = RECIPES[agent].user(self._places)
        self.file.parent.mkdir(parents=True)
        self.file.write_text(text)
        self.change(remove=False)

    def change(self, remove: bool) -> None:
        """Set the agent up, or take it out."""
        fast, places = str(self.recorder), ("/no/hook.sock", "/no/spool")
        program = Program("/no/python", "/no/client.py", *places, fast)
        wish = SetupOptions(program, self._state, self.place.project, remove=remove)
        for change in plan([self._agent], self._places, wish):
            assert apply(change).problem is None

    def heard(self, kind: str = "hook") -> list[dict[str, Any]]:
        """What the recorder was given."""
        found = self.recorder.parent.glob(f"{self.recorder.name}.{kind}.*")
        return [json.loads(path.read_text()) for path in found]

    def events(self) -> set[str]:
        """The events at which our hook was run."""
        return {told["hook_event_name"] for told in self.heard()}


CLAUDE = {
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": THEIRS}]}]},
    "statusLine": {"type": "command", "command": OWN},
}


def without_complaint(made: SetUp, scenario: Scenario, *words: str) -> ClientRun:
    """A turn of Claude Code in whose log no setting is called wrong."""
    log = made.place.root / "debug.txt"
    run = claude.run_claude(scenario, made.place.root, *words, "--debug-file", str(log))
    said = log.read_text()
    assert str(made.file) in said
    assert "nvalid setting" not in said
    return run


def test_claude_runs_every_hook(tmp_path: Path) -> None:
    """Claude Code takes the file as it is, runs every hook of ours, and the user's own as before;
    then the file is given back."""
    text = json.dumps(CLAUDE, indent=4)
    made = SetUp(tmp_path, "claude", text)
    loop = Scenario(main=(claude.bash("echo hi"), Reply(text="Done.")))
    first = without_complaint(made, loop, "Go.")
    assert first.exit_code == 0, first.stderr
    assert (made.place.project / "theirs").exists()
    session = made.heard()[0]["session_id"]
    without_complaint(made, Scenario(), "/compact", "--resume", session)
    without_complaint(made, Scenario(otherwise=Reply(error="prompt_too_long")), "Go.")
    assert made.events() == set(RECIPES["claude"].events)
    made.change(remove=True)
    assert made.file.read_text() == text


def test_claude_runs_the_status_line(tmp_path: Path) -> None:
    """On a terminal our status line is run in the place of the user's own, by a shell."""
    made = SetUp(tmp_path, "claude", json.dumps(CLAUDE))
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-ant-dummy"], "rejected": []},
        "projects": {str(made.place.project): trusted},
    }
    (made.place.home / ".claude.json").write_text(json.dumps(state))
    pattern = f"{made.recorder}.statusline.*"
    command = [sys.executable, "-c", TERMINAL, pattern, require("claude"), "--model", claude.MODEL]
    run_client(
        "claude",
        command,
        made.place,
        Scenario(),
        environment=claude.ENVIRONMENT,
        transcripts=".claude/projects/**/*.json*",
    )
    assert made.heard("statusline")[0]["model"]["id"] == claude.MODEL
    assert not (made.place.project / "own-line").exists()


def test_codex_runs_the_hooks(tmp_path: Path) -> None:
    """Codex takes hooks.json without an error, and runs our hooks once they are trusted."""
    made = SetUp(tmp_path, "codex", '{"description": "mine", "hooks": {}}')
    command: list[str | Path] = [require("codex"), "exec", "--json", "--skip-git-repo-check"]
    command += ["--dangerously-bypass-hook-trust"]
    for setting in codex.SETTINGS:
        command += ["-c", setting]
    run = run_client(
        "codex",
        [*command, "Go."],
        made.place,
        Scenario(main=(codex.shell("echo hi"), Reply(text="Done."))),
        environment={"FAKE_KEY": "sk-dummy"},
        transcripts=".codex/sessions/**/rollout-*.jsonl",
    )
    assert run.exit_code == 0, run.stderr
    assert "failed to parse" not in run.stdout
    assert made.events() == set(RECIPES["codex"].events) - {"PreCompact", "PostCompact"}
    made.change(remove=True)
    assert made.file.read_text() == '{"description": "mine", "hooks": {}}'


def test_gemini_runs_the_hooks(tmp_path: Path) -> None:
    """Gemini CLI reads our hooks beside comments, and runs each."""
    text = "// mine\n" + json.dumps(gemini.SETTINGS, indent=2) + " // and mine\n"
    made = SetUp(tmp_path, "gemini", text)
    run = run_client(
        "gemini",
        [require("gemini"), "-p", "Go.", "--output-format", "stream-json", "--yolo"],
        made.place,
        Scenario(main=(gemini.shell("echo hi"), Reply(text="Done."))),
        environment=gemini.ENVIRONMENT,
        transcripts=".gemini/tmp/**/chats/**/*.json*",
    )
    assert run.exit_code == 0, run.stderr
    assert made.events() == set(RECIPES["gemini"].events)
    made.change(remove=True)
    assert made.file.read_text() == text
