"""The ledger of opencode's sessions: every part of a message that goes into the context."""

import json
from pathlib import Path

import pytest

from brimline.agents import get_agent
from brimline.agents.content import (
    AddedText,
    Images,
    KeptContent,
    Location,
    Piece,
    Reasoning,
    ReplyText,
    SummaryText,
    ToolCall,
    ToolResult,
    UserText,
    read_content,
)
from brimline.agents.transcripts.source import Transcript
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger
from clients.fixture import load_fixture

Json = dict[str, object]


def pieces_of(role: str, *parts: Json, summary: bool = False, kept_records: int = 0) -> list[Piece]:
    info = {"role": role, "summary": summary}
    record = {"info": info, "parts": parts, "keptRecords": kept_records}
    pieces = read_content([json.dumps(record).encode()], get_agent("opencode").content_reader())
    return [piece for piece in pieces if not isinstance(piece, Location)]


def text(words: str, **more: object) -> Json:
    return {"type": "text", "text": words, **more}


def tool(name: str, state: Json | None = None) -> Json:
    state = {"status": "completed", **(state or {})}
    return {"type": "tool", "tool": name, "callID": "1", "state": state}


def test_attached_file_is_apart_from_the_words_of_the_user() -> None:
    called = 'Called the Read tool with the following input: {"filePath":"/p/a.md"}'
    image: Json = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}
    note: Json = {"type": "file", "mime": "text/plain", "url": "file:///p/a.md"}
    assert pieces_of(
        "user",
        text("Look."),
        text(called, synthetic=True),
        text("<content>", synthetic=True),
        note,
        image,
        text("And go on."),
        text("Continue if you have next steps.", synthetic=True),
    ) == [
        UserText("Look."),
        AddedText("user", "/p/a.md", called),
        AddedText("user", "/p/a.md", "<content>"),
        Images(1),
        UserText("And go on."),
        AddedText("client", "opencode", "Continue if you have next steps."),
    ]


def test_reasoning_and_replies_are_read_and_a_summary_is_no_reply() -> None:
    reasoning: Json = {"type": "reasoning", "text": "Hm."}
    assert pieces_of("assistant", reasoning, text("Done."), {"type": "step-finish"}) == [
        Reasoning("Hm."),
        ReplyText("Done."),
    ]
    summary = pieces_of("assistant", text("All is well."), summary=True, kept_records=3)
    assert summary == [KeptContent(records=3), SummaryText("All is well.")]


@pytest.mark.parametrize(
    ("name", "server", "kind"),
    [
        ("my-notes_find_note", "my-notes", "other"),
        ("apply_patch", "", "other"),
        ("task", "", "subagent"),
        ("read", "", "read"),
    ],
)
def test_server_and_kind_of_a_tool(name: str, server: str, kind: str) -> None:
    call = next(p for p in pieces_of("assistant", tool(name)) if isinstance(p, ToolCall))
    assert (call.server, call.kind) == (server, kind)


@pytest.mark.parametrize(
    ("state", "result"),
    [
        ({"output": "x"}, ToolResult("1", True, "x")),
        (
            {"output": "Image read", "attachments": [{"mime": "image/png"}, {"mime": "text/x"}]},
            ToolResult("1", True, "Image read", images=1),
        ),
        (
            {
                "status": "error",
                "error": "Tool execution aborted",
                "metadata": {"interrupted": True, "output": "half"},
            },
            ToolResult("1", False, "half"),
        ),
        (
            {"status": "error", "error": "No such file", "metadata": {"output": {}}},
            ToolResult("1", False, "No such file"),
        ),
    ],
)
def test_result_is_what_the_model_gets(state: Json, result: ToolResult) -> None:
    assert result in pieces_of("assistant", tool("bash", state))


def ledger_of(scene: str, tmp_path: Path, thread: str | None = None) -> ThreadLedger:
    """The ledger of a recorded scene's session, or of its subagent."""
    run = load_fixture("opencode", scene, tmp_path).runs[0]
    database = next(path for path in run.transcripts if path.suffix == ".db")
    session = run.billed[0].session_id
    transcript = Transcript("opencode", str(database), 0, 0, session, thread or "main")
    (ledger,) = read_ledger(transcript).threads
    return ledger


def tokens_of(ledger: ThreadLedger) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in ledger.entries:
        totals[entry.part.category] = totals.get(entry.part.category, 0) + entry.tokens
    return totals


@pytest.mark.parametrize("scene", ["tool-loop", "responses", "chat", "continue-errors"])
def test_recorded_sessions_have_their_calls_and_results(scene: str, tmp_path: Path) -> None:
    ledger = ledger_of(scene, tmp_path)
    assert {"system and tools", "user words", "tool calls", "tool results"} <= set(
        tokens_of(ledger)
    )
    assert ledger.sent == sum(tokens_of(ledger).values()) + ledger.unexplained


def test_task_of_a_recorded_session_is_a_subagent_result(tmp_path: Path) -> None:
    ledger = ledger_of("subagent", tmp_path)
    (result,) = [one for one in ledger.entries if one.part.category == "subagent results"]
    assert result.part.tool == "task"


def test_recorded_compaction_leaves_the_summary_and_what_it_kept(tmp_path: Path) -> None:
    """The export of the same session has the same ledger."""
    ledger = ledger_of("auto-compact", tmp_path)
    (step,) = [step for step in ledger.steps if step.start == "compacted"]
    assert step.inputs[0].category == "compaction summary"
    export = load_fixture("opencode", "auto-compact", tmp_path / "export").last.stream
    (exported,) = read_ledger(Transcript("opencode", str(export), 0, 0)).threads
    assert [step.inputs for step in exported.steps] == [step.inputs for step in ledger.steps]
    assert exported.entries == ledger.entries


def reply(id: str, created: int, sent: int, output: int, *parts: Json) -> Json:
    tokens = {"input": sent, "output": output, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    info = {"id": id, "role": "assistant", "tokens": tokens, "time": {"created": created}}
    return {"info": info, "parts": parts}


def test_pruned_results_leave_the_context_and_reasoning_stays(tmp_path: Path) -> None:
    """A result has the time at which it was pruned; the calls until then were sent it."""
    reasoning: Json = {"type": "reasoning", "text": "Hm. " * 500}
    old: Json = {"input": {}, "output": "x" * 4_000, "time": {"end": 2, "compacted": 2_500}}
    new: Json = {"input": {}, "output": "y" * 4_000, "time": {"end": 2}}
    messages = (
        reply("msg_1", 1_000, 1_000, 1_000, reasoning, tool("bash", old)),
        reply("msg_2", 2_000, 3_000, 10, tool("read", new) | {"callID": "2"}),
        reply("msg_3", 3_000, 3_110, 10, text("Done.")),
    )
    path = tmp_path / "export.json"
    document = {"info": {"id": "ses_1", "version": "1.18.18"}, "messages": messages}
    path.write_text(json.dumps(document), encoding="utf-8")
    (ledger,) = read_ledger(Transcript("opencode", str(path), 0, 0)).threads
    assert [step.start for step in ledger.steps] == ["continued", "continued", "trimmed"]
    left = {entry.part.tool: entry.tokens for entry in ledger.entries if entry.part.tool}
    assert left["bash"] < 200 < 900 < left["read"]
    assert tokens_of(ledger)["reasoning"] > 900
