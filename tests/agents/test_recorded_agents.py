"""What every agent's recorded sessions give: a draft, and a context that adds up."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from brimline.agents import agent_names, get_agent
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.events import MAIN
from brimline.handoff import draft_handoff, iter_records
from brimline.sessions.ledger.session_ledger import read_ledger
from preloaded import run_brimline
from run.homes import home_of

ROOT = Path(__file__).parent.parent.parent


def recorded(agent: str, folder: Path) -> tuple[Places, Transcript]:
    """A home with the session of two commands, and the transcript of its main thread."""
    places = Places(home_of(agent, "tool-loop", folder), {})
    (main,) = [one for one in get_agent(agent).transcripts(places) if one.thread == MAIN]
    return places, main


@pytest.mark.parametrize("agent", agent_names())
def test_agent_has_no_draft(agent: str, tmp_path: Path) -> None:
    """The draft has the request, what was done for it, and the last reply."""
    _, main = recorded(agent, tmp_path)
    text = draft_handoff(iter_records(main.path, main.session), agent)
    assert "## Current request\n> Go.\n" in text
    assert "- ran `echo one`, `echo two`" in text
    assert "> All done.\n" in text


@pytest.mark.parametrize("agent", agent_names())
def test_context_does_not_add_up(agent: str, tmp_path: Path) -> None:
    """The pieces, and what is unexplained, add up to what the last call sent.

    The texts of recordings are cut, so that a part of their tokens is unexplained.
    """
    places, main = recorded(agent, tmp_path)
    (thread,) = read_ledger(main, places).threads
    assert thread.sent is not None
    assert sum(entry.tokens for entry in thread.entries) + thread.unexplained == thread.sent
    assert {"user words", "tool results"} <= {entry.part.category for entry in thread.entries}


@pytest.mark.slow
def test_table_of_the_docs_is_stale() -> None:
    """Each cell of docs/guides/agents.md follows from an agent's code and from a test."""
    command = [sys.executable, "scripts/agent_table.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.fixture
def every_agent(tmp_path: Path) -> dict[str, str]:
    """The environment of a home with a session of each agent."""
    home = tmp_path / "home"
    for agent in agent_names():
        recorded_home = home_of(agent, "tool-loop", tmp_path / agent)
        shutil.copytree(recorded_home, home, dirs_exist_ok=True)
    return {"HOME": str(home), "LANG": "C.UTF-8", "TZ": "UTC"}


@pytest.mark.parametrize("columns", [80, 120])
def test_sessions_of_many_agents_cannot_be_told_apart(
    columns: int, every_agent: dict[str, str]
) -> None:
    """Each line has its agent, also in a terminal of 80 columns."""
    env = every_agent | {"COLUMNS": str(columns)}
    result = run_brimline(("status", "--all"), env=env, timeout=30)
    head, *lines, summary = result.stdout.decode().splitlines()
    assert "agent" in head.split()
    shown = [line[head.index("agent") :].split()[0] for line in lines if line]
    assert sorted(shown) == sorted(agent_names())
    assert max(map(len, (head, *lines))) <= columns
    assert summary == f"{len(agent_names())} sessions, none near their limit"


def test_report_by_agent_repeats_each_name(every_agent: dict[str, str]) -> None:
    env = every_agent | {"COLUMNS": "100"}
    result = run_brimline(("report", "--by", "agent"), env=env, timeout=30)
    head, *lines = result.stdout.decode().splitlines()
    assert head.split()[:3] == ["agent", "sessions", "calls"]
    assert [line.split()[0] for line in lines[: len(agent_names())]] == sorted(agent_names())


def test_names_of_checks_exceed_their_column(every_agent: dict[str, str]) -> None:
    """`doctor` aligns its findings, however long an agent's name is."""
    env = every_agent | {"COLUMNS": "100", "XDG_STATE_HOME": every_agent["HOME"]}
    result = run_brimline(("doctor",), env=env, timeout=30)
    lines = result.stdout.decode().splitlines()
    place = next(line for line in lines if "brimline" in line).index("0.")
    assert {line[place - 1] for line in lines} == {" "}
    assert " " not in {line[place] for line in lines}
