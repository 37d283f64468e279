"""Cline CLI: its documents when they are written again, a compaction beside them, its places."""

import json
from pathlib import Path

import pytest

from brimline.agents import get_agent
from brimline.agents.cline.content import ClineContent
from brimline.agents.cline.transcript_source import SOURCE
from brimline.agents.content import KeptContent, SummaryText, ToolResult, UserText
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.tracker import Session, fold
from run.homes import home_of


def recorded(scene: str, folder: Path) -> list[Transcript]:
    """The transcripts of a scene, the main thread first."""
    found = SOURCE.transcripts(Places(home_of("cline", scene, folder), {}))
    return sorted(found, key=lambda each: each.thread != "main")


def test_document_that_is_written_again_counts_twice(tmp_path: Path) -> None:
    """After each message; its compaction is in its place whenever it is read."""
    (main,) = recorded("auto-compact", tmp_path)
    path = Path(main.path)
    document = json.loads(path.read_bytes())
    final = fold(Session(), SOURCE.read(main))
    beside = path.with_name(path.name.replace("messages", "compaction"))
    compaction = beside.read_bytes()
    beside.unlink()
    session = Session()
    for count in range(len(document["messages"]) + 1):
        if count == 7:
            beside.write_bytes(compaction)
        path.write_text(json.dumps(document | {"messages": document["messages"][:count]}, indent=2))
        session = fold(session, SOURCE.read(main))
    assert session.threads == final.threads
    (compacted,) = session.threads["main"].compactions
    assert (compacted.calls, compacted.inferred) == (3, False)
    assert compacted.before == 115_483 + 10_019


def test_earlier_compaction_is_known_by_the_fall(tmp_path: Path) -> None:
    """The client keeps the last one only."""
    (main,) = recorded("auto-compact", tmp_path)
    for beside in Path(main.path).parent.glob("*.compaction.json"):
        beside.unlink()
    (compacted,) = fold(Session(), SOURCE.read(main)).threads["main"].compactions
    assert (compacted.calls, compacted.inferred) == (3, True)


def test_half_written_document_is_read_again(tmp_path: Path) -> None:
    (main,) = recorded("tool-loop", tmp_path)
    path = Path(main.path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    torn = SOURCE.read(main)
    assert list(torn) == []
    assert torn.tally.malformed == 1
    path.write_bytes(whole)
    again = SOURCE.read(main, torn.cursor)
    assert len(fold(Session(), again).threads["main"].calls) == 3
    assert list(SOURCE.read(main, again.cursor)) == []


def test_malformed_message_hides_no_other(tmp_path: Path) -> None:
    (main,) = recorded("tool-loop", tmp_path)
    path = Path(main.path)
    document = json.loads(path.read_bytes())
    document["messages"][1]["metrics"]["inputTokens"] = "many"
    document["messages"][2]["role"] = "oracle"
    path.write_text(json.dumps(document))
    reader = SOURCE.read(main)
    assert len(fold(Session(), reader).threads["main"].calls) == 2
    assert (reader.tally.malformed, reader.tally.unknown) == (1, 1)
    assert reader.tally.places[0].startswith("message 2: ")


def test_reply_without_usage_is_not_reported(tmp_path: Path) -> None:
    (main,) = recorded("tool-loop", tmp_path)
    path = Path(main.path)
    path.write_text(path.read_text().replace('"metrics"', '"figures"'))
    session = fold(Session(), SOURCE.read(main))
    assert (session.unmetered, session.threads) == (3, {})


def test_subagent_is_of_its_session(tmp_path: Path) -> None:
    main, subagent = recorded("subagent", tmp_path)
    assert main.session == subagent.session
    session = fold(Session(), SOURCE.read(subagent))
    assert (session.id, list(session.threads)) == (main.session, [subagent.thread])
    seen = fold(Session(), SOURCE.read(main))
    assert (seen.project, seen.title, seen.version) == ("/home/dev/project", "Go.", "3.0.65")


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("CLINE_DIR", "x/data/sessions"),
        ("_", "home/.cline/data/sessions"),
        ("CLINE_DATA_DIR", "x/sessions"),
        ("CLINE_SESSION_DATA_DIR", "x"),
    ],
)
def test_variable_moves_the_sessions(variable: str, folder: str, tmp_path: Path) -> None:
    places = Places(tmp_path / "home", {variable: str(tmp_path / "x")})
    assert SOURCE.folders(places) == [tmp_path / folder]


def test_compaction_keeps_its_summary_and_the_last_messages(tmp_path: Path) -> None:
    (main,) = recorded("auto-compact", tmp_path)
    pieces = [
        piece
        for record in SOURCE.records(main)
        if record.data
        for piece in ClineContent().read_record(record.data)
    ]
    (kept,) = (piece for piece in pieces if isinstance(piece, KeptContent))
    assert isinstance(kept.pieces[0], SummaryText)
    assert sum(isinstance(piece, ToolResult) for piece in kept.pieces) == 2


def test_prompt_is_without_the_marks_of_the_client() -> None:
    record = {
        "role": "user",
        "content": [{"type": "text", "text": '<user_input mode="act">Look <b>.</user_input>'}],
    }
    assert list(ClineContent().read_record(json.dumps(record).encode())) == [UserText("Look <b>.")]


@pytest.mark.parametrize(("success", "ok"), [(True, True), (False, False)])
def test_command_that_failed_is_a_failed_result(success: bool, ok: bool) -> None:
    result = {"query": "false", "result": "out", "error": "", "success": success}
    block = {"type": "tool_result", "tool_use_id": "c1", "content": [result]}
    record = json.dumps({"role": "user", "content": [block]}).encode()
    assert list(ClineContent().read_record(record)) == [ToolResult("c1", ok, "out")]


def test_stream_names_neither_session_nor_usage(tmp_path: Path) -> None:
    stream = Path(__file__).parent.parent / "fixtures/cline/subagent/stream-1.jsonl"
    parser = get_agent("cline").source.stream()
    events = [parser.feed(line) for line in stream.read_bytes().splitlines()]
    assert None not in events
    session = fold(Session(), (event for each in events for event in each or ()))
    assert (session.agent, session.id, session.threads) == ("cline", None, {})
    assert SOURCE.recognise(stream.read_bytes()) == "stream"
