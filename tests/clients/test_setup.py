"""The real clients accept what setup writes, and run every hook."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.hook_command import Program
from brimline.agents.transcripts.source import Places
from brimline.install.install import SetupOptions
from brimline.install.launcher import write_launcher
from brimline.install.plan import apply, plan
from brimline.testing.fake_model import Ramp, Reply, Scenario

from . import claude, codex, copilot, gemini, kimi, qwen
from .install import require
from .run import ClientRun, Place, run_client
from .scenes import SNAPSHOT

pytestmark = [pytest.mark.clients, pytest.mark.slow]

RECORDER = """#!/bin/sh
cat > "$0.part.$$" && mv "$0.part.$$" "$0.$3.$$"
"""
"""Replaces the compiled hook client: stores its input. The third argument is the kind."""

FAILING_TURN = """
{
    echo '{"type": "user", "message": {"role": "user", "content": "Go."}}'
    until grep -qs StopFailure "$0".hook.*; do sleep 0.05; done
} | "$@"
"""
"""Sends a prompt to a client and closes its input once the hook of the failed turn has run.

A client without further input ends at once and kills that hook: it does not wait for it.
"""

USER_HOOK = "touch user-hook"
USER_STATUS_LINE = "touch own-line"

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
"""Runs a command on a terminal until a file exists."""


class SetUp:
    """A scratch home with an installed agent, and a recorder as its hook client."""

    def __init__(self, root: Path, agent: str, text: str) -> None:
        self.place = Place(root)
        self.recorder = root / "with a space" / "brimline-hook"
        self.recorder.parent.mkdir(parents=True)
        self.recorder.write_text(RECORDER)
        self.recorder.chmod(0o755)
        self._places = Places(self.place.home, {})
        self._agent, self._state = agent, root / "with a space" / "state"
        self.file = get_agent(agent).install_spec.user_file(self._places)
        self.file.parent.mkdir(parents=True)
        self.file.write_text(text)
        self.change(remove=False)

    def change(self, remove: bool) -> None:
        """Run setup for the agent, or remove it."""
        places = str(self._state / "hook.sock"), str(self._state / "spool")
        program = Program("/no/python", "/no/client.py", *places, str(self.recorder))
        write_launcher(program)
        options = SetupOptions(program, self._state, self.place.project, remove=remove)
        for change in plan([self._agent], self._places, options):
            assert apply(change).reason is None

    def recorded(self, kind: str = "hook") -> list[dict[str, Any]]:
        """The inputs that the recorder stored."""
        files = self.recorder.parent.glob(f"{self.recorder.name}.{kind}.*")
        return [json.loads(path.read_text()) for path in files]

    def events(self) -> set[str]:
        """The events at which our hook was run."""
        return {payload["hook_event_name"] for payload in self.recorded()}


CLAUDE = {
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": USER_HOOK}]}]},
    "statusLine": {"type": "command", "command": USER_STATUS_LINE},
}


def run_without_warnings(installed: SetUp, scenario: Scenario, *words: str) -> ClientRun:
    """Run a turn of Claude Code whose log reports no invalid setting."""
    log = installed.place.root / "debug.txt"
    run = claude.run_claude(scenario, installed.place.root, *words, "--debug-file", str(log))
    log_text = log.read_text()
    assert str(installed.file) in log_text
    assert "nvalid setting" not in log_text
    return run


def test_claude_runs_every_hook(tmp_path: Path) -> None:
    """Claude Code accepts the file, runs our hooks and the user's own; `--remove` restores the
    file."""
    text = json.dumps(CLAUDE, indent=4)
    installed = SetUp(tmp_path, "claude", text)
    loop = Scenario(main=(claude.bash("echo hi"), Reply(text="Done.")))
    first = run_without_warnings(installed, loop, "Go.")
    assert first.exit_code == 0, first.stderr
    assert (installed.place.project / "user-hook").exists()
    session = installed.recorded()[0]["session_id"]
    run_without_warnings(installed, Scenario(), "/compact", "--resume", session)
    command = [require("claude"), "-p", "--input-format", "stream-json", "--model", claude.MODEL]
    run_client(
        "claude",
        ["sh", "-c", FAILING_TURN, installed.recorder, *command, *claude.STREAM],
        installed.place,
        Scenario(otherwise=Reply(error="prompt_too_long")),
        environment=claude.ENVIRONMENT,
        transcripts=claude.TRANSCRIPTS,
    )
    # A person chooses another model in test_tmux.py.
    events = set(get_agent("claude").install_spec.events) - {"PreModelSwitch"}
    assert installed.events() == events
    installed.change(remove=True)
    assert installed.file.read_text() == text


def test_claude_shows_no_error_if_the_installation_is_gone(tmp_path: Path) -> None:
    """The launcher stays in the state folder, and the turn goes on as without hooks."""
    installed = SetUp(tmp_path, "claude", json.dumps(CLAUDE))
    installed.recorder.unlink()
    loop = Scenario(main=(claude.bash("echo hi"), Reply(text="Done.")))
    run = run_without_warnings(installed, loop, "Go.", "--include-hook-events")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    responses = [line for line in lines if line.get("subtype") == "hook_response"]
    assert {line["hook_event"] for line in responses} >= {"UserPromptSubmit", "Stop"}
    assert {(line["exit_code"], line["outcome"], line["stderr"]) for line in responses} == {
        (0, "success", "")
    }
    assert (run.exit_code, lines[-1]["result"], run.stderr) == (0, "Done.", "")


def test_claude_runs_the_status_line(tmp_path: Path) -> None:
    """On a terminal a shell runs our status line instead of the user's own."""
    installed = SetUp(tmp_path, "claude", json.dumps(CLAUDE))
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-ant-dummy"], "rejected": []},
        "projects": {str(installed.place.project): trusted},
    }
    (installed.place.home / ".claude.json").write_text(json.dumps(state))
    pattern = f"{installed.recorder}.statusline.*"
    command = [sys.executable, "-c", TERMINAL, pattern, require("claude"), "--model", claude.MODEL]
    run_client(
        "claude",
        command,
        installed.place,
        Scenario(),
        environment=claude.ENVIRONMENT,
        transcripts=claude.TRANSCRIPTS,
    )
    assert installed.recorded("statusline")[0]["model"]["id"] == claude.MODEL
    assert not (installed.place.project / "own-line").exists()


def test_codex_runs_the_hooks(tmp_path: Path) -> None:
    """Codex accepts hooks.json and runs our hooks once they are trusted."""
    installed = SetUp(tmp_path, "codex", '{"description": "mine", "hooks": {}}')
    command: list[str | Path] = [require("codex"), "exec", "--json", "--skip-git-repo-check"]
    command += ["--dangerously-bypass-hook-trust"]
    for setting in codex.SETTINGS:
        command += ["-c", setting]
    run = run_client(
        "codex",
        [*command, "Go."],
        installed.place,
        Scenario(main=(codex.shell("echo hi"), Reply(text="Done."))),
        environment={"FAKE_KEY": "sk-dummy"},
        transcripts=".codex/sessions/**/rollout-*.jsonl",
    )
    assert run.exit_code == 0, run.stderr
    assert "failed to parse" not in run.stdout
    assert installed.events() == set(get_agent("codex").install_spec.events) - {
        "PreCompact",
        "PostCompact",
    }
    installed.change(remove=True)
    assert installed.file.read_text() == '{"description": "mine", "hooks": {}}'


def test_copilot_runs_the_hooks(tmp_path: Path) -> None:
    """In a file next to others; a subagent's hooks have its id. Without ours it is as before."""
    text = '{"version": 1, "hooks": {}}'
    installed = SetUp(tmp_path, "copilot", text)
    steps = (copilot.task("Look around."), *(copilot.bash(f"echo {n}") for n in range(3)))
    copilot.run_copilot(
        Scenario(
            main=(*steps, Reply(text="Done.")),
            subagent=(copilot.bash("echo sub"), Reply(text="Done.")),
            ramp=Ramp(start=60_000, step=40_000, after_compaction=500),
        ),
        tmp_path,
        "Go.",
    )
    assert installed.events() == {*get_agent("copilot").install_spec.events}
    subagents = {each["hook_event_name"] for each in installed.recorded() if "agent_id" in each}
    assert subagents >= {"UserPromptSubmit", "PostToolUse", "Stop"}
    assert all("parent_agent_id" in each for each in installed.recorded() if "agent_id" in each)
    installed.change(remove=True)
    assert installed.file.read_text() == text


def test_gemini_runs_the_hooks(tmp_path: Path) -> None:
    """Gemini CLI accepts our hooks in a file with comments, and runs each."""
    text = "// mine\n" + json.dumps(gemini.SETTINGS, indent=2) + " // and mine\n"
    installed = SetUp(tmp_path, "gemini", text)
    run = run_client(
        "gemini",
        [require("gemini"), "-p", "Go.", "--output-format", "stream-json", "--yolo"],
        installed.place,
        Scenario(main=(gemini.shell("echo hi"), Reply(text="Done."))),
        environment=gemini.ENVIRONMENT,
        transcripts=".gemini/tmp/**/chats/**/*.json*",
    )
    assert run.exit_code == 0, run.stderr
    assert installed.events() == set(get_agent("gemini").install_spec.events)
    installed.change(remove=True)
    assert installed.file.read_text() == text


def test_qwen_runs_the_hooks(tmp_path: Path) -> None:
    """Also in a file with comments, which is as before when the hooks are removed."""
    window = {"model": {"generationConfig": {"contextWindowSize": 131_072}}}
    # Without its version the client adds that to the file.
    settings = qwen.SETTINGS | window | {"$version": 4}
    text = "// mine\n" + json.dumps(settings, indent=2) + " // and mine\n"
    installed = SetUp(tmp_path, "qwen", text)
    steps = (qwen.shell("echo hi"), qwen.delegate("Look around."), qwen.shell("echo more"))
    qwen.run_qwen(
        Scenario(
            main=(*steps, Reply(text="Done.")),
            subagent=(qwen.shell("echo sub"), Reply(text="Done.")),
            ramp=Ramp(start=50_000, step=20_000, after_compaction=500),
            summary=SNAPSHOT,
        ),
        tmp_path,
        "Go.",
    )
    # 0.24.4 runs SessionEnd in interactive sessions alone.
    others = {"SessionEnd", "StopFailure"}
    assert installed.events() == {*get_agent("qwen").install_spec.events} - others
    subagents = {each["hook_event_name"] for each in installed.recorded() if "agent_id" in each}
    assert subagents == {"PostToolBatch", "SubagentStop"}
    installed.change(remove=True)
    assert installed.file.read_text() == text


def test_kimi_runs_the_hooks(tmp_path: Path) -> None:
    """Next to the user's own hook, in tables at the end; the client leaves the file as it is."""
    own = f'[[hooks]]\nevent = "Stop"\ncommand = "{USER_HOOK}"\n'
    text = f"# mine\n{own}\n[loop_control]\nmax_steps_per_turn = 50"
    installed = SetUp(tmp_path, "kimi", text)
    written = installed.file.read_text()
    steps = (kimi.bash("echo hi"), kimi.delegate("Look around."), kimi.bash("echo more"))
    kimi.run_kimi(
        Scenario(
            main=(*steps, Reply(text="Done.")), subagent=(kimi.bash("echo"), Reply(text="Done."))
        ),
        tmp_path,
        "Go.",
    )
    # Headless runs of 2.1.0 have no SessionEnd.
    assert installed.events() == {*get_agent("kimi").install_spec.events} - {"SessionEnd"}
    stops = [each for each in installed.recorded() if each["hook_event_name"] == "Stop"]
    assert len(stops) == 2  # of the subagent and of the session: they look the same
    assert stops[0] == stops[1]
    assert (installed.place.project / "user-hook").exists()
    assert installed.file.read_text() == written
    installed.change(remove=True)
    assert installed.file.read_text() == text
