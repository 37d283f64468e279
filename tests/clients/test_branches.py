"""The git branch of each call, as the real clients record it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from brimline.agents import source
from brimline.agents.transcripts.source import Places
from brimline.context.events import Call
from brimline.testing.fake_model import Reply, Scenario

from . import claude, codex, opencode
from .run import ClientRun, Place

pytestmark = pytest.mark.clients

SWITCH = "git switch -c feature/x"
DONE = Reply(text="All done.")
GIT_USER = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The folder of a client whose project is a repository on the branch `main`."""
    place = Place(tmp_path)
    place.make()
    for command in (
        ("init", "--quiet", "--initial-branch", "main"),
        (*GIT_USER, "commit", "--quiet", "--allow-empty", "--message", "Begin"),
    ):
        subprocess.run(["git", *command], cwd=place.project, check=True)
    return tmp_path


def branches_of(run: ClientRun) -> list[str | None]:
    """The branch of each call, in order."""
    reader = source(run.client)
    found = reader.transcripts(Places(run.home, {}))
    calls = {e.id: e for each in found for e in reader.read(each) if isinstance(e, Call)}
    return [call.branch for call in sorted(calls.values(), key=lambda call: call.at or 0.0)]


def test_claude_code_records_the_branch_of_each_call(repository: Path) -> None:
    """It notices a change within a second or two."""
    scenario = Scenario(main=(claude.bash(f"{SWITCH} && sleep 5"), claude.bash("echo two"), DONE))
    run = claude.run_claude(scenario, repository, "Go.")
    assert branches_of(run) == ["main", "feature/x", "feature/x"]


def test_codex_records_the_branch_at_the_start_of_a_session(repository: Path) -> None:
    """Not a change, nor that of a resume; a subagent has a session of its own."""
    subagent = (codex.spawn("Look around."), codex.wait(), codex.shell(SWITCH), DONE)
    codex.run_codex(Scenario(main=subagent, subagent=(DONE,)), repository, "Go.")
    run = codex.run_codex(Scenario(main=(DONE,)), repository, "Go on.", resume=True)
    assert branches_of(run) == ["main"] * 6


def test_opencode_records_no_branch_outside_of_a_workspace(repository: Path) -> None:
    run = opencode.run_opencode(Scenario(main=(DONE,)), repository, "Go.")
    assert branches_of(run) == [None]
