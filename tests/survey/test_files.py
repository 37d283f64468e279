"""Which transcripts belong to which session, and how one is found by its id."""

import msgspec
import pytest

from brimline.errors import UnknownSession, UnrecognisedFormat
from brimline.events import MAIN
from brimline.survey.files import (
    add_tally,
    detect_agent,
    find_session,
    find_transcripts,
    group_by_session,
    load_session,
)
from brimline.transcripts.source import Places, Tally, Transcript

from .machine import NOON, Machine, call, of_agent, told


def transcript(path: str, **fields: object) -> Transcript:
    """A transcript at a path."""
    return msgspec.structs.replace(Transcript("claude", path, float(NOON), 1), **fields)


def test_own_file_first() -> None:
    """A session's own transcript comes first, then its subagents' by path."""
    found = [
        transcript("/p/s1/subagents/agent-b.jsonl", session="s1", thread="b"),
        transcript("/p/s2.jsonl", session="s2"),
        transcript("/p/s1/subagents/agent-a.jsonl", session="s1", thread="a"),
        transcript("/p/s1.jsonl", session="s1"),
    ]
    groups = {
        files.session: [t.thread for t in files.transcripts] for files in group_by_session(found)
    }
    assert groups == {"s1": [MAIN, "a", "b"], "s2": [MAIN]}


def test_agents_are_apart() -> None:
    """The same id in two agents is two sessions."""
    found = [transcript("/a.jsonl", session="s"), transcript("/b.jsonl", session="s", agent="pi")]
    assert [files.agent for files in group_by_session(found)] == ["claude", "pi"]


def test_untold_session() -> None:
    """A transcript that does not tell its session stands for itself, also beside a namesake."""
    found = [transcript("/p/agent-a.jsonl", thread="a"), transcript("/q/agent-a.jsonl", thread="a")]
    assert [len(files.transcripts) for files in group_by_session(found)] == [1, 1]


def test_modified() -> None:
    """A session is as new as its newest file."""
    found = [
        transcript("/p/s1.jsonl", session="s1", modified=5.0),
        transcript("/p/s1/agent-a.jsonl", session="s1", thread="a", modified=9.0),
    ]
    assert group_by_session(found)[0].modified == 9.0


def test_transcripts_of_some_agents(machine: Machine) -> None:
    """Only the agents that are asked for are looked at."""
    machine.session("s1", call("m1"))
    assert [t.session for t in find_transcripts(machine.places, ["claude"])] == ["s1"]
    assert find_transcripts(machine.places, ["codex", "pi", "gemini", "opencode"]) == []


def test_variable_moves_the_files(machine: Machine) -> None:
    """An agent whose files lie elsewhere is found by its variable alone."""
    machine.session("s1", call("m1"))
    elsewhere = Places(machine.home / "none", {"CLAUDE_CONFIG_DIR": str(machine.home / ".claude")})
    assert [t.session for t in find_transcripts(elsewhere)] == ["s1"]


def test_by_id(machine: Machine) -> None:
    """By the whole id, or by a beginning that only one has."""
    for name in ("abc", "abcd", "xyz"):
        machine.session(name, call(name))
    assert find_session(machine.places, "abc").session == "abc"
    assert find_session(machine.places, "abcd").session == "abcd"
    assert find_session(machine.places, "x").session == "xyz"


def test_by_id_ambiguous(machine: Machine) -> None:
    """A beginning that several have names some of them, sorted."""
    for number in range(7):
        machine.session(f"abc{number}", call("m"))
    with pytest.raises(UnknownSession) as raised:
        find_session(machine.places, "ab")
    assert raised.value.candidates == tuple(f"abc{number} (claude)" for number in range(5))
    assert "Matches: abc0 (claude), abc1 (claude)" in str(raised.value)


def test_by_id_unknown(machine: Machine) -> None:
    """An id that none has says how to list them."""
    machine.session("abc", call("m"))
    for name in ("zzz", "abcd"):
        with pytest.raises(UnknownSession, match="brimline status --all"):
            find_session(machine.places, name)


def test_by_id_of_an_agent(machine: Machine) -> None:
    """Only among the sessions of the agent that is asked for."""
    machine.session("abc", call("m"))
    assert find_session(machine.places, "abc", ["claude"]).agent == "claude"
    with pytest.raises(UnknownSession):
        find_session(machine.places, "abc", ["codex"])


def test_whole(machine: Machine) -> None:
    """A session is read with its subagents; its id is the one it was found by."""
    machine.session("s1", told(), call("m1"), b"{broken\n", call("m2", 30_000))
    machine.subagent("s1", "a1", call("m3", 5_000, **of_agent("a1")))
    folded = load_session(find_session(machine.places, "s1"))
    assert {name: list(t.calls) for name, t in folded.session.threads.items()} == {
        MAIN: ["m1", "m2"],
        "a1": ["m3"],
    }
    assert (folded.session.id, folded.session.agent) == ("s1", "claude")
    assert (folded.tally.records, folded.tally.malformed) == (5, 1)
    assert folded.problems == ()


def test_whole_without_a_file_that_is_gone(machine: Machine) -> None:
    """A file that cannot be read is told, and the others are read."""
    machine.session("s1", call("m1"))
    gone = machine.subagent("s1", "a1", call("m3", **of_agent("a1")))
    files = find_session(machine.places, "s1")
    gone.unlink()
    folded = load_session(files)
    assert list(folded.session.threads) == [MAIN]
    assert len(folded.problems) == 1
    assert str(gone) in folded.problems[0]


def test_project_is_the_sessions_own(machine: Machine) -> None:
    """A subagent that worked elsewhere, in a worktree, does not move its session there."""
    machine.session("s1", call("m1", cwd="/project"))
    machine.subagent("s1", "a1", call("m2", cwd="/project/.worktrees/a1", **of_agent("a1")))
    assert load_session(find_session(machine.places, "s1")).session.project == "/project"


def test_add() -> None:
    """Tallies add up, with the first places of all."""
    one, two = Tally(3, 1, 0), Tally(2, 0, 0)
    for number in range(7):
        two.add_malformed(f"place {number}")
    add_tally(one, two)
    assert (one.records, one.unknown, one.malformed) == (5, 1, 7)
    assert one.places == [f"place {number}" for number in range(5)]
    add_tally(one, two)
    assert (one.malformed, len(one.places)) == (14, 5)


def test_recognise() -> None:
    """The first lines tell whose a file is; else the error says how to say so."""
    assert detect_agent(call("m1"), "x") == ("claude", "transcript")
    with pytest.raises(UnrecognisedFormat, match="--agent"):
        detect_agent(b'{"hello":1}\n', "x")
    with pytest.raises(UnrecognisedFormat):
        detect_agent(b"", "x")
