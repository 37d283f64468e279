"""The ledger of Pi's sessions: every kind of entry that goes into the context."""

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
    SystemPrompt,
    ToolResult,
    UserText,
    read_content,
)
from brimline.agents.transcripts.source import Places, Transcript
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger

AT = "2026-01-02T03:04:05.000Z"
EPOCH = 1_767_323_045.0  # AT in seconds
CONTEXT = '<project_context>\n<project_instructions path="/p/AGENTS.md">\n{}</project_instructions>'
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


def entry(kind: str, **fields: object) -> dict[str, object]:
    return {"type": kind, "timestamp": AT, **fields}


def message(role: str, content: object = "", **fields: object) -> dict[str, object]:
    return entry("message", message={"role": role, "content": content, **fields})


def reply(text: str, sent: int, output: int) -> dict[str, object]:
    counts = {"input": sent, "output": output, "cacheRead": 0, "cacheWrite": 0}
    content = [{"type": "text", "text": text}]
    return message("assistant", content, usage=counts, responseId=f"response-{sent}-{output}")


def pieces_of(*entries: dict[str, object]) -> list[Piece]:
    records = [json.dumps(each).encode() for each in entries]
    return [
        piece
        for piece in read_content(records, get_agent("pi").content_reader())
        if not isinstance(piece, Location)
    ]


def ledger_of(folder: Path, *entries: dict[str, object]) -> ThreadLedger:
    """The ledger of a session whose entries follow each other, if they have no parent."""
    lines = [entry("session", version=3, id="s", cwd="/p")]
    parent: str | None = None
    for number, each in enumerate(entries):
        lines.append({"id": f"e{number}", "parentId": parent, **each})
        parent = f"e{number}"
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (ledger,) = read_ledger(Transcript("pi", str(path), 0.0, 0)).threads
    return ledger


def tokens_of(ledger: ThreadLedger) -> dict[str, int]:
    totals: dict[str, int] = {}
    for each in ledger.entries:
        totals[each.part.category] = totals.get(each.part.category, 0) + each.tokens
    return totals


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            message("bashExecution", command="ls", output="a.txt"),
            AddedText("user", "!ls", "ls\na.txt", EPOCH),
        ),
        (
            message("custom", "Mind the gap.", customType="warner"),
            AddedText("hook", "warner", "Mind the gap.", EPOCH),
        ),
        (
            entry("custom_message", customType="warner", content=[{"type": "text", "text": "Hi."}]),
            AddedText("hook", "warner", "Hi.", EPOCH),
        ),
        (message("developer", "Go."), AddedText("client", "developer message", "Go.", EPOCH)),
        (entry("branch_summary", summary="It failed."), SummaryText("It failed.", EPOCH)),
    ],
)
def test_entry_that_is_not_the_users_has_a_name(record: dict[str, object], expected: Piece) -> None:
    assert pieces_of(record) == [expected]


def test_system_prompt_has_memory_files_and_tools() -> None:
    tool = {"name": "read", "description": "Read a file."}
    sections = {"preamble": "You are.", "project_context": CONTEXT.format("Be kind.\n")}
    memory, system = pieces_of(message("system", sections=sections, toolsAdded=[tool]))
    assert memory == AddedText("memory", "/p/AGENTS.md", "Be kind.\n", EPOCH)
    assert isinstance(system, SystemPrompt)
    assert [(part.name, part.text) for part in system.parts] == [
        ("system prompt", "You are."),
        ("tool read", json.dumps(tool)),
    ]


def test_command_that_the_user_keeps_from_the_model_is_no_content() -> None:
    record = message("bashExecution", command="ls", output="a.txt", excludeFromContext=True)
    assert pieces_of(record) == []


def test_images_of_the_user_and_of_results_are_counted() -> None:
    content = [{"type": "text", "text": "What is it?"}, IMAGE]
    assert pieces_of(message("user", content)) == [
        UserText("What is it?", EPOCH),
        Images(1, EPOCH),
    ]
    (result,) = pieces_of(message("toolResult", [IMAGE, IMAGE], toolCallId="1"))
    assert isinstance(result, ToolResult)
    assert result.images == 2


def test_image_that_the_model_cannot_take_is_not_counted() -> None:
    note = "Read image file [image/png]\n[Current model does not support images. It is omitted.]"
    content = [{"type": "text", "text": note}, IMAGE]
    (result,) = pieces_of(message("toolResult", content, toolCallId="1"))
    assert isinstance(result, ToolResult)
    assert result.images == 0


def test_thinking_is_reasoning() -> None:
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}]
    assert pieces_of(message("assistant", content)) == [
        Reasoning("Hm.", EPOCH),
        ReplyText("Yes.", EPOCH),
    ]


@pytest.mark.parametrize(
    ("first", "records"),
    [
        ({"firstKeptEntryId": "b"}, 1),
        ({"firstKeptEntryIndex": 0}, 2),  # version 1
        ({"firstKeptEntryId": "z"}, 0),
        ({}, 0),
    ],
)
def test_compaction_has_a_summary_and_keeps_records(first: dict[str, object], records: int) -> None:
    system = {"role": "system", "sections": {"project_context": CONTEXT.format("Be kind.\n")}}
    pieces = pieces_of(
        entry("custom", id="a"),
        entry("custom", id="b"),
        entry("compaction", id="c", summary="All is well.", systemMessage=system, **first),
    )
    assert pieces == [
        KeptContent(records=records),
        AddedText("memory", "/p/AGENTS.md", "Be kind.\n", EPOCH),
        SystemPrompt((AddedText("tools", "system prompt", "", kind="system prompt"),)),
        SummaryText("All is well.", EPOCH),
    ]


def test_kept_entries_stay_in_the_context(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        message("user", "a" * 1_000),
        reply("b" * 500, 10_400, 200),
        message("user", "c" * 1_000),
        reply("d" * 500, 11_000, 200),
        entry("compaction", summary="e" * 500, firstKeptEntryId="e2"),
        message("user", "f" * 1_000),
        reply("g", 11_200, 1),
    )
    assert tokens_of(ledger) == {
        "system and tools": 10_000,
        "user words": 800,
        "agent's words": 200,
        "compaction summary": 200,
    }


def test_memory_file_stays_when_the_first_prompt_is_edited(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        message("system", sections={"project_context": CONTEXT.format("a" * 1_000)}),
        message("user", "b" * 1_000),
        reply("c", 10_800, 1),
        {**message("user", "d" * 500), "parentId": "e0"},
        reply("e", 10_600, 1),
    )
    assert tokens_of(ledger) == {
        "system and tools": 10_088,
        "memory files": 312,
        "user words": 200,
    }


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("AGENTS.md", "CLAUDE.md"), "AGENTS.md"),
        (("AGENTS.override.md", "AGENTS.md"), "AGENTS.override.md"),
        (("CLAUDE.md",), "CLAUDE.md"),
    ],
)
def test_memory_files_of_older_versions_are_those_on_disk(
    tmp_path: Path, names: tuple[str, ...], expected: str
) -> None:
    home, project = tmp_path / "home", tmp_path / "work" / "project"
    (home / ".pi" / "agent").mkdir(parents=True)
    project.mkdir(parents=True)
    for name in names:
        (project / name).write_text("a" * 1_000)
    (project.parent / "AGENTS.md").mkdir()
    (tmp_path / "AGENTS.md").write_text("b" * 1_000)
    (home / ".pi" / "agent" / "AGENTS.md").write_text("c" * 1_000)
    found = get_agent("pi").memory_files(Places(home=home, env={}), str(project))
    files = (home / ".pi" / "agent" / "AGENTS.md", project / expected, tmp_path / "AGENTS.md")
    assert found[:3] == [str(file) for file in files]
    assert get_agent("pi").memory_files(Places(home=tmp_path, env={}), None) == []


def test_memory_files_on_disk_do_not_count_beside_a_recorded_system_prompt(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("a" * 1_000)
    session = entry("session", version=3, id="s", cwd=str(tmp_path))
    recorded = message("system", sections={"preamble": "You are."})
    for system, tokens in (([recorded], {}), ([], {"memory files": 312})):
        path = tmp_path / "session.jsonl"
        lines = [session, *system, message("user", "b" * 1_000), reply("c", 10_400, 1)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        places = Places(home=tmp_path / "home", env={})
        (ledger,) = read_ledger(Transcript("pi", str(path), 0.0, 0), places).threads
        named = {key: value for key, value in tokens_of(ledger).items() if key == "memory files"}
        assert named == tokens
