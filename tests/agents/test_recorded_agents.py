"""What every agent's recorded sessions give: a draft, and a context that adds up."""

import subprocess
import sys
from pathlib import Path

import pytest

from brimline.agents import agent_names, get_agent
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.events import MAIN
from brimline.handoff import draft_handoff, iter_records
from brimline.sessions.ledger.session_ledger import read_ledger
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
