"""Which transcripts belong to which session, and finding a session by its id."""

import msgspec
import pytest

from brimline.agents.transcripts.source import Places, Tally, Transcript
from brimline.context.events import MAIN
from brimline.errors import UnknownSession, UnrecognisedFormat
from brimline.sessions.files import (
    detect_agent,
    find_session,
    find_transcripts,
    group_by_session,
    load_session,
    shorten_ids,
    shorten_paths,
)

from .machine import NOON, Machine, call, subagent_fields, user_record


def transcript(path: str, **fields: object) -> Transcript:
    return msgspec.structs.replace(Transcript("claude", path, float(NOON), 1), **fields)


def test_own_transcript_comes_before_subagents_by_path() -> None:
    transcripts = [
        transcript("/p/s1/subagents/agent-b.jsonl", session="s1", thread="b"),
        transcript("/p/s2.jsonl", session="s2"),
        transcript("/p/s1/subagents/agent-a.jsonl", session="s1", thread="a"),
        transcript("/p/s1.jsonl", session="s1"),
    ]
    groups = {
        files.session: [t.thread for t in files.transcripts]
        for files in group_by_session(transcripts)
    }
    assert groups == {"s1": [MAIN, "a", "b"], "s2": [MAIN]}


def test_same_id_in_two_agents_is_two_sessions() -> None:
    transcripts = [
        transcript("/a.jsonl", session="s"),
        transcript("/b.jsonl", session="s", agent="pi"),
    ]
    assert [files.agent for files in group_by_session(transcripts)] == ["claude", "pi"]


def test_transcript_without_a_session_id_is_its_own_session() -> None:
    transcripts = [
        transcript("/p/agent-a.jsonl", thread="a"),
        transcript("/q/agent-a.jsonl", thread="a"),
    ]
    assert [len(files.transcripts) for files in group_by_session(transcripts)] == [1, 1]


def test_session_is_as_new_as_its_newest_file() -> None:
    transcripts = [
        transcript("/p/s1.jsonl", session="s1", modified=5.0),
        transcript("/p/s1/agent-a.jsonl", session="s1", thread="a", modified=9.0),
    ]
    assert group_by_session(transcripts)[0].modified == 9.0


def test_only_the_requested_agents_are_read(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    assert [t.session for t in find_transcripts(machine.places, ["claude"])] == ["s1"]
    assert find_transcripts(machine.places, ["codex", "pi", "gemini", "opencode"]) == []


def test_agent_folder_follows_its_variable(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    elsewhere = Places(machine.home / "none", {"CLAUDE_CONFIG_DIR": str(machine.home / ".claude")})
    assert [t.session for t in find_transcripts(elsewhere)] == ["s1"]


def test_session_is_found_by_id_or_unique_prefix(machine: Machine) -> None:
    for name in ("abc", "abcd", "xyz"):
        machine.session(name, call(name))
    assert find_session(machine.places, "abc").session == "abc"
    assert find_session(machine.places, "abcd").session == "abcd"
    assert find_session(machine.places, "x").session == "xyz"


def test_ambiguous_prefix_lists_some_matches(machine: Machine) -> None:
    for number in range(7):
        machine.session(f"abc{number}", call("m"))
    with pytest.raises(UnknownSession) as raised:
        find_session(machine.places, "ab")
    assert raised.value.candidates == tuple(f"abc{number} (claude)" for number in range(5))
    assert "\n   abc0 (claude)\n   abc1 (claude)" in str(raised.value)


def test_unknown_id_says_how_to_list_sessions(machine: Machine) -> None:
    machine.session("abc", call("m"))
    for name in ("zzz", "abcd"):
        with pytest.raises(UnknownSession, match="brimline status --all"):
            find_session(machine.places, name)


def test_session_is_found_among_the_requested_agent_only(machine: Machine) -> None:
    machine.session("abc", call("m"))
    assert find_session(machine.places, "abc", ["claude"]).agent == "claude"
    with pytest.raises(UnknownSession):
        find_session(machine.places, "abc", ["codex"])


def test_session_is_read_with_its_subagents_under_its_id(machine: Machine) -> None:
    machine.session("s1", user_record(), call("m1"), b"{broken\n", call("m2", 30_000))
    machine.subagent("s1", "a1", call("m3", 5_000, **subagent_fields("a1")))
    folded = load_session(find_session(machine.places, "s1"))
    assert {name: list(t.calls) for name, t in folded.session.threads.items()} == {
        MAIN: ["m1", "m2"],
        "a1": ["m3"],
    }
    assert (folded.session.id, folded.session.agent) == ("s1", "claude")
    assert (folded.tally.records, folded.tally.malformed) == (5, 1)
    assert folded.problems == ()


def test_deleted_file_is_reported_and_the_others_are_read(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    deleted = machine.subagent("s1", "a1", call("m3", **subagent_fields("a1")))
    files = find_session(machine.places, "s1")
    deleted.unlink()
    folded = load_session(files)
    assert list(folded.session.threads) == [MAIN]
    assert len(folded.problems) == 1
    assert str(deleted) in folded.problems[0]


def test_subagent_in_a_worktree_does_not_change_the_project(machine: Machine) -> None:
    machine.session("s1", call("m1", cwd="/project"))
    machine.subagent("s1", "a1", call("m2", cwd="/project/.worktrees/a1", **subagent_fields("a1")))
    assert load_session(find_session(machine.places, "s1")).session.project == "/project"


def test_tallies_add_up_with_the_first_places() -> None:
    first, second = Tally(3, 1, 0), Tally(2, 0, 0)
    for number in range(7):
        second.add_malformed(f"place {number}")
    first.add(second)
    assert (first.records, first.unknown, first.malformed) == (5, 1, 7)
    assert first.places == [f"place {number}" for number in range(5)]
    first.add(second)
    assert (first.malformed, len(first.places)) == (14, 5)


def test_agent_is_detected_by_the_first_lines_or_an_error_says_how_to_name_it() -> None:
    assert detect_agent(call("m1"), "x") == ("claude", "transcript")
    with pytest.raises(UnrecognisedFormat, match="--agent"):
        detect_agent(b'{"hello":1}\n', "x")
    with pytest.raises(UnrecognisedFormat):
        detect_agent(b"", "x")


def test_unknown_stream_is_reported_with_what_it_resembles() -> None:
    """Other clients write streams of Claude Code's shape, without its version."""
    line = b'{"type":"system","subtype":"init","session_id":"s"}\n'
    with pytest.raises(UnrecognisedFormat, match="It resembles Claude Code's stream, but no") as e:
        detect_agent(line, "x")
    assert str(e.value).startswith("x: unknown agent: ")


def test_stream_that_names_its_client_is_of_no_other_agent() -> None:
    """Qwen Code's stream has Claude Code's shape; its input_tokens include the cache."""
    line = b'{"type":"system","subtype":"init","session_id":"s","qwen_code_version":"0.24.4"}\n'
    assert detect_agent(line, "x") == ("qwen", "stream")


def test_short_ids_are_as_long_as_needed_to_differ() -> None:
    ids = ["a", "0123456789", "01234567-1", "01234567-2", "ses_abcdef", "ses_abcxyz"]
    assert shorten_ids(ids) == {
        "a": "a",
        "0123456789": "012345678",
        "01234567-1": "01234567-1",
        "01234567-2": "01234567-2",
        "ses_abcdef": "ses_abcd",
        "ses_abcxyz": "ses_abcx",
    }
    assert shorten_ids(["0123456789abcdef"]) == {"0123456789abcdef": "01234567"}


def test_short_paths_have_as_many_folders_as_needed_to_differ() -> None:
    paths = {
        "/srv/a/cli": "a/cli",
        "/srv/b/cli": "b/cli",
        "/cli": "/cli",
        "/srv/my-cli": "my-cli",
        "/x/packages/web": "x/packages/web",
        "/y/packages/web": "y/packages/web",
        "C:\\work\\shop": "shop",
        "unknown": "unknown",
    }
    assert shorten_paths(paths) == paths
    assert shorten_paths([]) == {}
