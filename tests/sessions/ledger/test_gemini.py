"""The ledger of Gemini CLI's chats: every kind of record that goes into the context."""

import json
from pathlib import Path

import pytest

from brimline.agents import get_agent
from brimline.agents.content import (
    AddedText,
    Images,
    KeptContent,
    Piece,
    Reasoning,
    ReplyText,
    SummaryText,
    ToolCall,
    ToolResult,
    UserText,
    read_content,
)
from brimline.agents.gemini.transcript_source import SOURCE
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import Call
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger
from clients.fixture import load_fixture

Json = dict[str, object]

IMAGE: Json = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
MEMORY = "--- Context from: /p/G.md ---\nBe brief.\n--- End of Context from: /p/G.md ---\n"
SESSION_CONTEXT = f"<session_context>\nToday is Monday.\n{MEMORY}</session_context>"
ACKNOWLEDGED = "Got it. Thanks for the additional context!"


def text(words: str) -> Json:
    return {"text": words}


def response(id: str, output: str, name: str = "read_file") -> Json:
    return {"functionResponse": {"id": id, "name": name, "response": {"output": output}}}


def called(id: str, name: str = "read_file") -> Json:
    return {"functionCall": {"id": id, "name": name, "args": {"file_path": "/p/a"}}}


def user(id: str, *parts: Json) -> Json:
    return {"id": id, "type": "user", "content": list(parts)}


def reply(id: str, words: object, sent: int = 0, output: int = 0, **more: object) -> Json:
    """A reply; without tokens if nothing was sent."""
    thoughts = more.pop("thought_tokens", 0)
    tokens = {"input": sent, "output": output, "cached": 0, "thoughts": thoughts, "tool": 0}
    usage = {"tokens": tokens} if sent else {}
    return {"id": id, "type": "gemini", "content": words, **usage, **more}


def tool(id: str, output: str, name: str = "read_file", **more: object) -> Json:
    result = [response(id, output, name)]
    return {"id": id, "name": name, "args": {}, "status": "success", "result": result, **more}


def written_anew(*messages: Json) -> Json:
    return {"$set": {"messages": list(messages)}}


def pieces_of(*records: Json) -> list[Piece]:
    return list(
        read_content(
            [json.dumps(record).encode() for record in records],
            get_agent("gemini").content_reader(),
        )
    )


def ledger_of(path: Path, *records: Json) -> ThreadLedger:
    header = {"sessionId": "s", "projectHash": "h"}
    path.write_text("".join(json.dumps(record) + "\n" for record in (header, *records)))
    (ledger,) = read_ledger(Transcript("gemini", str(path), 0, 0)).threads
    return ledger


def tokens_of(ledger: ThreadLedger) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in ledger.entries:
        totals[entry.part.category] = totals.get(entry.part.category, 0) + entry.tokens
    return totals


def test_words_of_the_user_are_apart_from_files_hooks_and_images() -> None:
    head, name, end = (
        "\n--- Content from referenced files ---",
        "\nContent from @a.md:\n",
        "\n--- End of content ---",
    )
    hook = "<hook_context>Half of the context is used.</hook_context>"
    parts = (text("Look."), *map(text, (head, name, "A note.", end)), IMAGE, text(hook))
    assert pieces_of(user("1", *parts, text("And go on."))) == [
        Images(1),
        AddedText("user", "attached files", head),
        AddedText("user", "a.md", name),
        AddedText("user", "a.md", "A note."),
        AddedText("user", "a.md", end),
        AddedText("hook", "hook", hook),
        UserText("Look.\nAnd go on."),
    ]


@pytest.mark.parametrize(
    "content", ["Look.", ["Look."], {"text": "Look."}, [{"text": "Look."}, {"text": ""}]]
)
def test_content_is_a_text_a_part_or_a_list(content: object) -> None:
    assert UserText("Look.") in pieces_of({"type": "user", "content": content})


def test_session_context_names_its_memory_files() -> None:
    (kept,) = pieces_of(written_anew(user("1", text(SESSION_CONTEXT))))
    assert kept == KeptContent(
        (
            AddedText("memory", "/p/G.md", MEMORY),
            AddedText("client", "Gemini CLI", SESSION_CONTEXT.replace(MEMORY, "")),
        )
    )


def test_reply_that_is_written_again_with_its_tools_counts_once() -> None:
    thoughts = [{"subject": "Plan", "description": "Read it."}]
    first = reply("1", "I read.", thoughts=thoughts)
    result = ToolResult("t", True, "A note.")
    pieces = pieces_of(
        first,
        {**first, "toolCalls": [tool("t", "A note.")]},
        user("2", response("t", "A note.")),
    )
    assert pieces[:2] == [Reasoning("Plan\nRead it."), ReplyText("I read.")]
    assert [type(piece) for piece in pieces[2:]] == [ToolCall, ToolResult]
    assert pieces[3] == result


def test_images_of_a_result_belong_to_it() -> None:
    own = {**tool("t", "One image."), "result": [response("t", "One image."), IMAGE]}
    result = ToolResult("t", True, "One image.", images=1)
    assert result in pieces_of(reply("1", "", toolCalls=[own]))
    answers = pieces_of(user("1", response("a", "None."), response("t", "One image."), IMAGE))
    assert [each.images for each in answers if isinstance(each, ToolResult)] == [0, 1]


@pytest.mark.parametrize(
    ("name", "shown", "server", "kind"),
    [
        ("mcp_my-notes_find_note", "find_note (my-notes MCP Server)", "my-notes", "other"),
        ("mcp_my-notes_find_note", "", "my-notes", "other"),
        ("find_note", "find_note (my_notes MCP Server)", "my_notes", "other"),
        ("invoke_agent", "Invoke Subagent", "", "subagent"),
    ],
)
def test_server_and_kind_of_a_tool(name: str, shown: str, server: str, kind: str) -> None:
    pieces = pieces_of(reply("1", "", toolCalls=[tool("t", "", name, displayName=shown)]))
    (call,) = [piece for piece in pieces if isinstance(piece, ToolCall)]
    assert (call.server, call.kind) == (server, kind)


def test_thoughts_are_not_sent_again(tmp_path: Path) -> None:
    """Measured: a call with 153 tokens of thoughts is followed by one that does not have them."""
    words, note = "w" * 1_000, "n" * 1_000
    ledger = ledger_of(
        tmp_path / "x.jsonl",
        user("1", text("Go.")),
        reply("2", words, 1_000, 500, thought_tokens=100, thoughts=[{"subject": "s" * 400}]),
        user("3", text(note)),
        reply("4", "Done.", 2_000),
    )
    assert "reasoning" not in tokens_of(ledger)
    assert tokens_of(ledger)["agent's words"] == 500
    assert tokens_of(ledger)["user words"] > 499


def test_resume_repeats_the_results_of_tools(tmp_path: Path) -> None:
    """Gemini CLI 0.61.0 sends every result twice after a resume, and a second resume no more."""
    context = user("env", text(SESSION_CONTEXT))
    turn = (
        user("1", text("Go.")),
        reply("2", "", 1_000, 10, toolCalls=[tool("t", "x" * 4_000)]),
        user("3", response("t", "x" * 4_000)),
        reply("4", "Done.", 2_010, 10),
    )
    loaded = (
        context,
        user("1", text("Go.")),
        reply("2", [called("t")]),
        user("2", response("t", "x" * 4_000)),
        user("3", response("t", "x" * 4_000)),
        reply("4", [text("Done.")]),
    )
    resumed = (written_anew(context), written_anew(*loaded), user("5", text("More.")))
    ledger = ledger_of(
        tmp_path / "x.jsonl",
        written_anew(context),
        *turn,
        *resumed,
        reply("6", "Done.", 3_025, 10),
    )
    assert [len(step.inputs) for step in ledger.steps] == [3, 1, 2]
    assert tokens_of(ledger)["tool results"] == pytest.approx(2_000, rel=0.01)
    again = (written_anew(context), written_anew(*loaded, user("5"), reply("6", "Done.")))
    twice = ledger_of(
        tmp_path / "y.jsonl",
        written_anew(context),
        *turn,
        *resumed,
        reply("6", "Done.", 3_025, 10),
        *again,
        user("7", text("More.")),
        reply("8", "Done.", 3_040, 10),
    )
    assert [len(step.inputs) for step in twice.steps] == [3, 1, 2, 1]


def test_turn_that_is_rolled_back_leaves_the_context(tmp_path: Path) -> None:
    turn = (user("1", text("Go.")), reply("2", "Yes.", 1_000), user("3", text("On.")))
    loop = user("4", text("System: Potential loop detected."))
    ledger = ledger_of(
        tmp_path / "x.jsonl", *turn, loop, written_anew(*turn), reply("5", "No.", 1_010)
    )
    assert [part.what for part in ledger.steps[-1].inputs] == ["On."]


def test_kept_conversation_without_a_known_call_has_no_content() -> None:
    unknown = reply("1", [text("Yes.")])
    assert pieces_of(written_anew(user("0", text("Go.")), unknown)) == []
    assert pieces_of({"$set": {"lastUpdated": "2026-01-02T03:04:05.000Z"}}) == []


def test_compression_keeps_its_summary_and_the_newest_messages() -> None:
    context, summary = user("env", text(SESSION_CONTEXT)), user("s", text("All is well."))
    answer = reply("a", [text(ACKNOWLEDGED)])
    kept = (user("u", text("Go.")), reply("g", [text("I read."), called("t")]))
    compressed = written_anew(context, summary, answer, *kept)
    *_, content = pieces_of(user("1", text("Go.")), reply("2", "Yes.", 1_000), compressed)
    assert isinstance(content, KeptContent)
    assert content.pieces[2:4] == (SummaryText("All is well."), ReplyText(ACKNOWLEDGED))
    assert [type(piece) for piece in content.pieces[4:]] == [UserText, ReplyText, ToolCall]
    assert pieces_of(compressed, compressed)[1:] == []


def test_document_gives_a_record_per_message(tmp_path: Path) -> None:
    messages = [user("1", text("Go.")), reply("2", "Yes.", 1_000), {"id": "3", "type": "info"}]
    path = tmp_path / "x.json"
    document = {"sessionId": "s", "projectHash": "h", "messages": messages}
    path.write_text(json.dumps(document, indent=2))
    transcript = Transcript("gemini", str(path), 0, 0)
    head, *records = SOURCE.records(transcript)
    assert [json.loads(record.data) for record in records] == messages
    calls = [[event.id for event in r.events if isinstance(event, Call)] for r in records]
    assert calls == [[], ["2"], []]
    events = [event for record in (head, *records) for event in record.events]
    assert events == list(SOURCE.read(transcript))
    path.write_text("{")
    assert list(SOURCE.records(transcript)) == []


def test_subagent_chat_by_its_path_alone_is_one_thread(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    header = {"sessionId": "sub", "projectHash": "h", "kind": "subagent"}
    records = (header, user("1", text("Look.")), reply("2", "Yes.", 1_000))
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (ledger,) = read_ledger(Transcript("gemini", str(path), 0, 0)).threads
    assert (ledger.thread, set(tokens_of(ledger))) == ("sub", {"system and tools", "user words"})


@pytest.mark.parametrize("scene", ["tool-loop", "errors", "subagent", "resume-compact"])
def test_recorded_sessions_have_their_calls_and_results(scene: str, tmp_path: Path) -> None:
    run = load_fixture("gemini", scene, tmp_path).last
    chat = next(path for path in run.transcripts if path.name.startswith("session-"))
    (ledger,) = read_ledger(Transcript("gemini", str(chat), 0, 0)).threads
    parts = [part for step in ledger.steps for part in (*step.inputs, *step.outputs)]
    results = "subagent results" if scene == "subagent" else "tool results"
    assert {"injected context", "tool calls", results} <= {part.category for part in parts}
    summaries = [part for part in parts if part.category == "compaction summary"]
    assert len(summaries) == (scene == "resume-compact")
    assert ledger.sent == sum(tokens_of(ledger).values()) + ledger.unexplained


def test_resume_in_another_minute_repeats_the_results_too(tmp_path: Path) -> None:
    """The first file goes on then, without a new header: nothing tells of the resume."""
    note = "x" * 4_000
    ledger = ledger_of(
        tmp_path / "x.jsonl",
        user("1", text("Go.")),
        reply("2", "", 1_000, 10, toolCalls=[tool("t", note)]),
        user("3", response("t", note)),
        reply("4", "Done.", 2_010, 10),
        written_anew(
            user("1", text("Go.")),
            reply("2", [called("t")]),
            user("2", response("t", note)),
            user("3", response("t", note)),
            reply("4", [text("Done.")]),
        ),
        user("5", text("More.")),
        reply("6", "Done.", 3_025, 10),
    )
    assert tokens_of(ledger)["tool results"] == pytest.approx(2_000, rel=0.01)
