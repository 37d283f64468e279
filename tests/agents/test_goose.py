"""Goose: its ledger, its messages, places and settings."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from brimline.agents import get_agent
from brimline.agents.content import (
    AddedText,
    KeptContent,
    SummaryText,
    ToolCall,
    UserText,
    read_content,
)
from brimline.agents.goose.paths import settings
from brimline.agents.goose.transcript_source import SOURCE
from brimline.agents.transcripts.source import Places, Transcript
from brimline.cli import main
from brimline.context.events import Call, Compacted, SessionSeen, Spent, Unmetered
from brimline.context.usage import Usage
from brimline.errors import UnreadableTranscript
from run.homes import home_of

INSERT = """
    INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, output_tokens,
        cache_read_tokens, cache_write_tokens, cost, cost_source, is_compaction)
    VALUES (?, 1767323050, 'gpt-4o', ?, ?, ?, NULL, 0.5, ?, 0)
"""


@pytest.fixture
def session(tmp_path: Path) -> Transcript:
    """A session of two runs, with a compaction before the second."""
    (main,) = SOURCE.transcripts(Places(home_of("goose", "resume-compact", tmp_path), {}))
    return main


def add_row(
    session: Transcript, sent: int | None, cached: int | None, source: str = "estimated"
) -> None:
    with closing(sqlite3.connect(session.path)) as opened, opened:
        opened.execute(INSERT, (session.session, sent, 7, cached, source))


def test_call_within_the_same_second_is_not_noticed(session: Transcript) -> None:
    """The time of the last change differs after each call, and stays in its second."""
    add_row(session, 50, 20)
    (changed,) = SOURCE.transcripts(Places(Path(session.path).parents[4], {}))
    assert session.modified < changed.modified
    assert [one.modified % 1 > 0.89 for one in (session, changed)] == [True, True]


def test_reading_goes_on_after_the_last_row(session: Transcript) -> None:
    reader = SOURCE.read(session)
    kinds = [type(event) for event in reader]
    assert kinds == [SessionSeen, Call, Call, Spent, Compacted, Call, Call]
    assert list(SOURCE.read(session, reader.cursor)) == []
    add_row(session, 50, 20)
    (call,) = SOURCE.read(session, reader.cursor)
    assert isinstance(call, Call)
    assert (call.id, call.usage, call.model) == ("6", Usage(30, 20, 0, 7), "gpt-4o")
    assert not call.can_compact
    assert call.at is not None
    assert 1767323050 <= call.at < 1767323051


@pytest.mark.parametrize(("source", "cost"), [("estimated", None), ("provider", 0.5)])
def test_estimated_cost_is_taken(session: Transcript, source: str, cost: float | None) -> None:
    add_row(session, 50, None, source)
    *_, call = SOURCE.read(session)
    assert isinstance(call, Call)
    assert (call.usage, call.cost) == (Usage(50, 0, 0, 7), cost)


@pytest.mark.parametrize("value", ["9e999", "1e300", "-1", "'9'", "x'ff'", "9223372036854775807"])
@pytest.mark.parametrize(
    "column", ["created_timestamp", "cost", "input_tokens", "cache_read_tokens", "output_tokens"]
)
def test_number_that_cannot_be_right_hides_no_session(
    session: Transcript,
    column: str,
    value: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A program can write anything into a column of SQLite."""
    add_row(session, 50, 20, "provider")
    with closing(sqlite3.connect(session.path)) as opened, opened:
        last = "(SELECT max(id) FROM usage_ledger)"
        opened.execute(f"UPDATE usage_ledger SET {column} = {value} WHERE id = {last}")
    monkeypatch.setenv("HOME", str(Path(session.path).parents[4]))
    own = str(session.session)
    for command in (
        ("status", "--all"),
        ("report", "--json"),
        ("inspect", own, "--series"),
        ("inspect", own, "--json", "--series"),
        ("explain", own),
    ):
        assert main(command) == 0, command
        assert "Infinity" not in (shown := capsys.readouterr().out), shown
        assert "NaN" not in shown


def test_row_without_a_usage_is_a_call(session: Transcript) -> None:
    """A reply without a count is reported; more from the cache than was sent is an error."""
    add_row(session, None, None)
    add_row(session, 10, 20)
    reader = SOURCE.read(session)
    assert isinstance(list(reader)[-1], Unmetered)
    assert (reader.tally.malformed, len(reader.tally.places)) == (1, 1)


def test_summary_stands_where_the_compaction_is(session: Transcript) -> None:
    """The prompt is the user's once: its copy after the summary is the client's."""
    records = list(SOURCE.records(session))
    (at,) = [
        number
        for number, record in enumerate(records)
        if any(isinstance(event, Compacted) for event in record.events)
    ]
    (kept,) = get_agent("goose").content_reader().read_record(records[at].data)
    assert isinstance(kept, KeptContent)
    (summary,) = kept.pieces
    assert isinstance(summary, SummaryText)
    assert (summary.text or "").startswith("<summary>The work so far")
    data = [record.data for record in records if record.data]
    pieces = list(read_content(data, get_agent("goose").content_reader()))
    assert [piece.text for piece in pieces if isinstance(piece, UserText)] == ["Go.", "Go on."]
    added = [piece.text for piece in pieces if isinstance(piece, AddedText)]
    assert "Go on." in added


def test_call_whose_message_is_gone_is_lost(session: Transcript) -> None:
    with closing(sqlite3.connect(session.path)) as opened, opened:
        opened.execute("DELETE FROM messages WHERE message_id = 'msg_fake000004'")
    events = [event for record in SOURCE.records(session) for event in record.events]
    assert events == list(SOURCE.read(session))


def test_task_of_a_subagent_begins_with_its_id(tmp_path: Path) -> None:
    places = Places(home_of("goose", "subagent", tmp_path), {})
    main, subagent = sorted(SOURCE.transcripts(places), key=lambda one: one.thread != "main")
    assert (subagent.session, subagent.title) == (main.session, "Look around.")
    records = [record.data for record in SOURCE.records(subagent) if record.data]
    pieces = read_content(records, get_agent("goose").content_reader(is_subagent=True))
    assert [piece.text for piece in pieces if isinstance(piece, UserText)] == ["Look around."]


@pytest.mark.parametrize(
    ("tool", "server"), [("shell", ""), ("apps__list_apps", ""), ("github__search", "github")]
)
def test_own_tool_is_one_of_a_server(tool: str, server: str) -> None:
    call: dict[str, object] = {"status": "success", "value": {"name": tool}}
    content = [{"type": "toolRequest", "id": "1", "toolCall": call}]
    record = json.dumps({"role": "assistant", "content": content}).encode()
    pieces = get_agent("goose").content_reader().read_record(record)
    assert [piece.server for piece in pieces if isinstance(piece, ToolCall)] == [server]


@pytest.mark.parametrize(
    ("text", "env", "windows", "fraction", "auto_compact"),
    [
        ("", {}, {}, None, None),
        ('GOOSE_CONTEXT_LIMIT: "60000"  # small', {}, {"*": 60_000}, None, None),
        ("GOOSE_AUTO_COMPACT_THRESHOLD: 0.5", {}, {}, 0.5, None),
        ("GOOSE_AUTO_COMPACT_THRESHOLD: 0.0", {}, {}, None, False),
        ("other: [", {"GOOSE_AUTO_COMPACT_THRESHOLD": "1"}, {}, None, False),
        ("GOOSE_CONTEXT_LIMIT: 60000", {"GOOSE_CONTEXT_LIMIT": "9000"}, {"*": 9_000}, None, None),
        ("GOOSE_CONTEXT_LIMIT: many", {"GOOSE_AUTO_COMPACT_THRESHOLD": "nan"}, {}, None, None),
    ],
)
def test_setting_is_not_read(
    tmp_path: Path,
    text: str,
    env: dict[str, str],
    windows: dict[str, int],
    fraction: float | None,
    auto_compact: bool | None,
) -> None:
    for file in (tmp_path / ".config/goose/config.yaml", tmp_path / "root/config/config.yaml"):
        file.parent.mkdir(parents=True)
        file.write_text(f"extensions:\n  developer: {{}}\n{text}\n")
    for place in ({}, {"GOOSE_PATH_ROOT": str(tmp_path / "root")}):
        own = settings(Places(tmp_path, env | place))
        found = (dict(own.windows), own.fraction, own.auto_compact)
        assert found == (windows, fraction, auto_compact)


def test_database_is_not_found_below_its_root(session: Transcript, tmp_path: Path) -> None:
    root = tmp_path / "root/data/sessions"
    root.mkdir(parents=True)
    Path(session.path).rename(root / "sessions.db")
    (moved,) = SOURCE.transcripts(Places(tmp_path, {"GOOSE_PATH_ROOT": str(tmp_path / "root")}))
    assert (moved.session, moved.path) == (session.session, str(root / "sessions.db"))


def test_unreadable_database_is_listed_itself(session: Transcript, tmp_path: Path) -> None:
    """Its reader reports why; its content without a path cannot be read."""
    Path(session.path).write_bytes(b"no database at all" * 99)
    (listed,) = SOURCE.transcripts(Places(tmp_path / "home", {}))
    with pytest.raises(UnreadableTranscript, match="not a database"):
        SOURCE.read(listed)
    with open(session.path, "rb") as file, pytest.raises(UnreadableTranscript, match="Goose"):
        SOURCE.parse(file)
