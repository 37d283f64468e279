"""What the sessions of a project carried and called, and how that is cached."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brimline.agents.transcripts.source import Transcript
from brimline.context.usage import Usage
from brimline.sessions.files import find_transcripts
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.report import TranscriptSummary, summaries
from brimline.sessions.summary import FileSummary, UsageRow
from brimline.sessions.thread_parts import TooMuchToRead
from brimline.sessions.tool_report import (
    CarriedPart,
    ToolReport,
    group_by_project,
    report_tools,
)

from .carried_session import carried_session
from .machine import NOON, Machine
from .machine import call as sent_call

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDED_IN, RECORDED_AT = "/home/dev/project", 1_767_323_059.0
HOUR_S, DAY_S = 3_600, 86_400
NOW = NOON + HOUR_S
READ_NOTHING = 0  # bytes: what is not cached raises TooMuchToRead


def carry(
    machine: Machine, name: str, project: str = "/p", age: float = HOUR_S, later: bytes = b""
) -> Path:
    """Write a session that called a server, with `later` records at its end."""
    records = carried_session(name, NOW - age, project, ["mcp__tides__high"])
    return machine.session(name, records, later)


def report(
    machine: Machine, project: str = "/p", now: float = NOW, max_bytes: int | None = None
) -> ToolReport:
    transcripts = find_transcripts(machine.places)
    index = TranscriptIndex.load(machine.cache)
    index.update(transcripts)
    index.dedupe_calls(transcripts, {each.agent for each in transcripts})
    items = group_by_project(summaries(index, transcripts)).get(project, [])
    return report_tools(items, project, machine.places, machine.cache, now, max_bytes=max_bytes)


def part_of(found: ToolReport, name: str) -> CarriedPart:
    (part,) = (each for each in found.parts if each.name == name)
    return part


def summarised(agent: str, session: str, project: str) -> TranscriptSummary:
    """A session of one call, whose file is gone."""
    row = UsageRow("2026-11-14", None, 0, 1, Usage(1_000, 0, 0, 10))
    summary = FileSummary(session, project, None, None, NOW, NOW, 1_000, (row,), b"a")
    return TranscriptSummary(Transcript(agent, "/gone", NOW, 1, session), summary)


def install_database(machine: Machine, recorded: str) -> Path:
    """Put a recorded database of a client in the home."""
    (source,) = (FIXTURES / recorded / "home").rglob("*.sql")
    path = machine.home / source.relative_to(FIXTURES / recorded / "home").with_suffix(".db")
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(source.read_text("utf-8"))
    return path


def test_large_cache_is_used(machine: Machine) -> None:
    """The parts of these sessions take more than a megabyte."""
    names = [f"skill-{number:0500}" for number in range(2_500)]
    lines = carry(machine, "s").read_text().splitlines()
    records: list[Any] = [json.loads(line) for line in lines]
    listing = next(each["attachment"] for each in records if each["type"] == "attachment")
    listing |= {"names": names, "content": "\n".join(f"- {name}: Ties." for name in names)}
    machine.session("s", "\n".join(map(json.dumps, records)).encode())
    first = report(machine)
    assert len(first.parts) > len(names)
    assert report(machine, max_bytes=READ_NOTHING) == first


@pytest.mark.parametrize("damage", [b"\xff\xfe\xfd\xfc\xfb", b"", b"\xc1"])
def test_damaged_cache_is_ignored(machine: Machine, damage: bytes) -> None:
    carry(machine, "a")
    first = report(machine)
    (path,) = machine.cache.rglob("*.msgpack")
    path.write_bytes(path.read_bytes().replace(b"tides", damage))
    assert report(machine) == first


def test_report_of_a_project_leaves_the_cache_of_another(machine: Machine) -> None:
    carry(machine, "a", "/a")
    carry(machine, "b", "/b")
    first = report(machine, "/a")
    report(machine, "/b")
    assert report(machine, "/a", max_bytes=READ_NOTHING) == first


def test_changed_transcript_is_read_again(machine: Machine) -> None:
    path = carry(machine, "a")
    assert part_of(report(machine), "tides").calls == 1
    path.write_bytes(carried_session("a", NOW, "/p", ["mcp__tides__high", "mcp__tides__low"]))
    with pytest.raises(TooMuchToRead):
        report(machine, max_bytes=READ_NOTHING)
    assert part_of(report(machine), "tides").calls == 2


def test_deleted_transcripts_leave_the_cache(machine: Machine) -> None:
    """As do those that were not used for 30 days."""
    gone, old = carry(machine, "gone"), carry(machine, "old", age=29 * DAY_S)
    report(machine)
    gone.unlink()
    carry(machine, "new")
    found = report(machine, now=NOW + 2 * DAY_S)
    assert found.sessions == 1
    cached = b"".join(path.read_bytes() for path in machine.cache.rglob("*.msgpack"))
    assert b"new.jsonl" in cached
    assert os.fsencode(gone.name) not in cached
    assert os.fsencode(old.name) not in cached


def test_sessions_of_a_database_are_cached_apart(machine: Machine) -> None:
    """The first report has what all of them called, the second reads none of them."""
    install_database(machine, "kilo/subagent")
    first = report(machine, RECORDED_IN, RECORDED_AT)
    assert part_of(first, "general").calls == 1
    assert report(machine, RECORDED_IN, RECORDED_AT, READ_NOTHING) == first


def test_transcript_whose_path_is_no_text_is_cached(machine: Machine) -> None:
    path = carry(machine, "a")
    path.rename(path.with_name(os.fsdecode(b"\xff.jsonl")))
    first = report(machine)
    assert part_of(first, "tides").calls == 1
    assert report(machine, max_bytes=READ_NOTHING) == first


def test_transcript_that_could_not_be_read_is_read_again(machine: Machine) -> None:
    path = carry(machine, "a")
    transcripts = find_transcripts(machine.places)
    index = TranscriptIndex.load(machine.cache)
    index.update(transcripts)
    away = path.rename(path.with_suffix(".away"))
    items = summaries(index, transcripts)
    assert report_tools(items, "/p", machine.places, machine.cache, NOW).parts == []
    away.rename(path)
    assert part_of(report(machine), "tides").calls == 1


def test_sessions_of_two_agents_with_one_id_are_two(machine: Machine) -> None:
    """Goose's ids are a day and a number; another program that counts so has the same."""
    here = summarised("goose", "20261119_1", "/p")
    there = summarised("codex", "20261119_1", "/q")
    assert group_by_project([here, there]) == {"/p": [here], "/q": [there]}
    both = [here, summarised("codex", "20261119_1", "/p")]
    assert report_tools(both, "/p", machine.places, machine.cache, NOW).sessions == 2


def test_calls_that_a_fork_copied_count_once(machine: Machine) -> None:
    """The fork made one call of its own, which called nothing."""
    original = carry(machine, "a").read_bytes()
    later = sent_call("later", 22_000, sessionId="fork", cwd="/p")
    machine.session("fork", original.replace(b'"sessionId": "a"', b'"sessionId": "fork"'), later)
    found = report(machine)
    tides = part_of(found, "tides")
    assert (found.sessions, tides.sessions, tides.called_sessions, tides.calls) == (2, 2, 1, 1)


def test_calls_of_more_than_30_days_ago_do_not_count(machine: Machine) -> None:
    """The session was continued: what it carries counts, what it called then does not."""
    carry(machine, "a", age=40 * DAY_S, later=sent_call("later", 22_000, sessionId="a", cwd="/p"))
    tides = part_of(report(machine), "tides")
    assert (tides.sessions, tides.called_sessions, tides.calls) == (1, 0, 0)
    # Sonnet 4.5 takes $0.30 for a million tokens that are read from the cache.
    assert tides.cost == pytest.approx((tides.tokens or 0) * 0.30 / 1e6)


def test_calls_that_kilo_copied_do_not_count(machine: Machine) -> None:
    """They were made before their session was created."""
    path = install_database(machine, "kilo/subagent")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE session SET time_created = 1767323050000 WHERE parent_id IS NULL")
    found = report(machine, RECORDED_IN, RECORDED_AT)
    assert (found.sessions, found.parts) == (1, [])


def test_sessions_of_a_database_take_their_share_of_its_size(machine: Machine) -> None:
    size = install_database(machine, "kilo/subagent").stat().st_size
    with pytest.raises(TooMuchToRead):
        report(machine, RECORDED_IN, RECORDED_AT, max_bytes=size - 2)
    assert report(machine, RECORDED_IN, RECORDED_AT, max_bytes=size).parts
