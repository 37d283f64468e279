"""Titles: the client's own, else the first words of the first prompt."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from brimline.agents import agent_names
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.events import SessionSeen
from brimline.context.tracker import Session, fold
from brimline.context.tracker.session_fold import MAX_TITLE_CHARS, shorten_title
from brimline.context.window import NO_OVERRIDES
from brimline.sessions import index
from brimline.sessions.files import PROMPT_SEARCH_BYTES, find_transcripts, with_title
from brimline.sessions.status import survey_sessions
from monitor.agent import Agent

from .machine import Machine, call, packed, user_record

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the login", "Fix the login"),
        ("  Fix\n\tthe \x1b[31mlogin\x07\u202e ", "Fix the [31mlogin"),
        ("", None),
        (" \n\x00", None),
        ("word " * 40, "word " * 15 + "word…"),
        ("x" * 200, "x" * 79 + "…"),
        ("see https://" + "x" * 200, "see https://" + "x" * 67 + "…"),
    ],
)
def test_title_is_one_line_that_ends_with_a_word(text: str, title: str | None) -> None:
    assert shorten_title(text) == title
    assert len(title or "") <= MAX_TITLE_CHARS


def test_title_of_any_source_is_shortened_and_an_empty_one_ignored() -> None:
    session = fold(Session(), [SessionSeen(title="one\ntwo"), SessionSeen(title=" ")])
    assert session.title == "one two"


def recorded_home(agent: str, root: Path) -> Path:
    """A recorded home of an agent in which no session has a title of the client."""
    recorded = sorted(FIXTURES.glob(f"{agent}/*/home"))[0]
    for path in recorded.rglob("*"):
        target = root / path.relative_to(recorded)
        if path.suffix == ".sql":
            target.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(target.with_suffix(".db"))) as database:
                database.executescript(path.read_text("utf-8"))
                if agent != "goose":  # whose recorded sessions have none
                    untitled = "New session - 2026-11-17T03:04:05Z"
                    database.execute("UPDATE session SET title = ?", (untitled,))
                    database.commit()
        elif path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return root


@pytest.mark.parametrize("agent", agent_names())
def test_first_prompt_is_the_title_of_every_agents_session(agent: str, tmp_path: Path) -> None:
    places = Places(recorded_home(agent, tmp_path / "home"), {})
    for _ in range(2):  # from the files, then from the index
        survey = survey_sessions(places, [agent], None, NO_OVERRIDES, tmp_path / "cache")
        assert [session.title for session in survey.sessions] == ["Go."]


def title_of(machine: Machine) -> str | None:
    survey = survey_sessions(machine.places, ["claude"], None, NO_OVERRIDES, machine.cache)
    return next(session.title for session in survey.sessions if session.session == "s1")


AI_TITLE = packed({"type": "ai-title", "aiTitle": "Fix the login", "sessionId": "s1"})
OWN_TITLE = packed({"type": "custom-title", "customTitle": "Login", "sessionId": "s1"})
SUMMARY = packed({"type": "summary", "summary": "An older title", "leafUuid": "u1"})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([], "Why does it fail?"),
        ([SUMMARY], "An older title"),
        ([AI_TITLE, SUMMARY], "Fix the login"),
        ([OWN_TITLE, AI_TITLE, SUMMARY], "Login"),
        ([AI_TITLE, OWN_TITLE, AI_TITLE], "Login"),
    ],
)
@pytest.mark.parametrize("tail_only", [False, True])
def test_client_title_of_claude_code_wins(
    machine: Machine,
    records: list[bytes],
    title: str,
    tail_only: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = (user_record("Why does it fail?"), call("m1"), *records, call("m2", second=9))
    machine.session("s1", *lines)
    if tail_only:
        monkeypatch.setattr(index, "TAILS_ABOVE_BYTES", 0)
    assert title_of(machine) == title


def test_later_title_of_the_client_replaces_the_first_prompt(machine: Machine) -> None:
    machine.session("s1", user_record("Why?"), call("m1"))
    assert title_of(machine) == "Why?"
    machine.session("s1", user_record("Why?"), call("m1"), AI_TITLE)
    assert title_of(machine) == "Fix the login"


def test_credentials_in_the_first_prompt_are_not_in_the_title(machine: Machine) -> None:
    machine.session("s1", user_record("use password=Zq8xV3nT7pLw2Rb for the db"), call("m1"))
    title = title_of(machine)
    assert title is not None
    assert title.startswith("use password=***")


def test_text_of_the_client_and_of_subagents_is_no_first_prompt(machine: Machine) -> None:
    added = "<system-reminder>Be short.</system-reminder>"
    machine.session("s1", user_record(added), user_record("Why?"), call("m1"))
    machine.subagent("s1", "a1", user_record("Look."), call("m2", isSidechain=True, agentId="a1"))
    assert title_of(machine) == "Why?"


def test_prompt_behind_the_head_of_a_file_is_not_looked_for(machine: Machine) -> None:
    noise = packed({"type": "progress", "data": "x" * PROMPT_SEARCH_BYTES})
    machine.session("s1", call("m1"), noise, user_record("Why?"))
    assert title_of(machine) is None


def test_only_what_is_new_is_searched_when_a_file_grows(machine: Machine) -> None:
    path = machine.session("s1", user_record("Why?"), user_record("And now?"), call("m1"))
    second = path.read_bytes().index(b"\n") + 1
    (transcript,) = find_transcripts(machine.places)
    titles = [with_title(Session(), transcript, start).title for start in (0, second)]
    assert titles == ["Why?", "And now?"]
    assert with_title(Session(), transcript, PROMPT_SEARCH_BYTES + 1).title is None


async def test_daemon_stores_the_first_prompt_until_the_client_gives_a_title(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.write_record(type="user", message={"role": "user", "content": "Why?"})
    agent.call(9_000)
    await agent.observe("tool")
    row = await agent.store.session("s1")
    assert row is not None
    assert row.title == "Why?"
    with agent.path.open("a") as file:
        file.write(json.dumps({"type": "ai-title", "aiTitle": "Title"}, separators=(",", ":")))
    await agent.observe("tool")
    row = await agent.store.session("s1")
    assert row is not None
    assert row.title == "Title"


def test_unreadable_file_has_no_title() -> None:
    missing = Transcript("claude", "/no/such/file.jsonl", 0.0, 1)
    assert with_title(Session(), missing).title is None
