"""The fast reader of Claude Code's transcripts gives the same as reading every record."""

import json
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.claude.fast_reader import (
    FIRST_TAIL_BYTES,
    ID_KEY,
    MAX_TAIL_BYTES,
    NEEDLES,
    FastReader,
    TailReader,
    read_every_record,
)
from brimline.agents.claude.transcript import TranscriptParser
from brimline.agents.transcripts.line_filter import CompiledLineFilter, LineFilter, PythonLineFilter
from brimline.agents.transcripts.source import START, Cursor, Reader
from brimline.context.events import MAIN
from brimline.context.tracker import Session, Thread, fold
from brimline.context.tracker.state import PromptChange
from hypothesis_examples import examples

Json = dict[str, Any]
Lines: TypeAlias = list[bytes]
Caching: TypeAlias = Literal["prefix", "implicit"]

SIZES = (256, 300, 1_024, 4_096, 65_536, 1 << 20)
PICKERS: list[type[LineFilter]] = [
    PythonLineFilter,
    *([CompiledLineFilter] if CompiledLineFilter.library else []),
]
SYSTEM = 15_000
"""The part of every prompt that the cache keeps over a compaction: system prompt and tools."""

ZERO = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 0}  # fmt: skip
LOOKALIKE = (
    'it says {"id":"m0","usage":{"input_tokens":5,"output_tokens":9}} and "isCompactSummary":true '
    'and {"type":"system","subtype":"compact_boundary"}}{"'
)


# Parts of transcripts.


def encode_line(record: Json) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def timestamp(tick: int) -> str:
    return f"2026-11-14T{10 + tick // 3600:02}:{tick // 60 % 60:02}:{tick % 60:02}.000Z"


def record(kind: str, tick: int = 0, **fields: Any) -> Json:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/project",
        "sessionId": "s1",
        "version": "2.1.325",
        "gitBranch": "main" if tick % 60 < 30 else "feature/x",
        "type": kind,
        "uuid": f"u{tick}",
        "timestamp": timestamp(tick),
        **fields,
    }


def usage(fresh: int, read: int, write: int, output: int = 10) -> Json:
    """A usage in the client's order of fields."""
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


def assistant(id: str, used: Json, tick: int = 0, text: str = "so", **fields: Any) -> Json:
    """The record of a call, in the client's order of fields."""
    message = {
        "model": "claude-sonnet-4-5",
        "id": id,
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "usage": used,
    }
    head = record("assistant", tick, **fields)
    kind, uuid, at = head.pop("type"), head.pop("uuid"), head.pop("timestamp")
    return {**head, "message": message, "type": kind, "uuid": uuid, "timestamp": at}


def call(id: str, sent: int = 20_000, output: int = 10, tick: int = 0, **fields: Any) -> bytes:
    """A line of a call with all but 600 tokens of its prompt from the cache."""
    return encode_line(assistant(id, usage(3, sent - 603, 600, output), tick, **fields))


def fresh(id: str, sent: int = 20_000, tick: int = 0, **fields: Any) -> bytes:
    """A line of a call with only the system prompt from the cache."""
    return encode_line(assistant(id, usage(3, SYSTEM, sent - SYSTEM - 3), tick, **fields))


def bare(id: str, tick: int = 0, **fields: Any) -> bytes:
    """A line of a reply without usage."""
    reply = assistant(id, {}, tick, **fields)
    del reply["message"]["usage"]
    return encode_line(reply)


def user(text: str, tick: int = 0, **fields: Any) -> bytes:
    message = {"role": "user", "content": [{"type": "tool_result", "content": text}]}
    return encode_line(record("user", tick, message=message, **fields))


def boundary(tick: int = 0, **fields: Any) -> bytes:
    metadata = {"trigger": "auto", "preTokens": 167_000 + tick}
    fields_written = {"subtype": "compact_boundary", "compactMetadata": metadata, **fields}
    return encode_line(record("system", tick, **fields_written))


def summary(tick: int = 0, **fields: Any) -> bytes:
    message = {"role": "user", "content": "This session is being continued."}
    return encode_line(record("user", tick, message=message, isCompactSummary=True, **fields))


def trim(tick: int = 0, **fields: Any) -> bytes:
    """A record of dropped tool results."""
    return encode_line(record("system", tick, subtype="microcompact_boundary", **fields))


def join_lines(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


# What is compared.


def read_session(reader: Reader, before: Session | None = None) -> Session:
    return fold(before or Session(agent="claude"), reader)


def figures(session: Session) -> dict[str, object]:
    """Return everything that is read of a session, its calls in order."""
    order = {name: list(thread.calls) for name, thread in session.threads.items()}
    return {
        "threads": session.threads,
        "order": order,
        "id": session.id,
        "project": session.project,
        "version": session.version,
        "title": session.title,
        "unmetered": session.unmetered,
    }


def check_same(
    path: Path,
    data: bytes,
    sizes: Sequence[int] = SIZES,
    pickers: Sequence[type[LineFilter]] = PICKERS,
) -> Session:
    """Both readers agree on a transcript; return the session of the full one."""
    path.write_bytes(data)
    oracle = read_every_record(str(path))
    session = read_session(oracle)
    for size, picker in product(sizes, pickers):
        quick = FastReader(str(path), chunk_bytes=size, line_filter=picker(NEEDLES, ID_KEY))
        assert figures(read_session(quick)) == figures(session), (
            f"chunks of {size}, {picker.__name__}"
        )
        assert quick.cursor.offset == oracle.cursor.offset, f"chunks of {size}, {picker.__name__}"
    return session


def main_thread(session: Session) -> Thread:
    return session.threads[MAIN]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s1.jsonl"


# Calls and their copies.


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_adjacent_copies_are_one_call_with_the_last_output(path: Path, copies: int) -> None:
    lines = [call("m1", output=min(1, copies - 1 - i) or 250, tick=i) for i in range(copies)]
    session = check_same(path, join_lines([user("go"), *lines, call("m2", 21_000, tick=9)]))
    assert list(main_thread(session).calls) == ["m1", "m2"]
    assert main_thread(session).calls["m1"].usage.output == 250


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_copies_with_tool_results_between_are_one_call(path: Path, copies: int) -> None:
    lines: Lines = []
    for i in range(copies):
        lines += [call("m1", output=1 + i, tick=2 * i), user("x" * 400, tick=2 * i + 1)]
    session = check_same(path, join_lines([*lines, call("m2", 21_000, tick=20)]))
    assert [c.usage.output for c in main_thread(session).calls.values()] == [copies, 10]


def unnamed(tick: int, parent: int, sent: int = 20_000, **message: Any) -> bytes:
    """A line of a call without a message id; its reply calls a tool, which has one."""
    reply = assistant("", usage(3, sent - 603, 600), tick, parentUuid=f"u{parent}")
    tool: Json = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    reply["message"] |= {"id": None, "content": [tool], **message}
    return encode_line(reply)


@pytest.mark.parametrize("id", [None, ""], ids=["null", "empty"])
def test_copies_of_a_call_without_an_id_are_one_call(path: Path, id: str | None) -> None:
    lines = [user("go"), unnamed(1, 0, id=id), unnamed(2, 1, id=id), user("x", 3)]
    lines += [unnamed(4, 3, 21_000, id=id), unnamed(5, 4, 21_000, id=id, content=[])]
    session = check_same(path, join_lines(lines))
    assert list(main_thread(session).calls) == ["u1", "u4"]


def test_replies_with_null_counts_are_unmetered(path: Path) -> None:
    counts = {"input_tokens": None, "output_tokens": None}
    nulls = [unnamed(tick, tick - 1, id="m2", usage=counts) for tick in (2, 3)]
    session = check_same(path, join_lines([call("m1", tick=1), *nulls, user("x", 4)]))
    assert (list(main_thread(session).calls), session.unmetered) == (["m1"], 2)


@pytest.mark.parametrize("separators", [(", ", ": "), (",", " : "), (" , ", " :")], ids=str)
def test_blanks_around_colons_hide_a_title_or_a_window(
    path: Path, separators: tuple[str, str]
) -> None:
    """As in a file that another program has written again."""
    lines = [
        call("m1"),
        encode_line({"type": "ai-title", "aiTitle": "A title", "sessionId": "s1"}),
        encode_line(record("user", 1, toolUseResult={"resolvedModel": "claude-sonnet-4-5[1m]"})),
        call("m2", 21_000, tick=2),
        summary(3),
    ]
    spaced = (json.dumps(json.loads(line), separators=separators).encode() for line in lines)
    session = check_same(path, join_lines(spaced))
    assert (session.title, list(main_thread(session).calls)) == ("A title", ["m1", "m2"])
    assert session.observed_windows == {"claude-sonnet-4-5": 1_000_000}
    assert len(main_thread(session).compactions) == 1
    tail = read_session(TailReader(str(path)))
    assert figures(tail) == figures(session)


def test_late_copy_changes_the_output_but_not_the_context(path: Path) -> None:
    lines = [call("m1"), call("m2", 22_000), call("m1", output=99), user("x")]
    session = check_same(path, join_lines(lines))
    assert main_thread(session).current == "m2"
    assert main_thread(session).calls["m1"].usage.output == 99


def test_copy_before_one_without_usage_counts(path: Path) -> None:
    bare = assistant("m1", usage(3, 19_000, 997))
    bare["message"]["usage"] = None
    session = check_same(
        path, join_lines([call("m0"), call("m1", output=7), encode_line(bare), user("x")])
    )
    assert main_thread(session).calls["m1"].usage.output == 7


def test_copy_before_a_malformed_one_counts(path: Path) -> None:
    session = check_same(
        path, join_lines([call("m1", output=7), call("m1", output=8)[:-5], user("x")])
    )
    assert main_thread(session).calls["m1"].usage.output == 7


def test_another_id_before_that_of_the_message_does_not_merge_calls(path: Path) -> None:
    lines = [
        encode_line({"device": {"id": "d1"}, **assistant(f"m{i}", usage(3, 19_000, 997), tick=i)})
        for i in range(5)
    ]
    assert len(main_thread(check_same(path, join_lines(lines))).calls) == 5


def test_synthetic_reply_is_no_call(path: Path) -> None:
    made_up = assistant("x", ZERO)
    made_up["message"]["model"] = "<synthetic>"
    session = check_same(
        path, join_lines([call("m1"), encode_line(made_up), encode_line(made_up), user("x")])
    )
    assert list(main_thread(session).calls) == ["m1"]


def test_usage_in_progress_and_tool_results_is_no_call(path: Path) -> None:
    nested = assistant("sub", usage(1, 2, 3))["message"]
    lines = [
        call("m1"),
        encode_line(record("progress", data={"message": {"message": nested}})),
        encode_line(record("user", message={"role": "user", "content": []},
                      toolUseResult={"usage": nested["usage"], "id": "m1"})),
        call("m2", 21_000),
    ]  # fmt: skip
    assert list(main_thread(check_same(path, join_lines(lines))).calls) == ["m1", "m2"]


def test_quoted_usage_boundary_or_summary_is_text(path: Path) -> None:
    lines = [
        user(LOOKALIKE),
        call("m1", text=LOOKALIKE),
        user(LOOKALIKE, toolUseResult={"stdout": LOOKALIKE}),
        call("m2", 21_000),
        call("m2", 21_000, text=LOOKALIKE),
    ]
    session = check_same(path, join_lines(lines))
    assert list(main_thread(session).calls) == ["m1", "m2"]
    assert main_thread(session).compactions == ()


def test_same_keys_in_the_json_of_a_tool_are_ignored(path: Path) -> None:
    quoted = {
        "output_tokens": 5,
        "isCompactSummary": True,
        "subtype": "compact_boundary",
        "id": "m1",
    }
    lines = [
        call("m1"),
        user("x", toolUseResult=quoted),
        user("x", toolUseResult={"isCompactSummary": True}),
        fresh("m2", 21_000),
    ]
    session = check_same(path, join_lines(lines))
    assert list(main_thread(session).calls) == ["m1", "m2"]
    assert main_thread(session).compactions == ()


def reordered(id: str, tick: int) -> bytes:
    """A call as a proxy writes it: usage first, fields in another order, one unknown."""
    line_record = assistant(id, {}, tick)
    message = line_record["message"]
    used = {"output_tokens": 9, "total": 20_009, "cache_read_input_tokens": 19_000 + tick,
            "input_tokens": 1_000}  # fmt: skip
    line_record["message"] = {"usage": used, **{k: v for k, v in message.items() if k != "usage"}}
    return encode_line(line_record)


def test_order_of_fields_does_not_matter(path: Path) -> None:
    lines = [reordered("m1", 0), reordered("m1", 0), reordered("m2", 100), reordered("m3", 200)]
    session = check_same(path, join_lines(lines))
    assert [c.usage.sent for c in main_thread(session).calls.values()] == [20_000, 20_100, 20_200]


def test_id_of_a_tool_use_before_that_of_the_message_is_not_taken(path: Path) -> None:
    lines: Lines = []
    for i in range(4):
        line_record = assistant(f"m{i // 2}", usage(3, 19_000, 997, output=i), tick=i)
        message = line_record["message"]
        content: list[Json] = [{"type": "tool_use", "id": f"t{i // 2}", "input": {}}]
        line_record["message"] = {
            "content": content,
            **{k: v for k, v in message.items() if k != "content"},
        }
        lines.append(encode_line(line_record))
    session = check_same(path, join_lines(lines))
    assert [c.usage.output for c in main_thread(session).calls.values()] == [1, 3]


def test_spaces_after_colons_and_commas_do_not_matter(path: Path) -> None:
    records = [json.loads(line) for line in [
        call("m1", tick=1), call("m1", output=50, tick=2), user("x"), boundary(3), summary(4),
        fresh("m2", 22_000, tick=5),
    ]]  # fmt: skip
    session = check_same(path, join_lines(json.dumps(r).encode() for r in records))
    assert main_thread(session).cycle == 1
    assert main_thread(session).calls["m1"].usage.output == 50


# Compactions.


def check_compactions(session: Session, count: int) -> Session:
    """Check the number of compactions of the main thread; return the session."""
    assert len(main_thread(session).compactions) == main_thread(session).cycle == count
    return session


def test_boundary_and_summary_are_one_compaction(path: Path) -> None:
    lines = [call("m1", 160_000), boundary(1), summary(2), fresh("m2", 30_000, 3)]
    session = check_compactions(check_same(path, join_lines(lines)), 1)
    assert main_thread(session).compactions[0].after == 30_000


def test_summary_without_a_boundary_is_a_compaction(path: Path) -> None:
    """Clients of 1.0.x write no boundary."""
    lines = [call("m1", 160_000), summary(2), fresh("m2", 30_000, 3), call("m3", 31_000, tick=4)]
    check_compactions(check_same(path, join_lines(lines)), 1)


def test_boundary_without_a_summary_is_a_compaction(path: Path) -> None:
    lines = [call("m1", 160_000), boundary(1), user("go on"), fresh("m2", 30_000, 3)]
    check_compactions(check_same(path, join_lines(lines)), 1)


def test_context_after_a_final_compaction_is_unknown(path: Path) -> None:
    session = check_compactions(
        check_same(path, join_lines([call("m1", 160_000), boundary(1), summary(2)])), 1
    )
    assert main_thread(session).current is None


def test_two_boundaries_in_a_row_are_two_compactions(path: Path) -> None:
    lines = [call("m1", 160_000), boundary(1), summary(2), user("x"), boundary(3), summary(4),
             fresh("m2", 25_000, 5)]  # fmt: skip
    check_compactions(check_same(path, join_lines(lines)), 2)


def test_two_summaries_in_a_row_are_two_compactions(path: Path) -> None:
    lines = [call("m1", 160_000), summary(1), summary(2), fresh("m2", 25_000, 5)]
    check_compactions(check_same(path, join_lines(lines)), 2)


def test_summary_after_a_call_is_not_of_the_boundary_before_it(path: Path) -> None:
    lines = [call("m1", 160_000), boundary(1), fresh("m2", 25_000, 2), summary(3),
             fresh("m3", 26_000, 4)]  # fmt: skip
    check_compactions(check_same(path, join_lines(lines)), 2)


@pytest.mark.parametrize("between", [0, 500, 3_000])
@pytest.mark.parametrize("size", [256, 1_000, 4_096])
def test_boundary_and_summary_in_two_chunks_are_one_compaction(
    path: Path, between: int, size: int
) -> None:
    for shift in range(0, size, size // 8):
        lines = [user("x" * shift), call("m1", 160_000), boundary(1), user("y" * between),
                 summary(2), user("z" * between), fresh("m2", 30_000, 3)]  # fmt: skip
        check_compactions(check_same(path, join_lines(lines), sizes=[size]), 1)


def test_file_may_begin_with_a_summary(path: Path) -> None:
    check_compactions(
        check_same(path, join_lines([summary(0), fresh("m1", 30_000, 1), call("m2", 31_000)])), 1
    )


def test_compactions_are_found_without_any_cache(path: Path) -> None:
    lines: Lines = []
    for i in range(6):
        lines += [encode_line(assistant(f"m{i}", usage(150_000 + i, 0, 0), tick=10 * i))]
        lines += [boundary(10 * i + 1), summary(10 * i + 2)] if i % 2 else []
    check_compactions(check_same(path, join_lines(lines)), 3)


def test_compaction_is_found_if_only_the_call_after_it_was_cached(path: Path) -> None:
    lines = [
        encode_line(assistant("m1", usage(150_000, 0, 0), 1)),
        boundary(2),
        summary(3),
        encode_line(assistant("m2", usage(14_000, SYSTEM, 0), 4)),
    ]
    check_compactions(check_same(path, join_lines(lines)), 1)


def test_compaction_is_found_if_only_the_system_prompt_was_cached(path: Path) -> None:
    lines = [
        encode_line(assistant("m1", usage(140_000, SYSTEM, 0), 1)),
        boundary(2),
        summary(3),
        encode_line(assistant("m2", usage(14_000, SYSTEM, 0), 4)),
    ]
    check_compactions(check_same(path, join_lines(lines)), 1)


def test_call_that_reads_the_cache_across_an_undone_compaction(path: Path) -> None:
    lines = [call("m1", 160_000, tick=1), boundary(2), summary(3), call("m2", 161_000, tick=4)]
    check_compactions(check_same(path, join_lines(lines)), 1)


def test_copy_after_a_compaction_is_no_call_after_it(path: Path) -> None:
    lines = [call("m1", 160_000, tick=1), boundary(2), summary(3), call("m1", 160_000, tick=4)]
    session = check_compactions(check_same(path, join_lines(lines)), 1)
    assert main_thread(session).current is None


def test_dropped_tool_results_make_the_context_unknown(path: Path) -> None:
    session = check_same(path, join_lines([call("m1", 160_000), trim(1), fresh("m2", 100_000, 2)]))
    assert (main_thread(session).compactions, main_thread(session).current) == ((), "m2")
    session = check_same(path, join_lines([call("m1", 160_000), trim(1), user("x")]))
    assert main_thread(session).current is None


def test_preserved_messages_after_a_compaction_are_no_calls(path: Path) -> None:
    preserved = [encode_line(assistant(f"m{i}", ZERO, i)) for i in range(3)]
    before = [call(f"m{i}", 150_000 + 1_000 * i, tick=i) for i in range(3)]
    lines = [*before, boundary(5), *preserved, summary(6), *preserved, fresh("m4", 40_000, 7)]
    session = check_compactions(check_same(path, join_lines(lines)), 1)
    assert list(main_thread(session).calls) == ["m0", "m1", "m2", "m4"]


def test_client_updated_during_a_session(path: Path) -> None:
    lines = [
        call("m1", 150_000, version="2.1.20"),
        boundary(1, version="2.1.22"),
        summary(2, version="2.1.22"),
        fresh("m2", 30_000, 3, version="2.1.22"),
        call("m3", 31_000, tick=4, version="2.1.91"),
    ]
    assert check_same(path, join_lines(lines)).version == "2.1.91"


def test_hook_that_runs_when_a_session_is_resumed_is_read(path: Path) -> None:
    """Before 2.1.91 it is recorded as progress, then as an attachment."""
    hook = {"hookEvent": "SessionStart", "hookName": "SessionStart:resume"}
    quoted = user(json.dumps(hook, separators=(",", ":")), 5)
    for kind, field in (("progress", "data"), ("attachment", "attachment")):
        resumed = encode_line(record(kind, 2, **{field: {"type": "hook", **hook}}))
        lines = [call("m1"), resumed, resumed, call("m2", 21_000, tick=3), quoted]
        session = check_same(path, join_lines([*lines, call("m3", 22_000, tick=6)]))
        assert main_thread(session).changes == (PromptChange(1, "resume"),)


HOOK_KEY: Json = {"hookName": "SessionStart:resume"}


@pytest.mark.parametrize("text", ["<local-command-stdout>", "Sonnet 4.5 (1M context) <noreply@x>"])
def test_resume_is_missed_if_its_hook_prints_evidence_of_a_window(path: Path, text: str) -> None:
    resumed = encode_line(record("attachment", 2, attachment={**HOOK_KEY, "content": text}))
    session = check_same(path, join_lines([call("m1"), resumed, call("m2", 21_000, tick=3)]))
    assert main_thread(session).changes == (PromptChange(1, "resume"),)


def test_call_is_lost_if_the_input_of_its_tool_has_the_key_of_a_resume(path: Path) -> None:
    used = assistant("m2", usage(3, 20_000, 600), 2)
    used["message"]["content"] = [{"type": "tool_use", "id": "t", "name": "x", "input": HOOK_KEY}]
    session = check_same(path, join_lines([call("m1"), encode_line(used)]))
    assert list(main_thread(session).calls) == ["m1", "m2"]
    assert main_thread(session).changes == ()
    events = TranscriptParser().feed(encode_line(used))
    assert events == TranscriptParser().feed(memoryview(encode_line(used)))


def test_result_of_a_tool_with_the_key_of_a_resume_is_none(path: Path) -> None:
    result = user("done", 2, toolUseResult=HOOK_KEY)
    session = check_same(path, join_lines([call("m1"), result, call("m2", 21_000, tick=3)]))
    assert main_thread(session).changes == ()


# Subagents.


def test_subagent_file_gives_the_thread_that_its_records_name(path: Path) -> None:
    fields: Json = {"isSidechain": True, "agentId": "a881341"}
    lines = [user("go", **fields), call("m1", **fields), call("m1", output=70, **fields),
             call("m2", 22_000, **fields)]  # fmt: skip
    session = check_same(path, join_lines(lines))
    assert list(session.threads) == ["a881341"]
    assert session.threads["a881341"].calls["m1"].usage.output == 70


def sidechains() -> Lines:
    """A file of 1.0.x with two sidechains."""
    old: Json = {"version": "1.0.60"}
    side: Json = {"isSidechain": True, **old}
    return [
        user("go", 0, uuid="r1", **old),
        call("m1", 20_000, tick=1, uuid="r2", parentUuid="r1", **old),
        user("task", 2, uuid="aaaaaaa1-0", **side),
        call("s1", 9_000, tick=3, uuid="aaaaaaa2-0", parentUuid="aaaaaaa1-0", **side),
        user("task", 4, uuid="bbbbbbb1-0", **side),
        call("t1", 8_000, tick=5, uuid="bbbbbbb2-0", parentUuid="bbbbbbb1-0", **side),
        user("so", 6, uuid="aaaaaaa3-0", parentUuid="aaaaaaa2-0", **side),
        call("s2", 9_500, tick=7, uuid="aaaaaaa4-0", parentUuid="aaaaaaa3-0", **side),
        call("m2", 21_000, tick=8, uuid="r3", parentUuid="r2", **old),
    ]


def test_sidechains_in_the_main_file_are_threads(path: Path) -> None:
    session = check_same(path, join_lines(sidechains()))
    assert {name: list(t.calls) for name, t in session.threads.items()} == {
        MAIN: ["m1", "m2"],
        "sidechain-aaaaaaa1": ["s1", "s2"],
        "sidechain-bbbbbbb1": ["t1"],
    }


# Broken lines.


def test_two_records_on_one_line_are_both_read(path: Path) -> None:
    lines = [call("m1"), call("m2", 21_000) + call("m3", 22_000), call("m4", 23_000)]
    assert list(main_thread(check_same(path, join_lines(lines))).calls) == ["m1", "m2", "m3", "m4"]


@pytest.mark.parametrize("between", [b"", b"\0\0", b"\t \0"], ids=repr)
def test_call_on_the_line_of_a_copy_is_read(path: Path, between: bytes) -> None:
    copy = call("m1", output=1)
    glued = copy + between + call("m2", 21_000)
    for lines in ([copy, glued, copy], [glued, copy, copy], [copy, copy, glued]):
        session = check_same(path, join_lines([*lines, call("m3", 22_000)]))
        assert list(main_thread(session).calls) == ["m1", "m2", "m3"]


def test_compaction_on_the_line_of_a_call_counts(path: Path) -> None:
    lines = [
        call("m1", 160_000),
        boundary(1) + summary(2) + fresh("m2", 30_000),
        call("m3", 31_000),
    ]
    check_compactions(check_same(path, join_lines(lines)), 1)
    lines = [call("m1", 160_000) + boundary(1), summary(2), fresh("m2", 30_000)]
    check_compactions(check_same(path, join_lines(lines)), 1)
    lines = [
        call("m1", 160_000),
        user("x") + boundary(1),
        summary(2) + user("x"),
        fresh("m2", 30_000),
    ]
    check_compactions(check_same(path, join_lines(lines)), 1)


@pytest.mark.parametrize("junk", [b"\0" * 700, b"\xff\xfe{", b"{", b"}", b"[1]", b"null", b"\r"])
def test_junk_line_hides_no_neighbour(path: Path, junk: bytes) -> None:
    lines = [junk, call("m1"), junk, call("m1", output=50), junk, boundary(1), junk, summary(2),
             junk, fresh("m2"), junk]  # fmt: skip
    session = check_compactions(check_same(path, join_lines(lines)), 1)
    assert main_thread(session).calls["m1"].usage.output == 50


@pytest.mark.parametrize("junk", [b"\0\0\0", b" ", b"\r", b"\t"], ids=repr)
def test_padding_around_a_record_does_not_matter(path: Path, junk: bytes) -> None:
    lines = [call("m1"), junk + call("m2", 21_000) + junk, boundary(1) + junk, junk + summary(2),
             fresh("m3") + junk]  # fmt: skip
    session = check_compactions(check_same(path, join_lines(lines)), 1)
    assert list(main_thread(session).calls) == ["m1", "m2", "m3"]


def test_invalid_utf8_does_not_hide_a_record(path: Path) -> None:
    bad = call("m2", 21_000, text="BAD").replace(b"BAD", b"\xff\xc3(")
    ended = boundary(1, content="BAD").replace(b"BAD", b"\xf0\x9f")
    session = check_compactions(
        check_same(path, join_lines([call("m1"), bad, ended, summary(2), fresh("m3")])), 1
    )
    assert list(main_thread(session).calls) == ["m1", "m2", "m3"]


@pytest.mark.parametrize("last", [call("m2", 21_000), user("x"), boundary(1) + summary(2)], ids=len)
def test_last_line_without_a_newline_is_read_if_whole(path: Path, last: bytes) -> None:
    begin = join_lines([call("m1"), user("x")])
    check_same(path, begin + last)
    whole = FastReader(str(path))
    read_session(whole)
    assert whole.cursor.offset == len(begin + last)
    check_same(path, begin + last[:-1])
    left = FastReader(str(path))
    read_session(left)
    assert left.cursor.offset == len(begin)


def test_empty_file_has_no_events(path: Path) -> None:
    assert check_same(path, b"").threads == {}
    assert check_same(path, b"\n\n\n").threads == {}


def test_line_longer_than_a_chunk_is_read(path: Path) -> None:
    long = "x" * 300_000
    lines = [call("m1", text=long), user(long), call("m2", 21_000), boundary(1, content=long),
             user(long), summary(2), fresh("m3", text=long)]  # fmt: skip
    session = check_compactions(check_same(path, join_lines(lines)), 1)
    assert list(main_thread(session).calls) == ["m1", "m2", "m3"]


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [15, 17, 31, 34])
def test_line_over_the_limit_is_counted_once_by_both_readers(path: Path, megabytes: int) -> None:
    long = call("m2", 21_000, text="x" * (megabytes << 20))
    session = check_same(path, join_lines([call("m1"), long, call("m3", 22_000)]), sizes=[1 << 20])
    assert {"m1", "m3"} <= set(main_thread(session).calls)
    oracle, quick = read_every_record(str(path)), FastReader(str(path))
    for reader in (oracle, quick):
        read_session(reader)
    assert quick.tally.malformed == oracle.tally.malformed == (megabytes > 16)


def test_malformed_call_is_counted_and_the_rest_read(path: Path) -> None:
    path.write_bytes(join_lines([call("m1"), call("m2")[:-9], user("x"), call("m3")]))
    reader = FastReader(str(path))
    assert list(main_thread(read_session(reader)).calls) == ["m1", "m3"]
    assert reader.tally.malformed == 1


# A changed format.


@pytest.mark.parametrize("copies", [1, 2])
def test_replies_without_usage_after_the_last_call_are_counted(path: Path, copies: int) -> None:
    replies = [bare(f"m{i}", tick=i) for i in range(2, 6) for _ in range(copies)]
    lines = [bare("m0"), call("m1"), *replies, user("x" * 5_000)]
    assert check_same(path, join_lines(lines)).unmetered == 4 * copies
    assert read_session(TailReader(str(path))).unmetered == 4 * copies
    assert check_same(path, join_lines([*lines, call("m9")])).unmetered == 0
    assert check_same(path, join_lines([bare("m0"), user("x")]) + bare("m1")).unmetered == 2


def test_usage_below_another_name_is_counted(path: Path) -> None:
    renamed = [call(f"m{i}").replace(b'"usage":', b'"spending":') for i in range(3)]
    session = check_same(path, join_lines([user("x"), *renamed, user("x")]))
    assert (session.unmetered, session.version) == (3, "2.1.325")
    assert read_session(TailReader(str(path))).unmetered == 3


def test_calls_with_a_renamed_count_are_malformed(path: Path) -> None:
    renamed = [call(f"m{i}").replace(b'"output_tokens":', b'"output":') for i in range(4)]
    path.write_bytes(join_lines(renamed))
    for reader in (read_every_record(str(path)), FastReader(str(path)), TailReader(str(path))):
        assert read_session(reader).threads == {}
        assert reader.tally.malformed == 4


@pytest.mark.parametrize("first", [True, False])
def test_many_unknown_kinds_make_the_reader_count_every_record(path: Path, first: bool) -> None:
    calls = [call(f"m{i}", 20_000 + i, tick=i) for i in range(300)]
    new = [encode_line(record("new-kind", i)) for i in range(30)]
    check_same(path, join_lines([*new, *calls] if first else [*calls, *new]))
    reader = FastReader(str(path))
    assert len(main_thread(read_session(reader)).calls) == 300
    assert (reader.tally.records, reader.tally.unknown) == (330, 30)


def test_few_unknown_kinds_do_not_slow_the_reader_down(path: Path) -> None:
    calls = [call(f"m{i}", 20_000 + i, tick=i) for i in range(300)]
    path.write_bytes(join_lines([encode_line(record("new-kind")), *calls]))
    reader = FastReader(str(path))
    read_session(reader)
    assert reader.tally.unknown == 1
    assert reader.tally.records > 300


# Any transcript.


class Story:
    """Draws a transcript: calls with copies, compactions, subagents, other records."""

    def __init__(self, draw: st.DrawFn, caching: Caching, thread: str) -> None:
        self._draw, self._caching = draw, caching
        self._fields: Json = {} if thread == MAIN else {"isSidechain": True, "agentId": thread}
        self._tick = 0
        self._prompt: int | None = None
        self._broken = self._trimmed = False
        self.lines: Lines = []

    def draw_lines(self, again: bool) -> bytes:
        """Return the lines; with `again` some are repeated far behind."""
        kinds: dict[str, Callable[[], None]] = {
            "call": self._call,
            "boundary and summary": self._boundary,
            "summary": self._summary,
            "trim": self._trim,
            "noise": self._noise,
            **({"again": self._again} if again else {}),
        }
        weights = ["call"] * 6 + list(kinds)
        for kind in self._draw(st.lists(st.sampled_from(weights), max_size=25)):
            kinds[kind]()
        return self._glue()

    def _time(self) -> int:
        self._tick += 1
        return self._tick

    def _usage(self, sent: int) -> Json:
        whole = None if self._broken else self._prompt
        self._prompt, self._broken, self._trimmed = sent, False, False
        read = self._draw(st.sampled_from([r for r in (0, SYSTEM, whole) if r is not None]))
        read, output = min(read, sent - 3), self._draw(st.integers(1, 9))
        if self._caching == "implicit":
            return usage(sent - read, read, 0, output)
        return usage(3, read, sent - read - 3, output)

    def _call(self) -> None:
        sent = self._draw(st.integers(SYSTEM + 1_000, 150_000))
        id, used = f"m{self._time()}", self._usage(sent)
        for _ in range(self._draw(st.integers(1, 4))):
            used = {**used, "output_tokens": used["output_tokens"] + 1}
            self.lines.append(encode_line(assistant(id, used, self._time(), **self._fields)))
            if self._draw(st.booleans()):
                self._noise()

    def _boundary(self) -> None:
        self.lines.append(boundary(self._time(), **self._fields))
        for _ in range(self._draw(st.integers(0, 2))):
            self.lines.append(encode_line(assistant("m2", ZERO, 2, **self._fields)))
        if self._draw(st.booleans()):
            self._noise()
        self._summary()

    def _summary(self) -> None:
        self.lines.append(summary(self._time(), **self._fields))
        self._broken = True

    def _trim(self) -> None:
        self.lines.append(trim(self._time(), **self._fields))
        self._broken = self._trimmed = True

    def _noise(self) -> None:
        nested = {"usage": usage(1, 2, 3), "id": "m1"}
        line_record = self._draw(
            st.sampled_from(
                [
                    user(LOOKALIKE),
                    user("x", toolUseResult=nested),
                    bare("m9", **self._fields),
                    encode_line(record("progress", data={"message": {"message": nested}})),
                    encode_line({"type": "summary", "summary": "a title", "leafUuid": "u1"}),
                    encode_line({"type": "ai-title", "aiTitle": "another", "sessionId": "s1"}),
                    encode_line({"type": "custom-title", "customTitle": "own", "sessionId": "s1"}),
                    b"\0\0\0",
                    b"{",
                    b"",
                    call("bad")[:-7],
                    user("\xe9").replace(b"\\u00e9", b"\xff"),
                    user("y" * 700),
                ]
            )
        )
        self.lines.append(line_record)

    def _again(self) -> None:
        """A repeated line: a late copy or a preserved message."""
        if self.lines and not self._trimmed:
            self.lines.append(self._draw(st.sampled_from(self.lines)))

    def _glue(self) -> bytes:
        ends = [b"\n"] * 12 + [b"", b"\r\n", b"\0\n", b" \n"]
        pieces = [line + self._draw(st.sampled_from(ends)) for line in self.lines]
        text = b"".join(pieces)
        return text[: len(text) - self._draw(st.sampled_from([0, 0, 1, 2, 9]))]


@st.composite
def transcripts(draw: st.DrawFn, caching: Caching, again: bool = True) -> bytes:
    """A transcript of one thread with this kind of cache."""
    thread = draw(st.sampled_from([MAIN, MAIN, "a1"]))
    return Story(draw, caching, thread).draw_lines(again)


chunk_sizes = st.sampled_from([256, 257, 512, 1_000, 4_096, 65_536])


@pytest.mark.parametrize("caching", ["prefix", "implicit"])
def test_both_readers_agree_on_any_transcript_and_chunk_size(
    tmp_path: Path, picker: type[LineFilter], caching: Caching
) -> None:
    @examples(150)
    @given(transcripts(caching), chunk_sizes)
    def check(data: bytes, size: int) -> None:
        check_same(tmp_path / "any.jsonl", data, [size], [picker])

    check()


def read_growing(path: Path, data: bytes, cuts: Iterable[int], size: int) -> tuple[Session, int]:
    """Return the session after fast reads of a growing file, and where the last ended."""
    session, cursor = Session(agent="claude"), START
    for cut in [*cuts, len(data)]:
        path.write_bytes(data[:cut])
        reader = FastReader(str(path), cursor, size)
        session = read_session(reader, session)
        cursor = Cursor(reader.cursor.offset, reader.cursor.carry)
    return session, cursor.offset


@pytest.mark.parametrize("caching", ["prefix", "implicit"])
def test_reading_a_growing_file_gives_the_same_as_one_read(
    tmp_path: Path, caching: Caching
) -> None:
    @examples(150)
    @given(transcripts(caching), st.lists(st.floats(0, 1), max_size=3).map(sorted), chunk_sizes)
    def check(data: bytes, parts: list[float], size: int) -> None:
        path = tmp_path / "any.jsonl"
        session, offset = read_growing(path, data, [int(part * len(data)) for part in parts], size)
        oracle = read_every_record(str(path))
        assert figures(session) == figures(read_session(oracle))
        assert offset == oracle.cursor.offset

    check()


def test_sidechain_keeps_its_name_across_reads(tmp_path: Path) -> None:
    path, lines = tmp_path / "s1.jsonl", sidechains()
    path.write_bytes(join_lines(lines))
    whole = figures(read_session(read_every_record(str(path))))
    for count in range(1, len(lines)):
        cut = len(join_lines(lines[:count]))
        assert figures(read_growing(path, join_lines(lines), [cut], 4_096)[0]) == whole, (
            f"{count} lines"
        )


def test_line_read_without_its_newline_is_not_read_again(tmp_path: Path) -> None:
    data = join_lines([call("m1"), boundary(1), summary(2), fresh("m2")])
    for cut in range(1, len(data), 3):
        session, offset = read_growing(tmp_path / "s1.jsonl", data, [cut], 1_024)
        assert (main_thread(session).cycle, list(main_thread(session).calls)) == (1, ["m1", "m2"])
        assert offset == len(data)


# The end alone.


def read_end(path: Path, data: bytes) -> Thread:
    """Return the main thread as read from the end of a transcript."""
    path.write_bytes(data)
    return main_thread(read_session(TailReader(str(path))))


def test_end_of_a_small_file_reads_it_whole(path: Path) -> None:
    thread = read_end(path, join_lines([call("m1"), call("m2", 21_000), user("x")]))
    assert thread.current_call is not None
    assert (thread.current, thread.current_call.usage.sent) == ("m2", 21_000)


def test_end_of_a_long_file_finds_the_last_call(path: Path) -> None:
    lines = [call(f"m{i}", 20_000 + i, text="x" * 2_000) for i in range(100)]
    thread = read_end(path, join_lines(lines))
    assert thread.current == "m99"
    assert len(thread.calls) < 100


@pytest.mark.parametrize(
    "behind",
    [
        FIRST_TAIL_BYTES // 2,
        FIRST_TAIL_BYTES,
        3 * FIRST_TAIL_BYTES,
        10 * FIRST_TAIL_BYTES,
        20 * FIRST_TAIL_BYTES,
    ],
)
def test_end_is_extended_until_it_has_a_call(path: Path, behind: int) -> None:
    lines = [
        user("x" * FIRST_TAIL_BYTES),
        call("m1"),
        call("m2", 21_000),
        user("y" * behind),
        user("z" * behind),
    ]
    assert read_end(path, join_lines(lines)).current == "m2"


def test_end_after_a_compaction_is_unknown(path: Path) -> None:
    for behind in (10, FIRST_TAIL_BYTES, 3 * FIRST_TAIL_BYTES):
        lines = [
            call("m1", 160_000),
            boundary(1),
            user("y" * behind),
            summary(2),
            user("z" * behind),
        ]
        thread = read_end(path, join_lines(lines))
        assert (thread.current, thread.model) == (None, "claude-sonnet-4-5")


def test_end_counts_a_whole_last_line_without_a_newline(path: Path) -> None:
    data = join_lines([call("m1")]) + call("m2", 21_000)
    assert read_end(path, data).current == "m2"
    assert read_end(path, data[:-1]).current == "m1"


def test_end_reads_two_records_on_one_line(path: Path) -> None:
    lines = [call("m1"), call("m2", 21_000) + call("m3", 22_000)]
    assert read_end(path, join_lines(lines)).current == "m3"


def test_end_finds_the_main_call_behind_sidechain_calls(path: Path) -> None:
    side: Json = {"isSidechain": True, "version": "1.0.60", "text": "x" * 1_000}
    lines = [call("m1"), *(call(f"s{i}", 9_000, uuid=f"u{i}", **side) for i in range(200))]
    assert read_end(path, join_lines(lines)).current == "m1"


def test_end_of_a_file_without_calls_has_none(path: Path) -> None:
    path.write_bytes(join_lines([user("x" * 1_000) for _ in range(300)]))
    assert read_session(TailReader(str(path))).threads == {}


def test_end_of_a_subagent_file_finds_its_last_call(path: Path) -> None:
    fields: Json = {"isSidechain": True, "agentId": "a1", "text": "x" * 1_000}
    path.write_bytes(join_lines(call(f"m{i}", **fields) for i in range(200)))
    thread = read_session(TailReader(str(path))).threads["a1"]
    assert thread.current == "m199"


@pytest.mark.parametrize("caching", ["prefix", "implicit"])
def test_end_of_any_transcript_matches_the_full_reader(tmp_path: Path, caching: Caching) -> None:
    @examples(100)
    @given(transcripts(caching, again=False))
    def check(data: bytes) -> None:
        path = tmp_path / "any.jsonl"
        path.write_bytes(data)
        end = read_session(TailReader(str(path))).threads
        for name, thread in read_session(read_every_record(str(path))).threads.items():
            if thread.calls:
                assert end[name].current_call == thread.current_call

    check()


def test_end_of_a_file_that_shrank_is_read(path: Path) -> None:
    path.write_bytes(join_lines([call("m1")]))
    os.truncate(path, 10)
    assert read_session(TailReader(str(path))).threads == {}


def test_threads_can_read_at_the_same_time(tmp_path: Path) -> None:
    def line(name: str, n: int) -> bytes:
        """Each on another model than the last, and in each file at other places."""
        line_record = call(f"{name}{n}", 20_000 + n, tick=n, text=name * (n % 50))
        return line_record.replace(b"claude-sonnet-4-5", f"{name}-{n % 7}".encode())

    def read(path: Path) -> object:
        return figures(read_session(FastReader(str(path))))

    paths = [tmp_path / ("long" * size) for size in range(1, 5)]
    for path in paths:
        path.write_bytes(join_lines(line(path.name, n) for n in range(400)))
    expected = [figures(read_session(read_every_record(str(path)))) for path in paths]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(paths)) as pool:
            assert list(pool.map(read, paths * 10)) == expected * 10
    finally:
        sys.setswitchinterval(before)


def test_end_of_a_huge_file_without_calls_is_not_held_in_memory(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(6 * MAX_TAIL_BYTES)
    tracemalloc.start()
    assert read_session(TailReader(str(path))).threads == {}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MAX_TAIL_BYTES
