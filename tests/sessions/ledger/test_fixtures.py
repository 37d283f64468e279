"""Every recorded session of every client adds up, call by call."""

from pathlib import Path

import pytest

from brimline.agents import agent_names
from brimline.agents.transcripts.source import Places
from brimline.sessions.files import SessionFiles, find_transcripts, group_by_session
from brimline.sessions.ledger.explain import explain
from brimline.sessions.ledger.session_ledger import read_ledgers

FIXTURES = Path(__file__).parents[2] / "fixtures"


def sessions() -> list[tuple[str, SessionFiles]]:
    found: list[tuple[str, SessionFiles]] = []
    for home in sorted(FIXTURES.glob("*/*/home")):
        places = Places(home=home, env={})
        for files in group_by_session(find_transcripts(places, agent_names())):
            found.append((f"{home.parent.parent.name}/{home.parent.name}", files))
    return found


@pytest.mark.parametrize(("name", "files"), sessions())
def test_fixture_adds_up(name: str, files: SessionFiles) -> None:
    ledgers = read_ledgers(files, Places(home=Path("/nowhere"), env={}))
    explained = explain(ledgers, series=True)
    assert explained.threads, name
    for thread in explained.threads:
        for call in thread.series or ():
            assert sum(call.categories) + call.unexplained == call.sent
        total = sum(category.tokens for category in thread.categories)
        assert total + thread.unexplained == (thread.sent or 0)
