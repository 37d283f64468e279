"""What Claude Code adds to a prompt without a record of its whole text."""

import json
from pathlib import Path
from typing import Any

from brimline.agents.transcripts.source import Transcript
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger

Json = dict[str, Any]


def record(kind: str, **fields: Any) -> Json:
    return {"type": kind, "sessionId": "s", "userType": "external", "isSidechain": False, **fields}


def user(content: object, **fields: Any) -> Json:
    return record("user", message={"role": "user", "content": content}, **fields)


def reply(id: str, sent: int, *content: Json) -> Json:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": sent - 10,
             "cache_read_input_tokens": 0, "output_tokens": 0}  # fmt: skip
    message = {"id": id, "role": "assistant", "model": "claude-opus-4-6", "usage": usage}
    return record("assistant", message={**message, "content": list(content)})


def attachment(type: str, **fields: Any) -> Json:
    return record("attachment", attachment={"type": type, **fields})


def read_records(tmp_path: Path, *records: Json) -> ThreadLedger:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    (thread,) = read_ledger(Transcript("claude", str(path), 0.0, 0)).threads
    return thread


def tokens_by_name(ledger: ThreadLedger) -> dict[str, int]:
    return {entry.part.what: entry.tokens for entry in ledger.entries}


def after_compaction(tmp_path: Path, *before: Json) -> ThreadLedger:
    boundary = record("system", subtype="compact_boundary")
    summary = user("s" * 5_000, isCompactSummary=True)
    first = (user("u" * 100), reply("m1", 10_040), *before, reply("m2", 90_000))
    return read_records(tmp_path, *first, boundary, summary, reply("m3", 30_000))


def test_files_that_old_versions_read_again_take_what_the_summary_does_not(tmp_path: Path) -> None:
    ledger = after_compaction(tmp_path)
    tokens = tokens_by_name(ledger)
    assert (tokens["summary"], tokens["files that the client read again"]) == (2_000, 18_000)
    assert ledger.unexplained == 0


def test_version_with_attachments_records_the_files_that_it_reads_again(tmp_path: Path) -> None:
    ledger = after_compaction(tmp_path, attachment("date", date="2026-01-02"))
    assert "files that the client read again" not in tokens_by_name(ledger)
    assert ledger.unexplained == 18_000


def test_definitions_of_tools_that_were_searched_are_named(tmp_path: Path) -> None:
    search = {"type": "tool_use", "id": "t1", "name": "ToolSearch", "input": {"query": "todo"}}
    names = ("TaskCreate", "mcp__tides__high")
    found = [{"type": "tool_reference", "tool_name": name} for name in names]
    result = user([{"type": "tool_result", "tool_use_id": "t1", "content": found}])
    before = (user("u" * 100), reply("m1", 10_000, search))
    ledger = read_records(tmp_path, *before, result, reply("m2", 13_000))
    own, server = (each for each in ledger.entries if not each.part.is_recorded)
    assert {own.part.category, server.part.category} == {"system and tools"}
    assert (own.part.server, server.part.server) == ("", "tides")
    assert 2_900 < own.tokens + server.tokens <= 3_000
    assert abs(own.tokens - server.tokens) <= 1
    assert ledger.unexplained == 0


def test_nested_memory_counts_as_it_is_sent(tmp_path: Path) -> None:
    """Not as it is on disk, with its comments and its front matter."""
    sent, raw = "m" * 1_000, "<!-- " + "h" * 9_000 + " -->" + "m" * 1_000
    content = {"path": "/p/a/CLAUDE.md", "content": sent, "rawContent": raw}
    nested = attachment("nested_memory", path="/p/a/CLAUDE.md", content=content)
    ledger = read_records(
        tmp_path, reply("m1", 10_000), nested, user("u" * 1_000), reply("m2", 11_000)
    )
    shares = tokens_by_name(ledger)
    assert 400 < shares["/p/a/CLAUDE.md"] < 500
