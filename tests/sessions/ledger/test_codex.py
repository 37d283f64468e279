"""The ledger of Codex's rollouts: every kind of record that goes into the context."""

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
    ToolResult,
    UserText,
    read_content,
)
from brimline.agents.transcripts.source import Transcript
from brimline.sessions.ledger.context_parts import CATEGORIES, ContextPart, PartReader
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger
from brimline.sessions.ledger.system_parts import find_system_parts

FIXTURES = Path(__file__).parents[2] / "fixtures"
AT = "2026-01-02T03:04:05.000Z"
EPOCH = 1_767_323_045.0  # AT in seconds
SUMMARY = (
    "Another language model started to solve this problem and produced a summary: all is well."
)


def line(kind: str, **payload: object) -> bytes:
    return json.dumps({"timestamp": AT, "type": kind, "payload": payload}).encode()


def item(kind: str, **fields: object) -> bytes:
    return line("response_item", type=kind, **fields)


def message(role: str, *texts: str, **fields: object) -> bytes:
    return item("message", role=role, content=blocks(*texts), **fields)


def blocks(*texts: str) -> list[dict[str, str]]:
    return [{"type": "input_text", "text": text} for text in texts]


def usage(sent: int, output: int, total: int, reasoning: int = 0) -> bytes:
    """A call's usage; `total` is the thread's running total."""
    last = {"input_tokens": sent, "cached_input_tokens": 0, "output_tokens": output}
    last["reasoning_output_tokens"] = reasoning
    totals = {"input_tokens": total, "cached_input_tokens": 0, "output_tokens": 0}
    info = {"last_token_usage": last, "total_token_usage": totals}
    return line("event_msg", type="token_count", info=info)


def pieces_of(*records: bytes) -> list[Piece]:
    return list(read_content(records, get_agent("codex").content_reader()))


def parts_of(*records: bytes) -> list[ContextPart]:
    reader = PartReader()
    return [part for piece in pieces_of(*records) for part in reader.read(piece, 1)]


def ledger_of(folder: Path, *records: bytes) -> ThreadLedger:
    path = folder / "rollout.jsonl"
    path.write_bytes(b"\n".join([line("session_meta", id="s", cwd="/project"), *records, b""]))
    (ledger,) = read_ledger(Transcript("codex", str(path), 0.0, 0)).threads
    return ledger


def tokens_of(ledger: ThreadLedger) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in ledger.entries:
        totals[entry.part.category] = totals.get(entry.part.category, 0) + entry.tokens
    return totals


@pytest.mark.parametrize(
    ("role", "text", "by", "name"),
    [
        (
            "user",
            "# AGENTS.md instructions for /project\n\nBe kind.",
            "memory",
            "/project/AGENTS.md",
        ),
        ("user", "# AGENTS.md instructions\n\nBe kind.", "memory", "AGENTS.md"),
        ("user", "<environment_context>\n</environment_context>", "client", "environment_context"),
        ("user", "<subagent_notification>\n{}", "subagent", "subagent_notification"),
        ("developer", "<skills_instructions>\nA list.", "tools", "skills_instructions"),
        ("developer", "<permissions instructions>Few.", "client", "permissions instructions"),
        ("developer", "Be brief.", "client", "developer message"),
    ],
)
def test_text_of_the_client_has_a_name(role: str, text: str, by: str, name: str) -> None:
    (piece,) = (piece for piece in pieces_of(message(role, text)) if isinstance(piece, AddedText))
    assert (piece.by, piece.name, piece.text) == (by, name, text)


def test_blocks_of_a_message_are_read_one_by_one() -> None:
    client, user = "<environment_context>\n...", "Look at this."
    added, words = pieces_of(message("user", client, "Hello.", user))
    assert added == AddedText("client", "environment_context", client, EPOCH)
    assert words == UserText("Hello.\nLook at this.", EPOCH)


def test_context_of_the_editor_is_not_the_users() -> None:
    text = "# Files mentioned by the user:\n## My request for Codex:\nFix it."
    assert pieces_of(message("user", text)) == [
        AddedText("client", "editor context", "# Files mentioned by the user:\n", EPOCH),
        UserText("\nFix it.", EPOCH),
    ]


def test_hook_context_is_marked_by_its_provenance() -> None:
    metadata = {"content_item_metadata": [{"provenance": {"type": "harness", "hook": True}}]}
    record = message(
        "developer", "Mind the gap.", internal_chat_message_metadata_passthrough=metadata
    )
    assert pieces_of(record)[0] == AddedText("hook", "hook", "Mind the gap.", EPOCH)


def test_images_of_the_user_are_counted_and_their_tags_are_not_his() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    content = [*blocks("<image name=[Image #1]>"), image, *blocks("</image>", "What is it?")]
    pieces = pieces_of(item("message", role="user", content=content))
    assert Images(1, EPOCH) in pieces
    assert [piece.text for piece in pieces if isinstance(piece, UserText)] == ["What is it?"]


def test_images_of_a_result_are_counted() -> None:
    output = [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]
    records = (
        item("function_call", name="view_image", call_id="1", arguments='{"path":"a.png"}'),
        item("function_call_output", call_id="1", output=output),
    )
    assert [(part.category, part.images) for part in parts_of(*records)] == [
        ("tool calls", 0),
        ("tool results", 0),
        ("images", 1),
    ]


def test_lines_before_the_output_count_but_do_not_tell_outputs_apart() -> None:
    heads = [f"Chunk ID: {chunk}\nProcess exited with code 0\nOutput:\n" for chunk in ("a1", "b2")]
    records = [
        item("function_call_output", call_id=head[10:12], output=f"{head}hello") for head in heads
    ]
    one, other = parts_of(*records)
    assert one.size == len(heads[0]) + len("hello")
    assert one.content == other.content


def test_reasoning_is_a_piece_also_without_text() -> None:
    summary = [{"type": "summary_text", "text": "Think."}]
    assert pieces_of(
        item("reasoning", summary=[], content=None), item("reasoning", summary=summary)
    ) == [Reasoning("", EPOCH), Reasoning("Think.", EPOCH)]


@pytest.mark.parametrize("namespace", ["mcp__files__", "mcp__files"])
def test_tool_of_an_mcp_server_has_its_server(namespace: str) -> None:
    record = item("function_call", name="read", namespace=namespace, call_id="1", arguments="{}")
    (part,) = parts_of(record)
    assert (part.tool, part.server) == ("mcp__files__read", "files")


def test_tools_that_a_search_found_have_their_server() -> None:
    names = ("read", "list")
    inner = [{"name": name} for name in names]
    tools = [{"type": "namespace", "name": "mcp__files", "tools": inner}]
    call, found = parts_of(
        item("tool_search_call", call_id="1", arguments={"query": "files"}),
        item("tool_search_output", call_id="1", tools=tools),
    )
    assert (call.category, call.what) == ("tool calls", "tool_search files")
    assert (found.category, found.what, found.server) == ("system and tools", "mcp__files", "files")
    assert (found.size, found.names) == (len(json.dumps(tools[0])), names)


def test_servers_whose_tools_are_searched_for_have_their_line() -> None:
    head, end = "<tools>\nDeferred tool namespaces:\n", "- multi_agent_v1: Agents.\n</tools>"
    lines = {"sails": "- mcp__sails: Ask\n\nsails.\n", "tides": "- mcp__tides: Ask tides.\n"}
    text = head + "".join(lines.values()) + end
    *servers, rest = parts_of(message("developer", text))
    assert {part.server: part.size for part in servers} == {
        name: len(line) for name, line in lines.items()
    }
    assert {part.category for part in (*servers, rest)} == {"system and tools"}
    assert (rest.server, rest.size) == ("", len(head + end))


def test_system_prompt_is_a_part_and_tools_take_the_rest(tmp_path: Path) -> None:
    """Also after a compaction, at the rate of the agent's words."""
    prompt = line("session_meta", id="s", base_instructions={"text": "p" * 8_000})
    ledger = ledger_of(
        tmp_path,
        prompt,
        message("user", "u" * 1_000),
        message("assistant", "a" * 1_000),
        usage(10_000, 250, 10_250),
        line("compacted", message=SUMMARY),
        message("assistant", "b" * 1_000),
        usage(10_500, 250, 20_750),
    )
    parts = {part.kind: part.tokens for part in find_system_parts(ledger)}
    assert abs(parts["system prompt"] - 2_000) <= 1
    assert abs(parts["tools and unrecorded texts"] - (10_000 - 2_000 - 250)) <= 1


def test_results_of_subagents_have_their_category() -> None:
    records = (
        item("function_call", name="wait_agent", namespace="multi_agent_v1", call_id="1"),
        item("function_call_output", call_id="1", output='{"status":"done"}'),
    )
    assert [part.category for part in parts_of(*records)] == ["tool calls", "subagent results"]


def test_web_searches_without_ids_are_told_apart() -> None:
    records = [
        item("web_search_call", action={"type": "search", "query": query})
        for query in ("one", "two")
    ]
    assert pieces_of(records[0])[1] == ToolResult("", at=EPOCH, is_hosted=True)
    assert [(part.what, part.is_hosted) for part in parts_of(*records)] == [
        ("web_search one", False),
        ("web_search one", True),
        ("web_search two", False),
        ("web_search two", True),
    ]


def test_web_search_is_what_its_call_grew_by(tmp_path: Path) -> None:
    """The provider searches within a call, and drops what it found afterwards."""
    searched = (
        message("user", "Who?"),
        message("assistant", "Hm."),
        usage(10_000, 10, 10_000),
        message("user", "Go."),
        item("web_search_call", action={"query": "who"}),
        message("assistant", "Me."),
        usage(15_000, 40, 25_000),
    )
    assert tokens_of(ledger_of(tmp_path, *searched))["tool results"] == 15_000 - 10_010 - 1
    dropped = (message("user", "Thanks."), message("assistant", "Bye."), usage(10_060, 5, 35_060))
    assert tokens_of(ledger_of(tmp_path, *searched, *dropped)).get("tool results", 0) < 50


def compaction(*history: dict[str, object], text: str = "") -> bytes:
    return line("compacted", message=text, replacement_history=list(history))


def kept(role: str, text: str) -> dict[str, object]:
    return {"type": "message", "role": role, "content": blocks(text)}


def test_compaction_keeps_messages_and_a_summary() -> None:
    record = compaction(kept("user", "Go."), kept("assistant", "Yes."), kept("user", SUMMARY))
    assert pieces_of(record) == [
        KeptContent((UserText("Go.", EPOCH), ReplyText("Yes.", EPOCH))),
        SummaryText(SUMMARY, EPOCH),
    ]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (compaction({"type": "compaction", "encrypted_content": "x"}), None),
        (compaction(), None),
        (line("compacted", message="It went well."), "It went well."),
    ],
)
def test_summary_may_be_encrypted_or_not_recorded(record: bytes, text: str | None) -> None:
    assert pieces_of(record)[-1] == SummaryText(text, EPOCH)


def test_compaction_without_a_call_has_no_summary() -> None:
    """By `features.token_budget`: the conversation is dropped."""
    history = [kept("developer", "Be brief.")]
    record = line("compacted", message="", replacement_history=history, compaction_response_id=None)
    assert [type(piece) for piece in pieces_of(record)] == [KeptContent]
    recorded = FIXTURES / "codex/token-budget/home"
    (path,) = recorded.rglob("rollout-*.jsonl")
    read = read_ledger(Transcript("codex", str(path), 0.0, path.stat().st_size))
    (main,) = read.threads
    assert "compaction summary" not in tokens_of(main)
    found = [(each.trigger, each.before) for each in read.session.threads["main"].compactions]
    assert found == [("auto", 21_661), ("auto", 21_646)]  # the fixture's results are cut


def test_first_call_after_a_compaction_is_explained(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        message("user", "a" * 1_000),
        message("assistant", "b" * 1_000),
        usage(10_400, 400, 10_400),
        compaction(
            kept("user", "a" * 1_000), kept("assistant", "b" * 1_000), {"type": "compaction"}
        ),
        message("assistant", "Done."),
        usage(12_800, 10, 23_200),
    )
    assert tokens_of(ledger) == {
        "system and tools": 10_000,
        "user words": 400,
        "agent's words": 400,
        "compaction summary": 2_000,
    }


def test_call_that_writes_the_summary_is_sent_no_tools(tmp_path: Path) -> None:
    """It is one of the thread's: what it lacks is not a result that left."""
    counts = {"input_tokens": 8_900, "cached_input_tokens": 0, "output_tokens": 100}
    ledger = ledger_of(
        tmp_path,
        message("user", "a" * 1_000),
        message("assistant", "b" * 1_000),
        usage(10_400, 400, 10_400),
        message("assistant", "c" * 250),
        line("token_usage_record", usage=counts, thread_token_usage=counts, response_id="r1"),
        line("compacted", message="c" * 250, replacement_history=[], compaction_response_id="r1"),
        message("assistant", "Done."),
        usage(10_100, 10, 30_000),
    )
    assert ledger.balances[1].sent == 8_900
    assert dict(zip(CATEGORIES, ledger.balances[1].categories, strict=True)) == {
        **dict.fromkeys(CATEGORIES, 0),
        "system and tools": 8_100,
        "user words": 400,
        "agent's words": 400,
    }
    assert tokens_of(ledger) == {"system and tools": 10_000, "compaction summary": 100}


def test_summary_by_a_call_without_usage_leaves_the_calls_before_it(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        message("user", "a" * 1_000),
        message("assistant", "Yes."),
        usage(10_400, 10, 10_400),
        line("compacted", message="b" * 250, compaction_response_id="elsewhere"),
    )
    assert [step.start for step in ledger.steps] == ["continued"]
    assert ledger.pending == 100


def test_fork_has_what_it_copied(tmp_path: Path) -> None:
    """The copies have no usage of their own: the first call sends them all."""
    origin = line("session_meta", id="f", forked_from_id="s", cwd="/project")
    copies = (
        message("user", "a" * 1_000),
        message("assistant", "b" * 1_000),
        item("function_call", name="exec_command", call_id="1", arguments="c" * 488),
        usage(10_400, 600, 10_400),
        item("function_call_output", call_id="1", output="d" * 1_000),
    )
    path = tmp_path / "fork.jsonl"
    own = [
        record.replace(b"03:04:05", b"03:09:05")
        for record in (
            message("user", "e" * 1_000),
            message("assistant", "Done."),
            usage(11_800, 10, 22_200),
        )
    ]
    path.write_bytes(b"\n".join([origin, *copies, *own, b""]))
    (ledger,) = read_ledger(Transcript("codex", str(path), 0.0, 0)).threads
    assert len(ledger.steps) == 1
    assert tokens_of(ledger) == {
        "system and tools": 10_000,
        "user words": 800,
        "agent's words": 400,
        "tool calls": 200,
        "tool results": 400,
    }


def test_copied_compaction_of_a_fork_leaves_what_it_kept(tmp_path: Path) -> None:
    records = (
        line("session_meta", id="f", forked_from_id="s", cwd="/project"),
        message("user", "a" * 9_000),
        message("assistant", "b" * 9_000),
        compaction(kept("user", "c" * 1_000), kept("user", SUMMARY)),
    )
    own = (message("user", "d" * 1_000), message("assistant", "Done."), usage(10_835, 10, 10_835))
    later = [record.replace(b"03:04:05", b"03:09:05") for record in own]
    path = tmp_path / "fork.jsonl"
    path.write_bytes(b"\n".join([*records, *later, b""]))
    (ledger,) = read_ledger(Transcript("codex", str(path), 0.0, 0)).threads
    assert tokens_of(ledger) == {
        "system and tools": 9_999,
        "user words": 800,
        "compaction summary": 36,
    }


def fork(folder: Path, name: str, origin: str, *records: bytes, end: int = 5) -> Path:
    """A file that continues another one without repeating its records (since 0.166)."""
    base = {"thread_id": origin, "end_ordinal_exclusive": end}
    path = folder / f"rollout-2-{name}.jsonl"
    meta = line("session_meta", id=name, cwd="/project", forked_from_id=origin, history_base=base)
    path.write_bytes(b"\n".join([meta, *records, b""]))
    return path


def numbered(*records: bytes) -> list[bytes]:
    return [
        json.dumps({"ordinal": number, **json.loads(record)}).encode()
        for number, record in enumerate(records)
    ]


FORKED = (
    line("turn_context", turn_id="t2", cwd="/project"),
    message("user", "d" * 1_000),
    message("assistant", "Done."),
    usage(11_200, 10, 21_600),
)


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """A folder with a session that went on after it was forked."""
    folder = tmp_path / "sessions" / "2026" / "01" / "02"
    folder.mkdir(parents=True)
    records = numbered(
        line("session_meta", id="aaaa", cwd="/project"),
        message("user", "a" * 1_000),
        message("assistant", "b" * 1_000),
        usage(10_400, 400, 10_400),
        line("event_msg", type="task_complete"),
        message("user", "c" * 9_000),
        message("assistant", "Later."),
        usage(14_400, 10, 24_800),
    )
    (folder / "rollout-1-aaaa.jsonl").write_bytes(b"\n".join([*records, b""]))
    return folder


def test_fork_has_what_is_in_the_file_that_it_continues(sessions: Path) -> None:
    """The calls before the fork are known, but they are not its own."""
    path = fork(sessions, "bbbb", "aaaa", *FORKED)
    ledger = read_ledger(Transcript("codex", str(path), 0.0, 0))
    (thread,) = ledger.threads
    assert ledger.session.id == "bbbb"
    assert len(thread.steps) == len(thread.balances) == len(ledger.session.threads["main"].calls)
    assert {entry.place for entry in thread.entries} == {0}
    assert [(entry.part.category, entry.tokens, entry.part.record) for entry in thread.entries] == [
        ("system and tools", 10_000, 0),
        ("user words", 400, 0),
        ("agent's words", 400, 0),
        ("user words", 400, 3),
    ]


def test_fork_of_a_fork_has_what_is_in_both_files(sessions: Path) -> None:
    archived = sessions.parents[3] / "archived_sessions"
    archived.mkdir()
    fork(archived, "bbbb", "aaaa", *numbered(*FORKED), end=5)
    more = (FORKED[0], message("user", "e" * 1_000), message("assistant", "Yes."))
    path = fork(sessions, "cccc", "bbbb", *more, usage(11_610, 10, 33_210), end=99)
    (thread,) = read_ledger(Transcript("codex", str(path), 0.0, 0)).threads
    assert len(thread.steps) == 1
    assert tokens_of(thread)["user words"] == 1_200


@pytest.mark.parametrize("origin", ["dddd", "bbbb", ""])
def test_fork_of_a_file_that_is_gone_is_read_alone(sessions: Path, origin: str) -> None:
    path = fork(sessions, "bbbb", origin, *FORKED)
    (thread,) = read_ledger(Transcript("codex", str(path), 0.0, 0)).threads
    assert tokens_of(thread) == {"system and tools": 10_800, "user words": 400}


@pytest.mark.parametrize(
    ("turns", "tokens"),
    [
        (1, {"memory files": 800, "user words": 800, "agent's words": 400}),
        (2, {"memory files": 800, "user words": 400}),
    ],
)
def test_rollback_returns_to_the_context_before_its_turns(
    tmp_path: Path, turns: int, tokens: dict[str, int]
) -> None:
    """The memory file is in front of the first turn, and stays."""
    typed = line("event_msg", type="user_message")
    first = sum(tokens.values()) + 10_000
    ledger = ledger_of(
        tmp_path,
        message("user", "# AGENTS.md instructions for /p\n" + "a" * 1_969),
        message("user", "b" * 1_000),
        typed,
        message("assistant", "c" * 1_000),
        usage(11_200, 400, 11_200),
        message("user", "d" * 3_000),
        typed,
        message("assistant", "Hm."),
        usage(12_800, 1, 24_001),
        line("event_msg", type="thread_rolled_back", num_turns=turns),
        message("user", "e" * 1_000),
        typed,
        message("assistant", "Yes."),
        usage(first, 1, 40_000),
    )
    assert tokens_of(ledger) == {"system and tools": 10_000, **tokens}
