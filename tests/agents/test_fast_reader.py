"""The quick reading of Claude Code's transcripts finds what looking at every record finds."""

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
from brimline.events import MAIN
from brimline.tracker import Session, Thread, fold
from brimline.transcripts.line_filter import CompiledLineFilter, LineFilter, PythonLineFilter
from brimline.transcripts.source import START, Cursor, Reader
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


# What transcripts are made of.


def packed(record: Json) -> bytes:
    """A record as Claude Code writes it, without its newline."""
    return json.dumps(record, separators=(",", ":")).encode()


def clock(tick: int) -> str:
    """A time, so many seconds on."""
    return f"2026-11-14T{10 + tick // 3600:02}:{tick // 60 % 60:02}:{tick % 60:02}.000Z"


def record(kind: str, tick: int = 0, **fields: Any) -> Json:
    """A record with what every record has."""
    return {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/project",
        "sessionId": "s1",
        "version": "2.1.325",
        "type": kind,
        "uuid": f"u{tick}",
        "timestamp": clock(tick),
        **fields,
    }


def usage(fresh: int, read: int, write: int, output: int = 10) -> Json:
    """A usage in the client's own order of fields."""
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


def assistant(id: str, used: Json, tick: int = 0, text: str = "so", **fields: Any) -> Json:
    """A call's record, in the client's own order of fields."""
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
    """A line of a call that had all but 600 tokens of its prompt from the cache."""
    return packed(assistant(id, usage(3, sent - 603, 600, output), tick, **fields))


def fresh(id: str, sent: int = 20_000, tick: int = 0, **fields: Any) -> bytes:
    """A line of a call that had only the system prompt from the cache."""
    return packed(assistant(id, usage(3, SYSTEM, sent - SYSTEM - 3), tick, **fields))


def told(text: str, tick: int = 0, **fields: Any) -> bytes:
    """A user's record."""
    message = {"role": "user", "content": [{"type": "tool_result", "content": text}]}
    return packed(record("user", tick, message=message, **fields))


def boundary(tick: int = 0, **fields: Any) -> bytes:
    """A compaction's boundary."""
    metadata = {"trigger": "auto", "preTokens": 167_000 + tick}
    made = {"subtype": "compact_boundary", "compactMetadata": metadata, **fields}
    return packed(record("system", tick, **made))


def summary(tick: int = 0, **fields: Any) -> bytes:
    """A compaction's summary."""
    message = {"role": "user", "content": "This session is being continued."}
    return packed(record("user", tick, message=message, isCompactSummary=True, **fields))


def trim(tick: int = 0, **fields: Any) -> bytes:
    """A record that says that old tool results were dropped."""
    return packed(record("system", tick, subtype="microcompact_boundary", **fields))


def joined(lines: Iterable[bytes]) -> bytes:
    """A transcript of these lines."""
    return b"".join(line + b"\n" for line in lines)


# What is compared.


def found(reader: Reader, before: Session | None = None) -> Session:
    """The session in a transcript."""
    return fold(before or Session(agent="claude"), reader)


def figures(session: Session) -> dict[str, object]:
    """All that is told of a session, its calls in order."""
    order = {name: list(thread.calls) for name, thread in session.threads.items()}
    return {
        "threads": session.threads,
        "order": order,
        "id": session.id,
        "project": session.project,
        "version": session.version,
    }


def same(
    path: Path,
    data: bytes,
    sizes: Sequence[int] = SIZES,
    pickers: Sequence[type[LineFilter]] = PICKERS,
) -> Session:
    """Check that the quick reading of a transcript is that of every record; the latter's result."""
    path.write_bytes(data)
    oracle = read_every_record(str(path))
    session = found(oracle)
    for size, picker in product(sizes, pickers):
        quick = FastReader(str(path), chunk_bytes=size, line_filter=picker(NEEDLES, ID_KEY))
        assert figures(found(quick)) == figures(session), f"chunks of {size}, {picker.__name__}"
        assert quick.cursor.offset == oracle.cursor.offset, f"chunks of {size}, {picker.__name__}"
    return session


def main(session: Session) -> Thread:
    """The session's own thread."""
    return session.threads[MAIN]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a transcript is written."""
    return tmp_path / "s1.jsonl"


# Calls and their copies.


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_copies(path: Path, copies: int) -> None:
    """Copies that follow each other are one call, with the last one's output."""
    lines = [call("m1", output=min(1, copies - 1 - i) or 250, tick=i) for i in range(copies)]
    session = same(path, joined([told("go"), *lines, call("m2", 21_000, tick=9)]))
    assert list(main(session).calls) == ["m1", "m2"]
    assert main(session).calls["m1"].usage.output == 250


@pytest.mark.parametrize("copies", [2, 3, 5])
def test_copies_with_results_between(path: Path, copies: int) -> None:
    """Also with tool results between them."""
    lines: Lines = []
    for i in range(copies):
        lines += [call("m1", output=1 + i, tick=2 * i), told("x" * 400, tick=2 * i + 1)]
    session = same(path, joined([*lines, call("m2", 21_000, tick=20)]))
    assert [c.usage.output for c in main(session).calls.values()] == [copies, 10]


def test_copy_far_behind(path: Path) -> None:
    """A copy of an earlier call behind a later one changes its output, not what is held."""
    lines = [call("m1"), call("m2", 22_000), call("m1", output=99), told("x")]
    session = same(path, joined(lines))
    assert main(session).current == "m2"
    assert main(session).calls["m1"].usage.output == 99


def test_last_copy_without_usage(path: Path) -> None:
    """Where the last copy tells no usage, the one before counts."""
    bare = assistant("m1", usage(3, 19_000, 997))
    bare["message"]["usage"] = None
    session = same(path, joined([call("m0"), call("m1", output=7), packed(bare), told("x")]))
    assert main(session).calls["m1"].usage.output == 7


def test_last_copy_broken(path: Path) -> None:
    """Where the last copy is malformed, the one before counts."""
    session = same(path, joined([call("m1", output=7), call("m1", output=8)[:-5], told("x")]))
    assert main(session).calls["m1"].usage.output == 7


def test_an_id_before_the_messages_own(path: Path) -> None:
    """A record may name something else by an id first: its calls are told apart all the same."""
    lines = [
        packed({"device": {"id": "d1"}, **assistant(f"m{i}", usage(3, 19_000, 997), tick=i)})
        for i in range(5)
    ]
    assert len(main(same(path, joined(lines))).calls) == 5


def test_synthetic(path: Path) -> None:
    """A reply that the client made up is no call in either reading."""
    made_up = assistant("x", ZERO)
    made_up["message"]["model"] = "<synthetic>"
    session = same(path, joined([call("m1"), packed(made_up), packed(made_up), told("x")]))
    assert list(main(session).calls) == ["m1"]


def test_usage_elsewhere(path: Path) -> None:
    """Usage in progress records and tool results is no call in either reading."""
    nested = assistant("sub", usage(1, 2, 3))["message"]
    lines = [
        call("m1"),
        packed(record("progress", data={"message": {"message": nested}})),
        packed(record("user", message={"role": "user", "content": []},
                      toolUseResult={"usage": nested["usage"], "id": "m1"})),
        call("m2", 21_000),
    ]  # fmt: skip
    assert list(main(same(path, joined(lines))).calls) == ["m1", "m2"]


def test_lookalikes(path: Path) -> None:
    """Text that quotes a usage, a boundary or a summary is text."""
    lines = [
        told(LOOKALIKE),
        call("m1", text=LOOKALIKE),
        told(LOOKALIKE, toolUseResult={"stdout": LOOKALIKE}),
        call("m2", 21_000),
        call("m2", 21_000, text=LOOKALIKE),
    ]
    session = same(path, joined(lines))
    assert list(main(session).calls) == ["m1", "m2"]
    assert main(session).compactions == ()


def test_lookalikes_as_keys(path: Path) -> None:
    """Also where a tool's own JSON has the same keys."""
    quoted = {
        "output_tokens": 5,
        "isCompactSummary": True,
        "subtype": "compact_boundary",
        "id": "m1",
    }
    lines = [
        call("m1"),
        told("x", toolUseResult=quoted),
        told("x", toolUseResult={"isCompactSummary": True}),
        fresh("m2", 21_000),
    ]
    session = same(path, joined(lines))
    assert list(main(session).calls) == ["m1", "m2"]
    assert main(session).compactions == ()


def reordered(id: str, tick: int) -> bytes:
    """A call as a proxy writes it: usage first, its fields in another order, an unknown one."""
    made = assistant(id, {}, tick)
    message = made["message"]
    used = {"output_tokens": 9, "total": 20_009, "cache_read_input_tokens": 19_000 + tick,
            "input_tokens": 1_000}  # fmt: skip
    made["message"] = {"usage": used, **{k: v for k, v in message.items() if k != "usage"}}
    return packed(made)


def test_other_orders(path: Path) -> None:
    """The order of a usage's fields, and where it stands in the message, do not matter."""
    lines = [reordered("m1", 0), reordered("m1", 0), reordered("m2", 100), reordered("m3", 200)]
    session = same(path, joined(lines))
    assert [c.usage.sent for c in main(session).calls.values()] == [20_000, 20_100, 20_200]


def test_content_before_the_id(path: Path) -> None:
    """A tool use's id that stands before the message's is not taken for it."""
    lines: Lines = []
    for i in range(4):
        made = assistant(f"m{i // 2}", usage(3, 19_000, 997, output=i), tick=i)
        message = made["message"]
        content: list[Json] = [{"type": "tool_use", "id": f"t{i // 2}", "input": {}}]
        made["message"] = {
            "content": content,
            **{k: v for k, v in message.items() if k != "content"},
        }
        lines.append(packed(made))
    session = same(path, joined(lines))
    assert [c.usage.output for c in main(session).calls.values()] == [1, 3]


def test_spaces(path: Path) -> None:
    """Spaces after colons and commas do not matter."""
    records = [json.loads(line) for line in [
        call("m1", tick=1), call("m1", output=50, tick=2), told("x"), boundary(3), summary(4),
        fresh("m2", 22_000, tick=5),
    ]]  # fmt: skip
    session = same(path, joined(json.dumps(r).encode() for r in records))
    assert main(session).cycle == 1
    assert main(session).calls["m1"].usage.output == 50


# Compactions.


def compacted(session: Session, count: int) -> Session:
    """The session, if its main thread compacted so often."""
    assert len(main(session).compactions) == main(session).cycle == count
    return session


def test_boundary_and_summary(path: Path) -> None:
    """A boundary and its summary are one compaction."""
    lines = [call("m1", 160_000), boundary(1), summary(2), fresh("m2", 30_000, 3)]
    session = compacted(same(path, joined(lines)), 1)
    assert main(session).compactions[0].after == 30_000


def test_summary_alone(path: Path) -> None:
    """1.0.x writes a summary and no boundary: a compaction all the same."""
    lines = [call("m1", 160_000), summary(2), fresh("m2", 30_000, 3), call("m3", 31_000, tick=4)]
    compacted(same(path, joined(lines)), 1)


def test_boundary_alone(path: Path) -> None:
    """A boundary whose summary never came, the client was killed, is a compaction too."""
    lines = [call("m1", 160_000), boundary(1), told("go on"), fresh("m2", 30_000, 3)]
    compacted(same(path, joined(lines)), 1)


def test_boundary_behind_the_last_call(path: Path) -> None:
    """A compaction at the end: what is held is unknown."""
    session = compacted(same(path, joined([call("m1", 160_000), boundary(1), summary(2)])), 1)
    assert main(session).current is None


def test_two_in_a_row(path: Path) -> None:
    """Two compactions with no call between them are two."""
    lines = [call("m1", 160_000), boundary(1), summary(2), told("x"), boundary(3), summary(4),
             fresh("m2", 25_000, 5)]  # fmt: skip
    compacted(same(path, joined(lines)), 2)


def test_two_summaries_in_a_row(path: Path) -> None:
    """Also where 1.0.x wrote them."""
    lines = [call("m1", 160_000), summary(1), summary(2), fresh("m2", 25_000, 5)]
    compacted(same(path, joined(lines)), 2)


def test_summary_of_another_compaction(path: Path) -> None:
    """A summary behind a call is not that of the boundary before the call."""
    lines = [call("m1", 160_000), boundary(1), fresh("m2", 25_000, 2), summary(3),
             fresh("m3", 26_000, 4)]  # fmt: skip
    compacted(same(path, joined(lines)), 2)


@pytest.mark.parametrize("between", [0, 500, 3_000])
@pytest.mark.parametrize("size", [256, 1_000, 4_096])
def test_boundary_and_summary_in_two_chunks(path: Path, between: int, size: int) -> None:
    """Wherever a chunk ends, a boundary and its summary are one compaction."""
    for shift in range(0, size, size // 8):
        lines = [told("x" * shift), call("m1", 160_000), boundary(1), told("y" * between),
                 summary(2), told("z" * between), fresh("m2", 30_000, 3)]  # fmt: skip
        compacted(same(path, joined(lines), sizes=[size]), 1)


def test_compaction_first(path: Path) -> None:
    """A file that begins with a summary, as a resumed session's does."""
    compacted(same(path, joined([summary(0), fresh("m1", 30_000, 1), call("m2", 31_000)])), 1)


def test_no_cache_at_all(path: Path) -> None:
    """A provider that caches nothing: compactions are found all the same."""
    lines: Lines = []
    for i in range(6):
        lines += [packed(assistant(f"m{i}", usage(150_000 + i, 0, 0), tick=10 * i))]
        lines += [boundary(10 * i + 1), summary(10 * i + 2)] if i % 2 else []
    compacted(same(path, joined(lines)), 3)


def test_cache_cold_before_and_warm_behind(path: Path) -> None:
    """A provider that caches by itself: nothing was cached before, the system prompt is behind."""
    lines = [
        packed(assistant("m1", usage(150_000, 0, 0), 1)),
        boundary(2),
        summary(3),
        packed(assistant("m2", usage(14_000, SYSTEM, 0), 4)),
    ]
    compacted(same(path, joined(lines)), 1)


def test_only_the_system_prompt_cached(path: Path) -> None:
    """Where only the system prompt was cached before, reading it again tells nothing."""
    lines = [
        packed(assistant("m1", usage(140_000, SYSTEM, 0), 1)),
        boundary(2),
        summary(3),
        packed(assistant("m2", usage(14_000, SYSTEM, 0), 4)),
    ]
    compacted(same(path, joined(lines)), 1)


def test_cache_read_across(path: Path) -> None:
    """A compaction that was taken back: the next call reads all of the prompt before it."""
    lines = [call("m1", 160_000, tick=1), boundary(2), summary(3), call("m2", 161_000, tick=4)]
    compacted(same(path, joined(lines)), 1)


def test_compaction_between_copies(path: Path) -> None:
    """A copy that is written behind a compaction is no call behind it."""
    lines = [call("m1", 160_000, tick=1), boundary(2), summary(3), call("m1", 160_000, tick=4)]
    session = compacted(same(path, joined(lines)), 1)
    assert main(session).current is None


def test_trim(path: Path) -> None:
    """Dropped tool results: no compaction; what is held is unknown until the next call."""
    session = same(path, joined([call("m1", 160_000), trim(1), fresh("m2", 100_000, 2)]))
    assert (main(session).compactions, main(session).current) == ((), "m2")
    session = same(path, joined([call("m1", 160_000), trim(1), told("x")]))
    assert main(session).current is None


def test_preserved(path: Path) -> None:
    """Messages that a compaction keeps are written again behind it, without usage: no calls."""
    kept = [packed(assistant(f"m{i}", ZERO, i)) for i in range(3)]
    before = [call(f"m{i}", 150_000 + 1_000 * i, tick=i) for i in range(3)]
    lines = [*before, boundary(5), *kept, summary(6), *kept, fresh("m4", 40_000, 7)]
    session = compacted(same(path, joined(lines)), 1)
    assert list(main(session).calls) == ["m0", "m1", "m2", "m4"]


def test_versions(path: Path) -> None:
    """The client was updated in the middle of a session, at a compaction too."""
    lines = [
        call("m1", 150_000, version="2.1.20"),
        boundary(1, version="2.1.22"),
        summary(2, version="2.1.22"),
        fresh("m2", 30_000, 3, version="2.1.22"),
        call("m3", 31_000, tick=4, version="2.1.91"),
    ]
    assert same(path, joined(lines)).version == "2.1.91"


# Subagents.


def test_subagent_file(path: Path) -> None:
    """A subagent's own file: its thread is the one that every record names."""
    fields: Json = {"isSidechain": True, "agentId": "a881341"}
    lines = [told("go", **fields), call("m1", **fields), call("m1", output=70, **fields),
             call("m2", 22_000, **fields)]  # fmt: skip
    session = same(path, joined(lines))
    assert list(session.threads) == ["a881341"]
    assert session.threads["a881341"].calls["m1"].usage.output == 70


def sidechains() -> Lines:
    """A file of 1.0.x with two sidechains written into it."""
    old: Json = {"version": "1.0.60"}
    side: Json = {"isSidechain": True, **old}
    return [
        told("go", 0, uuid="r1", **old),
        call("m1", 20_000, tick=1, uuid="r2", parentUuid="r1", **old),
        told("task", 2, uuid="aaaaaaa1-0", **side),
        call("s1", 9_000, tick=3, uuid="aaaaaaa2-0", parentUuid="aaaaaaa1-0", **side),
        told("task", 4, uuid="bbbbbbb1-0", **side),
        call("t1", 8_000, tick=5, uuid="bbbbbbb2-0", parentUuid="bbbbbbb1-0", **side),
        told("so", 6, uuid="aaaaaaa3-0", parentUuid="aaaaaaa2-0", **side),
        call("s2", 9_500, tick=7, uuid="aaaaaaa4-0", parentUuid="aaaaaaa3-0", **side),
        call("m2", 21_000, tick=8, uuid="r3", parentUuid="r2", **old),
    ]


def test_sidechains_inside(path: Path) -> None:
    """Sidechains of 1.0.x inside the main file are each a thread."""
    session = same(path, joined(sidechains()))
    assert {name: list(t.calls) for name, t in session.threads.items()} == {
        MAIN: ["m1", "m2"],
        "sidechain-aaaaaaa1": ["s1", "s2"],
        "sidechain-bbbbbbb1": ["t1"],
    }


# Broken lines.


def test_glued(path: Path) -> None:
    """Two records on one line are both read."""
    lines = [call("m1"), call("m2", 21_000) + call("m3", 22_000), call("m4", 23_000)]
    assert list(main(same(path, joined(lines))).calls) == ["m1", "m2", "m3", "m4"]


@pytest.mark.parametrize("between", [b"", b"\0\0", b"\t \0"], ids=repr)
def test_glued_to_a_copy(path: Path, between: bytes) -> None:
    """A call that is glued to a copy of another is not passed over with the copy."""
    copy = call("m1", output=1)
    glued = copy + between + call("m2", 21_000)
    for lines in ([copy, glued, copy], [glued, copy, copy], [copy, copy, glued]):
        session = same(path, joined([*lines, call("m3", 22_000)]))
        assert list(main(session).calls) == ["m1", "m2", "m3"]


def test_glued_with_a_compaction(path: Path) -> None:
    """A compaction on a call's line counts, before or behind it."""
    lines = [
        call("m1", 160_000),
        boundary(1) + summary(2) + fresh("m2", 30_000),
        call("m3", 31_000),
    ]
    compacted(same(path, joined(lines)), 1)
    lines = [call("m1", 160_000) + boundary(1), summary(2), fresh("m2", 30_000)]
    compacted(same(path, joined(lines)), 1)
    lines = [
        call("m1", 160_000),
        told("x") + boundary(1),
        summary(2) + told("x"),
        fresh("m2", 30_000),
    ]
    compacted(same(path, joined(lines)), 1)


@pytest.mark.parametrize("junk", [b"\0" * 700, b"\xff\xfe{", b"{", b"}", b"[1]", b"null", b"\r"])
def test_junk_between(path: Path, junk: bytes) -> None:
    """A line that is no record hides none of its neighbours."""
    lines = [junk, call("m1"), junk, call("m1", output=50), junk, boundary(1), junk, summary(2),
             junk, fresh("m2"), junk]  # fmt: skip
    session = compacted(same(path, joined(lines)), 1)
    assert main(session).calls["m1"].usage.output == 50


@pytest.mark.parametrize("junk", [b"\0\0\0", b" ", b"\r", b"\t"], ids=repr)
def test_padding(path: Path, junk: bytes) -> None:
    """Padding around a record does not matter."""
    lines = [call("m1"), junk + call("m2", 21_000) + junk, boundary(1) + junk, junk + summary(2),
             fresh("m3") + junk]  # fmt: skip
    session = compacted(same(path, joined(lines)), 1)
    assert list(main(session).calls) == ["m1", "m2", "m3"]


def test_invalid_utf8(path: Path) -> None:
    """Invalid UTF-8 in a record's text does not hide the record."""
    bad = call("m2", 21_000, text="BAD").replace(b"BAD", b"\xff\xc3(")
    ended = boundary(1, content="BAD").replace(b"BAD", b"\xf0\x9f")
    session = compacted(same(path, joined([call("m1"), bad, ended, summary(2), fresh("m3")])), 1)
    assert list(main(session).calls) == ["m1", "m2", "m3"]


@pytest.mark.parametrize("last", [call("m2", 21_000), told("x"), boundary(1) + summary(2)], ids=len)
def test_no_newline_at_the_end(path: Path, last: bytes) -> None:
    """A last line without its newline is read when it is whole, and left when it is not."""
    begin = joined([call("m1"), told("x")])
    same(path, begin + last)
    whole = FastReader(str(path))
    found(whole)
    assert whole.cursor.offset == len(begin + last)
    same(path, begin + last[:-1])
    left = FastReader(str(path))
    found(left)
    assert left.cursor.offset == len(begin)


def test_nothing(path: Path) -> None:
    """An empty file, and one of newlines, hold nothing."""
    assert same(path, b"").threads == {}
    assert same(path, b"\n\n\n").threads == {}


def test_long_lines(path: Path) -> None:
    """A line that is longer than a chunk is read like any other."""
    long = "x" * 300_000
    lines = [call("m1", text=long), told(long), call("m2", 21_000), boundary(1, content=long),
             told(long), summary(2), fresh("m3", text=long)]  # fmt: skip
    session = compacted(same(path, joined(lines)), 1)
    assert list(main(session).calls) == ["m1", "m2", "m3"]


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [15, 17, 31, 34])
def test_longest_lines(path: Path, megabytes: int) -> None:
    """Both readings have the same longest line; a longer one is counted once, the rest is read."""
    long = call("m2", 21_000, text="x" * (megabytes << 20))
    session = same(path, joined([call("m1"), long, call("m3", 22_000)]), sizes=[1 << 20])
    assert {"m1", "m3"} <= set(main(session).calls)
    oracle, quick = read_every_record(str(path)), FastReader(str(path))
    for reader in (oracle, quick):
        found(reader)
    assert quick.tally.malformed == oracle.tally.malformed == (megabytes > 16)


def test_what_it_counts(path: Path) -> None:
    """A malformed call is counted, and the rest is read."""
    path.write_bytes(joined([call("m1"), call("m2")[:-9], told("x"), call("m3")]))
    reader = FastReader(str(path))
    assert list(main(found(reader)).calls) == ["m1", "m3"]
    assert reader.tally.malformed == 1


# Any transcript.


class Story:
    """Draws a transcript: calls with copies, compactions, subagents, and what is no call."""

    def __init__(self, draw: st.DrawFn, caching: Caching, thread: str) -> None:
        self._draw, self._caching = draw, caching
        self._fields: Json = {} if thread == MAIN else {"isSidechain": True, "agentId": thread}
        self._tick = 0
        self._prompt: int | None = None
        self._broken = self._trimmed = False
        self.lines: Lines = []

    def tell(self, again: bool) -> bytes:
        """The transcript; with some lines `again` far behind."""
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
            self.lines.append(packed(assistant(id, used, self._time(), **self._fields)))
            if self._draw(st.booleans()):
                self._noise()

    def _boundary(self) -> None:
        self.lines.append(boundary(self._time(), **self._fields))
        for _ in range(self._draw(st.integers(0, 2))):
            self.lines.append(packed(assistant("m2", ZERO, 2, **self._fields)))
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
        made = self._draw(
            st.sampled_from(
                [
                    told(LOOKALIKE),
                    told("x", toolUseResult=nested),
                    packed(record("progress", data={"message": {"message": nested}})),
                    packed({"type": "summary", "summary": "a title", "leafUuid": "u1"}),
                    b"\0\0\0",
                    b"{",
                    b"",
                    call("bad")[:-7],
                    told("\xe9").replace(b"\\u00e9", b"\xff"),
                    told("y" * 700),
                ]
            )
        )
        self.lines.append(made)

    def _again(self) -> None:
        """A line that stands there again: a copy far behind, or a preserved message."""
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
    return Story(draw, caching, thread).tell(again)


chunk_sizes = st.sampled_from([256, 257, 512, 1_000, 4_096, 65_536])


@pytest.mark.parametrize("caching", ["prefix", "implicit"])
def test_any_transcript(tmp_path: Path, picker: type[LineFilter], caching: Caching) -> None:
    """The two readings of a transcript are the same, whatever the chunks."""

    @examples(150)
    @given(transcripts(caching), chunk_sizes)
    def check(data: bytes, size: int) -> None:
        same(tmp_path / "any.jsonl", data, [size], [picker])

    check()


def grown(path: Path, data: bytes, cuts: Iterable[int], size: int) -> tuple[Session, int]:
    """The session as it is after quick readings of a growing file, and where the last ended."""
    session, cursor = Session(agent="claude"), START
    for cut in [*cuts, len(data)]:
        path.write_bytes(data[:cut])
        reader = FastReader(str(path), cursor, size)
        session = found(reader, session)
        cursor = Cursor(reader.cursor.offset, reader.cursor.carry)
    return session, cursor.offset


@pytest.mark.parametrize("caching", ["prefix", "implicit"])
def test_any_growth(tmp_path: Path, caching: Caching) -> None:
    """Read on from wherever it ended, however often, it is the same as read at once."""

    @examples(150)
    @given(transcripts(caching), st.lists(st.floats(0, 1), max_size=3).map(sorted), chunk_sizes)
    def check(data: bytes, parts: list[float], size: int) -> None:
        path = tmp_path / "any.jsonl"
        session, offset = grown(path, data, [int(part * len(data)) for part in parts], size)
        oracle = read_every_record(str(path))
        assert figures(session) == figures(found(oracle))
        assert offset == oracle.cursor.offset

    check()


def test_growth_of_sidechains(tmp_path: Path) -> None:
    """A sidechain of 1.0.x keeps its name, wherever a reading ended."""
    path, lines = tmp_path / "s1.jsonl", sidechains()
    path.write_bytes(joined(lines))
    whole = figures(found(read_every_record(str(path))))
    for count in range(1, len(lines)):
        cut = len(joined(lines[:count]))
        assert figures(grown(path, joined(lines), [cut], 4_096)[0]) == whole, f"{count} lines"


def test_growth_over_a_newline(tmp_path: Path) -> None:
    """A last line that was read without its newline is not read again with it."""
    data = joined([call("m1"), boundary(1), summary(2), fresh("m2")])
    for cut in range(1, len(data), 3):
        session, offset = grown(tmp_path / "s1.jsonl", data, [cut], 1_024)
        assert (main(session).cycle, list(main(session).calls)) == (1, ["m1", "m2"])
        assert offset == len(data)


# The end alone.


def ending(path: Path, data: bytes) -> Thread:
    """The main thread as the end of a transcript tells it."""
    path.write_bytes(data)
    return main(found(TailReader(str(path))))


def test_end_small(path: Path) -> None:
    """A small file is read whole."""
    thread = ending(path, joined([call("m1"), call("m2", 21_000), told("x")]))
    assert thread.current_call is not None
    assert (thread.current, thread.current_call.usage.sent) == ("m2", 21_000)


def test_end_of_a_long_file(path: Path) -> None:
    """The last call is found at the end, without what was before."""
    lines = [call(f"m{i}", 20_000 + i, text="x" * 2_000) for i in range(100)]
    thread = ending(path, joined(lines))
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
def test_end_far_back(path: Path, behind: int) -> None:
    """The part that is looked at grows until it holds a call."""
    lines = [
        told("x" * FIRST_TAIL_BYTES),
        call("m1"),
        call("m2", 21_000),
        told("y" * behind),
        told("z" * behind),
    ]
    assert ending(path, joined(lines)).current == "m2"


def test_end_behind_a_compaction(path: Path) -> None:
    """After a compaction what is held is unknown, however far back the last call is."""
    for behind in (10, FIRST_TAIL_BYTES, 3 * FIRST_TAIL_BYTES):
        lines = [
            call("m1", 160_000),
            boundary(1),
            told("y" * behind),
            summary(2),
            told("z" * behind),
        ]
        thread = ending(path, joined(lines))
        assert (thread.current, thread.model) == (None, "claude-sonnet-4-5")


def test_end_without_a_newline(path: Path) -> None:
    """A last line that is whole counts, one that is not does not."""
    data = joined([call("m1")]) + call("m2", 21_000)
    assert ending(path, data).current == "m2"
    assert ending(path, data[:-1]).current == "m1"


def test_end_glued(path: Path) -> None:
    """A glued line at the end is read too."""
    lines = [call("m1"), call("m2", 21_000) + call("m3", 22_000)]
    assert ending(path, joined(lines)).current == "m3"


def test_end_of_sidechains(path: Path) -> None:
    """A call of the main thread is found behind any number of sidechain calls."""
    side: Json = {"isSidechain": True, "version": "1.0.60", "text": "x" * 1_000}
    lines = [call("m1"), *(call(f"s{i}", 9_000, uuid=f"u{i}", **side) for i in range(200))]
    assert ending(path, joined(lines)).current == "m1"


def test_end_of_nothing(path: Path) -> None:
    """A file without a call is looked at whole, and tells nothing."""
    path.write_bytes(joined([told("x" * 1_000) for _ in range(300)]))
    assert found(TailReader(str(path))).threads == {}


def test_end_of_a_subagents_file(path: Path) -> None:
    """In a subagent's file the subagent's last call is found."""
    fields: Json = {"isSidechain": True, "agentId": "a1", "text": "x" * 1_000}
    path.write_bytes(joined(call(f"m{i}", **fields) for i in range(200)))
    thread = found(TailReader(str(path))).threads["a1"]
    assert thread.current == "m199"


@pytest.mark.parametrize("caching", ["prefix", "implicit"])
def test_any_end(tmp_path: Path, caching: Caching) -> None:
    """What the thread holds at the end is what every record says."""

    @examples(100)
    @given(transcripts(caching, again=False))
    def check(data: bytes) -> None:
        path = tmp_path / "any.jsonl"
        path.write_bytes(data)
        end = found(TailReader(str(path))).threads
        for name, thread in found(read_every_record(str(path))).threads.items():
            if thread.calls:
                assert end[name].current_call == thread.current_call

    check()


def test_ends_that_shrank(path: Path) -> None:
    """A file that is shorter than it was when it was found is read as it is."""
    path.write_bytes(joined([call("m1")]))
    os.truncate(path, 10)
    assert found(TailReader(str(path))).threads == {}


def test_threads(tmp_path: Path) -> None:
    """Several threads may read at the same time: a daemon does."""

    def line(name: str, n: int) -> bytes:
        """Each on another model than the last, and in each file at other places."""
        made = call(f"{name}{n}", 20_000 + n, tick=n, text=name * (n % 50))
        return made.replace(b"claude-sonnet-4-5", f"{name}-{n % 7}".encode())

    def read(path: Path) -> object:
        return figures(found(FastReader(str(path))))

    paths = [tmp_path / ("long" * size) for size in range(1, 5)]
    for path in paths:
        path.write_bytes(joined(line(path.name, n) for n in range(400)))
    expected = [figures(found(read_every_record(str(path)))) for path in paths]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(paths)) as pool:
            assert list(pool.map(read, paths * 10)) == expected * 10
    finally:
        sys.setswitchinterval(before)


def test_end_of_a_huge_file_is_held_in_part(path: Path) -> None:
    """A file without calls is not read into memory whole to find one."""
    with path.open("wb") as file:
        file.truncate(6 * MAX_TAIL_BYTES)
    tracemalloc.start()
    assert found(TailReader(str(path))).threads == {}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MAX_TAIL_BYTES
