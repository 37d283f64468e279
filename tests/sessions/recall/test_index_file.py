"""The index of a transcript: it follows the file, and may be lost or damaged at any time."""

import multiprocessing
import os
import signal
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from brimline.agents import agent_names, get_agent, source
from brimline.agents.content import ReplyText, UserText, read_content
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.events import MAIN
from brimline.errors import UnreadableTranscript
from brimline.sessions.files import (
    SessionFiles,
    find_transcripts,
    group_by_session,
    load_session,
)
from brimline.sessions.recall import index_file
from brimline.sessions.recall.index_file import drop_orphans, index_name, open_index
from brimline.sessions.recall.query import parse_query
from brimline.sessions.recall.search import Recall, SearchScope, search
from clients.fixture import load_fixture
from redaction.canaries import canaries, leaked
from sessions.machine import Machine, call, compaction, packed, record, user_record

FIXTURES = Path(__file__).parents[2] / "fixtures"


def look(machine: Machine, *words: str, before_compaction: bool = False) -> Recall:
    transcripts = machine.transcripts()
    scope = SearchScope(SessionFiles("claude", "s1", tuple(transcripts)))
    query = parse_query(words)
    return search([scope], query, folder_of(machine), before_compaction=before_compaction)


def folder_of(machine: Machine) -> Path:
    return machine.cache / "recall"


def lines(result: Recall) -> list[int]:
    return [hit.line for hit in result.hits]


def index_path(machine: Machine) -> Path:
    (transcript,) = machine.transcripts()
    return folder_of(machine) / index_name(transcript)


def tool_use(id: str, command: str) -> bytes:
    block = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
    message = {"model": "claude-sonnet-4-5", "role": "assistant", "content": [block]}
    return packed(record("assistant", message=message))


def tool_result(id: str, text: str) -> bytes:
    block = {"type": "tool_result", "tool_use_id": id, "content": text}
    return packed(record("user", message={"role": "user", "content": [block]}))


def test_grown_file_is_searched_as_it_was(machine: Machine) -> None:
    path = machine.session("s1", user_record("the first gannet"), call("m1"))
    assert lines(look(machine, "gannet")) == [1]
    with path.open("ab") as file:
        file.write(user_record("a second gannet")[:-20])
    assert lines(look(machine, "gannet")) == [1]  # the line is not whole yet
    with path.open("ab") as file:
        file.write(user_record("a second gannet")[-20:] + user_record("a third gannet"))
    hits = look(machine, "gannet").hits
    assert sorted((hit.line, hit.call) for hit in hits) == [(1, 0), (3, 1), (4, 1)]


def test_file_that_shrank_or_was_replaced_is_searched_as_it_was(machine: Machine) -> None:
    machine.session("s1", user_record("an old gannet"), user_record("more"))
    assert lines(look(machine, "gannet")) == [1]
    machine.session("s1", user_record("a puffin"))
    assert lines(look(machine, "gannet")) == []
    assert lines(look(machine, "puffin")) == [1]
    Path(machine.transcripts()[0].path).unlink()
    machine.session("s1", user_record("a razorbill"), *[user_record("x" * 50)] * 9)
    assert lines(look(machine, "puffin")) == []
    assert lines(look(machine, "razorbill")) == [1]


@pytest.mark.parametrize("damage", ["deleted", "emptied", "garbage", "middle", "link", "version"])
def test_damaged_index_is_used(machine: Machine, damage: str) -> None:
    machine.session("s1", *(user_record(f"gannet number{n} {'x' * 500}") for n in range(200)))
    assert lines(look(machine, "number7"))[:1] == [8]
    path = index_path(machine)
    match damage:
        case "deleted":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case "garbage":
            path.write_bytes(b"x" * 10_000)
        case "middle":
            data = path.read_bytes()
            path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
        case "link":
            path.rename(path.with_suffix(".other"))
            path.symlink_to("/dev/null")
        case _:
            with closing(sqlite3.connect(path)) as database:
                database.execute("UPDATE mark SET data = x'91a131'")
                database.commit()
    result = look(machine, "number8")
    assert lines(result)[:1] == [9]
    assert result.problems == []


def test_index_can_be_read_by_others(machine: Machine) -> None:
    machine.session("s1", user_record("a gannet"))
    before = os.umask(0)
    try:
        look(machine, "gannet")
    finally:
        os.umask(before)
    files = [folder_of(machine), *folder_of(machine).iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in files} == {0}


def test_folder_that_cannot_be_written_hides_what_is_there(machine: Machine) -> None:
    machine.session("s1", user_record("a gannet"))
    machine.cache.parent.mkdir(exist_ok=True)
    machine.cache.write_text("no folder")
    result = look(machine, "gannet")
    assert lines(result) == [1]
    (problem,) = result.problems
    assert problem.startswith(f"cannot write the index in {folder_of(machine)}: ")


def _index(root: Path, words: tuple[str, ...], times: int) -> None:
    machine = Machine.__new__(Machine)
    machine.home, machine.cache = root / "home", root / "cache"
    machine.places = Places(machine.home, {})
    for _ in range(times):
        look(machine, *words)


def test_two_processes_index_a_passage_twice(machine: Machine) -> None:
    """They wait for each other; each passage is in the index once."""
    path = machine.session("s1", *(user_record(f"gannet {n}") for n in range(400)))
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=_index, args=(machine.home.parent, ("gannet",), 5)) for _ in "ab"]
    for each in both:
        each.start()
    for n in range(20):
        with path.open("ab") as file:
            file.write(user_record(f"late gannet {n}"))
        time.sleep(0.01)
    for each in both:
        each.join()
    assert [each.exitcode for each in both] == [0, 0]
    look(machine, "gannet")
    with closing(sqlite3.connect(index_path(machine))) as database:
        assert database.execute(
            "SELECT count(*), count(DISTINCT text) FROM passage"
        ).fetchone() == (
            420,
            420,
        )


def test_killed_process_leaves_a_wrong_index(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it is killed, the next search finds each passage once."""
    monkeypatch.setattr(index_file, "BATCH_BYTES", 8_000)
    machine.session("s1", *(user_record(f"gannet {n} {'x' * 200}") for n in range(600)))
    fork = multiprocessing.get_context("fork")
    for round in range(4):
        process = fork.Process(target=_index, args=(machine.home.parent, ("gannet",), 1))
        process.start()
        time.sleep(0.02 + 0.05 * round)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    look(machine, "gannet")
    with closing(sqlite3.connect(index_path(machine))) as database:
        assert database.execute("SELECT count(*) FROM passage").fetchone() == (600,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_index_of_a_deleted_transcript_stays(machine: Machine) -> None:
    path = machine.session("s1", user_record("a gannet"))
    look(machine, "gannet")
    drop_orphans(folder_of(machine), machine.transcripts())
    assert index_path(machine).exists()
    stored = index_path(machine)
    path.unlink()
    drop_orphans(folder_of(machine), machine.transcripts())
    assert not stored.exists()


def test_missing_transcript_hides_others(machine: Machine) -> None:
    machine.session("s1", user_record("a gannet"))
    (own,) = machine.transcripts()
    gone = Transcript("claude", str(machine.home / "gone.jsonl"), 0.0, 5, "s1")
    scope = SearchScope(SessionFiles("claude", "s1", (gone, own)))
    result = search([scope], parse_query(["gannet"]), folder_of(machine))
    assert lines(result) == [1]
    assert len(result.problems) == 1
    with pytest.raises(UnreadableTranscript), open_index(folder_of(machine), gone, lambda _: None):
        pass


def test_what_came_after_a_compaction_counts_as_lost(machine: Machine) -> None:
    machine.session(
        "s1", user_record("an early gannet"), call("m1"), *[compaction()],
        user_record("a gannet between"), call("m2"), compaction(), user_record("a late gannet"),
    )  # fmt: skip
    assert sorted(lines(look(machine, "gannet"))) == [1, 5, 9]
    assert sorted(lines(look(machine, "gannet", before_compaction=True))) == [1, 5]


def test_session_without_a_compaction_has_lost_something(machine: Machine) -> None:
    machine.session("s1", user_record("an early gannet"), call("m1"))
    result = look(machine, "gannet", before_compaction=True)
    assert (result.hits, result.compacted) == ([], False)


def test_command_and_its_result_are_found_apart(machine: Machine) -> None:
    machine.session("s1", tool_use("t1", "pytest tests/x.py"), tool_result("t1", "a\n3 failed\nb"))
    (called,) = look(machine, "pytest").hits
    assert (called.role, called.tool, called.result) == ("call", "Bash", "a\n3 failed\nb")
    (failed,) = look(machine, "3 failed").hits
    assert (failed.role, failed.tool, failed.command) == ("result", "Bash", "pytest tests/x.py")
    assert [(line.text, line.marks) for line in failed.lines] == [
        ("a", []), ("3 failed", [(0, 8)]), ("b", [])
    ]  # fmt: skip


def test_same_lines_are_shown_again(machine: Machine) -> None:
    """A file that was read three times is one hit."""
    results = [tool_result(f"t{n}", f"read {n}\nport = 5432\n") for n in range(3)]
    machine.session("s1", *results)
    assert len(look(machine, "5432").hits) == 1


def test_words_of_the_user_come_after_others(machine: Machine) -> None:
    machine.session("s1", tool_result("t1", "never"), user_record("never touch the README"))
    assert [hit.role for hit in look(machine, "never").hits] == ["user", "result"]


def test_secret_is_in_the_index(machine: Machine) -> None:
    samples = list(canaries(Random(35)))
    machine.session("s1", *(user_record(canary.text) for canary in samples))
    look(machine, "gannet")
    with closing(sqlite3.connect(index_path(machine))) as database:
        texts = [text for (text,) in database.execute("SELECT text FROM passage ORDER BY id")]
    assert [canary.kind for canary in samples if leaked(canary.secret, "\n".join(texts))] == []


def test_secret_of_an_argument_is_in_the_index(machine: Machine) -> None:
    block = {"type": "tool_use", "id": "t", "name": "login", "input": {"password": "heron7"}}
    machine.session("s1", packed(record("assistant", message={"role": "a", "content": [block]})))
    assert look(machine, "heron7").hits == []


def recorded_sessions(agent: str, scratch: Path) -> list[SessionFiles]:
    """The sessions of two scenes of a client; a database is restored from its dump."""
    scenes = sorted(folder.name for folder in (FIXTURES / agent).iterdir())
    chosen = [scene for scene in scenes if "compact" in scene or scene == "tool-loop"][:2]
    homes = [load_fixture(agent, scene, scratch / scene).runs[0].home for scene in chosen]
    found = [find_transcripts(Places(home, {}), [agent]) for home in homes]
    return [files for transcripts in found for files in group_by_session(transcripts)]


def written_lines(transcript: Transcript) -> Iterator[str]:
    """The lines that the user and the agent wrote."""
    is_subagent = transcript.thread != MAIN
    reader = get_agent(transcript.agent).content_reader(is_subagent)
    records = [each.data for each in source(transcript.agent).records(transcript) if each.data]
    for piece in read_content(records, reader):
        if isinstance(piece, UserText | ReplyText):
            yield from (line for line in map(str.strip, piece.text.splitlines()) if line)


@pytest.mark.parametrize("agent", agent_names())
def test_line_of_a_recorded_session_is_not_found(agent: str, tmp_path: Path) -> None:
    """What users and agents wrote is found, and the last call has its number in `inspect`."""
    found = 0
    for files in recorded_sessions(agent, tmp_path):
        for transcript in files.transcripts:
            one = SessionFiles(agent, files.session, (transcript,))
            for line in dict.fromkeys(written_lines(transcript)):
                query = parse_query([line.replace('"', " ")])
                result = search([SearchScope(one)], query, tmp_path / "recall")
                assert result.hits, (transcript.path, line)
                found += 1
            with open_index(tmp_path / "recall", transcript, lambda _: None) as (index, problem):
                assert problem is None
                thread = load_session(one).session.threads.get(transcript.thread)
                assert index.mark.calls == (len(thread.calls) if thread else 0), transcript.path
    assert found > 3
