"""Claude Code's transcripts: every trap that real ones hold, their places and its settings."""

import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import source
from brimline.agents.claude.paths import roots, transcripts, whose
from brimline.agents.claude.records import TRANSCRIPT_KINDS
from brimline.agents.claude.source import SOURCE
from brimline.agents.claude.transcript import TranscriptParser
from brimline.errors import UnreadableTranscript
from brimline.events import MAIN, AnyEvent, Call, Compacted, SessionSeen, Trimmed
from brimline.providers.anthropic import MESSAGES, MessageUsage, usage_of
from brimline.tracker import Session, Thread, fold, read
from brimline.transcripts.lines import JsonLines
from brimline.transcripts.source import START, Cursor, Places, Tally
from brimline.usage import Usage

Json = dict[str, Any]
ZERO = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 0}  # fmt: skip


def record(kind: str, **fields: Any) -> Json:
    """A record as Claude Code writes it."""
    return {
        "type": kind,
        "uuid": "u0",
        "parentUuid": None,
        "isSidechain": False,
        "timestamp": "2026-11-14T10:00:00.000Z",
        "sessionId": "s1",
        "cwd": "/project",
        "version": "2.1.325",
        **fields,
    }


def assistant(id: str, sent: int = 1_000, output: int = 10, **fields: Any) -> Json:
    """An assistant record of a call that sent so much."""
    usage: Json = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": sent - 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
        "iterations": None,
    }
    message = {"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
               "content": [{"type": "text", "text": "so"}], "usage": usage}  # fmt: skip
    message |= fields.pop("message", {})
    return record("assistant", message=message, **fields)


def boundary(**fields: Any) -> Json:
    """A compaction's boundary."""
    metadata = {"trigger": "auto", "preTokens": 167_300, "postTokens": 2_961}
    return record(
        "system", **{"subtype": "compact_boundary", "compactMetadata": metadata, **fields}
    )


def summary(**fields: Any) -> Json:
    """A compaction's summary."""
    message = {"role": "user", "content": "This session is being continued."}
    return record("user", message=message, isCompactSummary=True, **fields)


def clock(minute: int) -> str:
    """A time of that minute."""
    return f"2026-11-14T10:{minute:02}:00.000Z"


def lines(records: Iterable[Json]) -> bytes:
    """A transcript of these records."""
    return b"".join(json.dumps(r, separators=(",", ":")).encode() + b"\n" for r in records)


def parsed(*records: Json) -> tuple[list[AnyEvent], Tally]:
    """The events of a transcript, and what was counted."""
    found = SOURCE.parse(io.BytesIO(lines(records)))
    return list(found), found.tally


def events(*records: Json) -> list[AnyEvent]:
    """The events of a transcript without a bad record; who it is left out."""
    found, tally = parsed(*records)
    assert (tally.records, tally.unknown, tally.malformed) == (len(records), 0, 0)
    return [event for event in found if not isinstance(event, SessionSeen)]


def session(*records: Json) -> Session:
    """The session after these records."""
    return fold(Session(), parsed(*records)[0])


def thread(*records: Json) -> Thread:
    """The main thread after these records."""
    return session(*records).threads[MAIN]


def test_source_by_name() -> None:
    """The source is found by the agent's name."""
    assert source("claude") is SOURCE
    assert SOURCE.agent == "claude"


# Calls.


def test_call() -> None:
    """A call has the message's id, the three input fields and the output."""
    found, _ = parsed(assistant("m1", 31_204, 250))
    assert found == [
        SessionSeen(
            session="s1",
            agent="claude",
            project="/project",
            version="2.1.325",
            records_compactions=True,
        ),
        Call(
            at=1_794_650_400.0,
            id="m1",
            usage=Usage(3, 31_194, 7, 250),
            model="claude-sonnet-4-5",
        ),
    ]


COUNTS = st.integers(1, 1 << 40)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_usage_is_what_the_rows_say(fresh: int, output: int, read: int, write: int) -> None:
    """A usage that is read in bulk is what the provider's rows make of it."""
    record = MessageUsage(fresh, output, read, write)
    assert usage_of(record) == MESSAGES.usage(record) == Usage(fresh, read, write, output)


def test_duplicates() -> None:
    """A line a content block, one call: the last copy's output, tool results between."""
    main = thread(
        assistant("m1", 5_000, 1, uuid="a", requestId="r"),
        record("user", message={"role": "user", "content": [{"type": "tool_result"}]}),
        assistant("m1", 5_000, 250, uuid="b"),
    )
    assert list(main.calls) == ["m1"]
    assert main.calls["m1"].usage.output == 250


def test_request_id_is_no_key() -> None:
    """Copies with and without a requestId are one call."""
    main = thread(assistant("m1", requestId="r1"), assistant("m1"), assistant("m1", requestId=None))
    assert len(main.calls) == 1


def test_synthetic() -> None:
    """A reply that the client made up, all zero, is no call."""
    made_up = assistant(
        "x", isApiErrorMessage=True, message={"model": "<synthetic>", "usage": ZERO}
    )
    assert events(made_up) == []


def test_synthetic_with_counts() -> None:
    """Also one with counts is no call of the thread."""
    assert thread(
        assistant("m1"), assistant("x", message={"model": "<synthetic>"})
    ).calls.keys() == {"m1"}


@pytest.mark.parametrize("message", [None, {"id": None}, {"usage": None}], ids=str)
def test_no_usage_is_no_call(message: Json | None) -> None:
    """A record without a message, an id or a usage is no call, and no error."""
    bad = assistant("m1", message=message or {})
    if message is None:
        bad["message"] = None
    assert events(bad) == []


def test_advisor() -> None:
    """With several passes the last that is no advisor's counts, not their sum."""
    one = {"type": "message", "input_tokens": 5, "cache_read_input_tokens": 46_000,
           "cache_creation_input_tokens": 1_000, "output_tokens": 400}  # fmt: skip
    advisor = {"type": "advisor_message", "input_tokens": 60_000, "output_tokens": 900}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90_000,
             "cache_creation_input_tokens": 2_000, "output_tokens": 700,
             "iterations": [one, advisor, one]}  # fmt: skip
    main = thread(assistant("m1", advisorModel="claude-opus-5-5", message={"usage": usage}))
    assert main.calls["m1"].usage == Usage(5, 46_000, 1_000, 400)


def test_usage_elsewhere_is_no_call() -> None:
    """Usage in progress records and in tool results is a subagent's, told elsewhere."""
    nested = assistant("sub")["message"]
    found = events(
        record("progress", data={"message": {"message": nested}, "type": "agent_progress"}),
        record("progress", data={"normalizedMessages": [{"message": nested}]}),
        record("user", message={"role": "user", "content": []},
               toolUseResult={"usage": nested["usage"], "totalTokens": 5}),
    )  # fmt: skip
    assert found == []


def test_title_is_no_compaction() -> None:
    """A record of type `summary` is a title."""
    assert events({"type": "summary", "summary": "Fix the bug", "leafUuid": "u9"}) == []


def test_asked_for() -> None:
    """The model as the user asked for it tells a window of 1M from one of 200k."""
    found = session(
        assistant("m1", 50_000, requestedModel="claude-opus-4-6[1m]",
                  message={"model": "claude-opus-4-6"})
    )  # fmt: skip
    main = found.threads[MAIN]
    assert main.model == "claude-opus-4-6[1m]"
    assert main.models == ("claude-opus-4-6",)
    window = read(found, main, "transcript").window
    assert window is not None
    assert window.tokens == 1_000_000


@pytest.mark.parametrize(
    "asked", ["sonnet", "default", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"]
)
def test_asked_for_by_another_name(asked: str) -> None:
    """A name that only the client or its provider knows does not hide the model that answered."""
    found = session(assistant("m1", 50_000, requestedModel=asked))
    window = read(found, found.threads[MAIN], "transcript").window
    assert window is not None
    assert window.tokens == 200_000


def test_version_that_changes() -> None:
    """A client that was updated during the session is told again, the session is not."""
    found, _ = parsed(
        assistant("m1", version="2.1.20"), assistant("m2", version="2.1.20"),
        assistant("m3", version="2.1.22", sessionId="s2", cwd="/other"),
    )  # fmt: skip
    seen = [event for event in found if isinstance(event, SessionSeen)]
    assert [(s.session, s.project, s.version) for s in seen] == [
        ("s1", "/project", "2.1.20"),
        (None, None, "2.1.22"),
    ]
    assert fold(Session(), found).id == "s1"


@pytest.mark.parametrize("stamp", [None, "", "yesterday", "2026-11-14"], ids=repr)
def test_time_that_is_none(stamp: str | None) -> None:
    """A time that is not there or none does not lose the call."""
    (call,) = events(assistant("m1", timestamp=stamp))
    assert isinstance(call, Call)


# Sidechains.


def test_inline_sidechains() -> None:
    """Subagents inside the main file are threads by their chain, and not the main one."""
    found = session(
        assistant("m1", 50_000, uuid="main-1"),
        record("user", uuid="aaaaaaaa-1", isSidechain=True),
        assistant("x1", 3_000, uuid="aaaaaaaa-2", parentUuid="aaaaaaaa-1", isSidechain=True),
        record("user", uuid="bbbbbbbb-1", isSidechain=True),
        assistant("y1", 4_000, uuid="bbbbbbbb-2", parentUuid="bbbbbbbb-1", isSidechain=True),
        assistant("x2", 3_500, uuid="aaaaaaaa-3", parentUuid="aaaaaaaa-2", isSidechain=True),
    )
    chains = {name: list(found.threads[name].calls) for name in found.threads}
    assert chains == {
        MAIN: ["m1"],
        "sidechain-aaaaaaaa": ["x1", "x2"],
        "sidechain-bbbbbbbb": ["y1"],
    }


def test_sidechain_in_parts() -> None:
    """A chain goes on over a cursor."""
    data = lines([
        record("user", uuid="aaaaaaaa-1", isSidechain=True),
        assistant("x1", uuid="aaaaaaaa-2", parentUuid="aaaaaaaa-1", isSidechain=True),
    ])  # fmt: skip
    first = SOURCE.parse(io.BytesIO(data))
    list(first)
    more = lines([assistant("x2", uuid="z", parentUuid="aaaaaaaa-2", isSidechain=True)])
    later = list(JsonLines(io.BytesIO(more), TranscriptParser(first.cursor.carry), first.cursor))
    assert [event.thread for event in later if isinstance(event, Call)] == ["sidechain-aaaaaaaa"]


def test_sidechain_without_a_uuid() -> None:
    """A sidechain's record without a uuid does not draw other chains into its own."""
    loose = assistant("x1", isSidechain=True)
    del loose["uuid"]
    found = session(
        loose,
        assistant("y1", uuid="bbbbbbbb-1", isSidechain=True),
        assistant("z1", uuid="cccccccc-1", isSidechain=True),
    )
    assert {"sidechain-bbbbbbbb", "sidechain-cccccccc"} <= set(found.threads)


def test_subagent_file() -> None:
    """In a subagent's own file each record names it."""
    found = session(
        assistant("x1", isSidechain=True, agentId="a881341", uuid="1"),
        assistant("x2", isSidechain=True, agentId="a881341", uuid="2", parentUuid="elsewhere"),
    )
    assert {name: len(t.calls) for name, t in found.threads.items()} == {"a881341": 2}
    assert found.id == "s1"


# Compactions.


def test_boundary_and_summary_are_one() -> None:
    """A boundary and its summary tell one compaction; before is the client's, after the next."""
    main = thread(
        assistant("m1", 166_000), boundary(), summary(), assistant("m2", 42_000), assistant("m3", 1)
    )
    (compaction,) = main.compactions
    assert (compaction.trigger, compaction.before, compaction.after) == ("auto", 167_300, 42_000)
    assert not compaction.inferred


def test_each_boundary_counts() -> None:
    """Two compactions are two, with calls between and without."""
    by_hand = {"trigger": "manual"}
    main = thread(
        assistant("m1", 166_000),
        boundary(timestamp=clock(1)),
        summary(timestamp=clock(1)),
        assistant("m2", 42_000),
        boundary(timestamp=clock(2), compactMetadata=by_hand),
        summary(timestamp=clock(2)),
        boundary(timestamp=clock(3)),
        summary(timestamp=clock(3)),
    )
    assert [(c.trigger, c.before) for c in main.compactions] == [
        ("auto", 167_300),
        ("manual", 42_010),
        ("auto", 167_300),
    ]


def test_summary_alone() -> None:
    """Up to 1.0.x the summary alone tells a compaction."""
    old: Json = {"version": "1.0.60"}
    main = thread(
        assistant("m1", 150_000, 90, **old), summary(**old), assistant("m2", 30_000, **old),
        summary(**old),
    )  # fmt: skip
    assert [(c.before, c.after, c.trigger) for c in main.compactions] == [
        (150_090, 30_000, None),
        (30_010, None, None),
    ]


def test_summary_over_a_cursor() -> None:
    """A boundary that was read before, and its summary after, are one compaction."""
    first = SOURCE.parse(io.BytesIO(lines([assistant("m1"), boundary()])))
    list(first)
    rest = JsonLines(
        io.BytesIO(lines([summary()])), TranscriptParser(first.cursor.carry), first.cursor
    )
    assert list(rest) == []


def test_sidechain_between_boundary_and_summary() -> None:
    """A subagent's call between a boundary and its summary does not make it two."""
    main = thread(
        assistant("m1", 166_000),
        boundary(timestamp=clock(1)),
        assistant("x1", uuid="aaaaaaaa-1", isSidechain=True),
        summary(timestamp=clock(2)),
    )
    assert len(main.compactions) == 1


def test_preserved_messages() -> None:
    """Messages kept over a boundary, written after it with zeros, are no calls."""
    passes = [{"type": "message", "input_tokens": 4, "cache_read_input_tokens": 204_663,
               "cache_creation_input_tokens": 0, "output_tokens": 9}]  # fmt: skip
    main = thread(
        assistant("m1", 204_667),
        boundary(),
        assistant("m1", message={"usage": {**ZERO, "iterations": passes * 2}}),
        summary(),
    )
    assert len(main.compactions) == 1
    assert main.current is None
    assert main.calls["m1"].usage.sent == 204_667


def test_microcompact() -> None:
    """Old results that were trimmed make the occupancy unknown, and are no compaction."""
    trimmed = record("system", subtype="microcompact_boundary")
    assert events(trimmed) == [Trimmed(at=1_794_650_400.0)]
    main = thread(assistant("m1", 150_000), trimmed, assistant("m2", 60_000))
    assert (main.compactions, main.current) == ((), "m2")


def test_fall_without_a_record() -> None:
    """Where the client records compactions, a fall alone is none."""
    assert thread(assistant("m1", 150_000), assistant("m2", 20_000)).compactions == ()


@pytest.mark.parametrize("subtype", ["stop_hook_summary", "turn_duration", "local_command", None])
def test_other_system_records(subtype: str | None) -> None:
    """Any other system record says nothing."""
    assert events(record("system", subtype=subtype)) == []


def test_boundary_without_metadata() -> None:
    """A boundary that says nothing of itself is a compaction all the same."""
    assert events(boundary(compactMetadata=None)) == [Compacted(at=1_794_650_400.0)]
    assert events(boundary(compactMetadata={"trigger": "new way"})) == [
        Compacted(at=1_794_650_400.0)
    ]


def test_compaction_of_a_subagent() -> None:
    """A subagent's compaction is its own."""
    found = session(assistant("m1"), boundary(isSidechain=True, agentId="a1"))
    assert found.threads[MAIN].compactions == ()
    assert len(found.threads["a1"].compactions) == 1


# Kinds.


@pytest.mark.parametrize("kind", sorted(TRANSCRIPT_KINDS - {"assistant", "user", "system"}))
def test_known_kinds_say_nothing(kind: str) -> None:
    """A kind that we know and do not read is neither unknown nor malformed, however it looks."""
    assert events({"type": kind}) == []
    assert events({"type": kind, "message": "text", "version": 7, "timestamp": 1.5}) == []


@pytest.mark.parametrize("extra", [{}, {"message": "text"}, {"uuid": 7}])
def test_unknown_kind(extra: Json) -> None:
    """A kind of a newer client is counted and skipped, however it looks."""
    found, tally = parsed({"type": "brand-new", **extra}, assistant("m1"))
    assert (tally.records, tally.unknown, tally.malformed) == (2, 1, 0)
    assert [event.id for event in found if isinstance(event, Call)] == ["m1"]


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("input_tokens", None, "got `null`"),
        ("input_tokens", -1, "got -1"),
        ("input_tokens", "5", "got `str`"),
        ("output_tokens", 5.0, "got `float`"),
        ("output_tokens", True, "got `bool`"),
        ("cache_read_input_tokens", -7, "'cache_read' must be"),
    ],
)
def test_malformed_usage(field: str, value: object, complaint: str) -> None:
    """A count that cannot be is counted as malformed with its reason, the rest is read."""
    bad = assistant("m1")
    bad["message"]["usage"][field] = value
    found, tally = parsed(bad, assistant("m2"))
    assert (tally.records, tally.unknown, tally.malformed) == (2, 0, 1)
    assert complaint in tally.places[0]
    assert [event.id for event in found if isinstance(event, Call)] == ["m2"]


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
def test_missing_count(field: str) -> None:
    """A count that was renamed is an error, not a silent zero."""
    bad = assistant("m1")
    del bad["message"]["usage"][field]
    tally = parsed(bad)[1]
    assert tally.malformed == 1
    assert field in tally.places[0]


@pytest.mark.parametrize("kind", ["assistant", "user", "system"])
def test_malformed_record_that_we_read(kind: str) -> None:
    """A kind that we read and that has another form is malformed."""
    assert parsed({"type": kind, "message": "text"})[1].malformed == 1


@pytest.mark.parametrize("line", [b"{}", b'{"type":7}', b"[]", b'{"type":"user"', b"7"])
def test_no_record(line: bytes) -> None:
    """A line without a kind is malformed."""
    found = SOURCE.parse(io.BytesIO(line + b"\n" + lines([assistant("m1")])))
    assert len(list(found)) == 2
    assert found.tally.malformed == 1


@pytest.mark.parametrize("place", ["type", "uuid", "version"])
def test_invalid_utf8(place: str) -> None:
    """Invalid UTF-8 in a field that is read loses no other record, and is no crash."""
    broken = record("user")
    broken[place] = "marker"
    bad = lines([broken]).replace(b"marker", b"\xff\xfe")
    found = SOURCE.parse(io.BytesIO(bad + lines([assistant("m2")])))
    assert [event.id for event in found if isinstance(event, Call)][-1] == "m2"


def test_glued_records() -> None:
    """Two records glued on one line at a resume are both read."""
    glued = lines([assistant("m1")]).rstrip() + lines([assistant("m2")])
    found = SOURCE.parse(io.BytesIO(glued))
    assert [event.id for event in found if isinstance(event, Call)] == ["m1", "m2"]
    assert (found.tally.records, found.tally.malformed) == (2, 0)


KINDS = st.sampled_from([
    assistant("m1", 150_000, 1), assistant("m1", 150_000, 90), assistant("m2", 20_000),
    assistant("x1", uuid="a", isSidechain=True),
    assistant("x2", uuid="b", parentUuid="a", isSidechain=True),
    assistant("m3", version="2.1.326"), boundary(), summary(), record("user"),
    record("system", subtype="microcompact_boundary"), {"type": "brand-new"}, {"type": "user",
    "message": 5}, {"type": "summary", "summary": "x", "leafUuid": "y"},
])  # fmt: skip


@given(st.lists(KINDS, max_size=12), st.data())
def test_reading_in_parts(records: list[Json], data: st.DataObject) -> None:
    """From cursor to cursor a transcript gives the events that it gives at once."""
    whole, cursor, found = lines(records), START, list[AnyEvent]()
    for n in [*sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=4))), len(records)]:
        file = io.BytesIO(lines(records[:n]))
        file.seek(cursor.offset)
        part = JsonLines(file, TranscriptParser(cursor.carry), cursor)
        found += list(part)
        cursor = part.cursor
    at_once = SOURCE.parse(io.BytesIO(whole))
    assert found == list(at_once)
    assert cursor == at_once.cursor


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
GARBAGE = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "message", "usage", "id", "uuid", "isSidechain", "subtype",
                         "compactMetadata", "preTokens", "input_tokens", "output_tokens",
                         "iterations", "isCompactSummary"]),
        inner | st.sampled_from(["assistant", "user", "system", "compact_boundary"]),
        max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(GARBAGE.map(lambda v: json.dumps(v).encode()) | st.binary(max_size=30), max_size=6))
def test_garbage(pieces: list[bytes]) -> None:
    """Whatever is in a file, it is counted, and the rest is read."""
    data = b"\n".join(pieces) + b"\n" + lines([assistant("last")])
    found = SOURCE.parse(io.BytesIO(data))
    calls = [event for event in found if isinstance(event, Call)]
    assert calls[-1].id == "last"
    fold(Session(), SOURCE.parse(io.BytesIO(data)))


# Whose it is.


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (lines([assistant("m1")]), "transcript"),
        (lines([record("queue-operation")]), "transcript"),
        (lines([{"type": "summary", "summary": "x", "leafUuid": "y"}]), "transcript"),
        (
            lines([{"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}]),
            "transcript",
        ),
        (lines([{"type": "mode"}, record("user")]), "transcript"),
        (b"\xff\xfe\nnoise\n" + lines([record("user")]), "transcript"),
        (lines([{"type": "system", "subtype": "init", "session_id": "s"}]), "stream"),
        (lines([{"type": "result", "session_id": "s"}]), "stream"),
        (lines([record("user", session_id="s1")]), "transcript"),
        (lines([assistant("m1")])[:-30], None),
        (lines([{"type": "summary", "summary": "x"}]), None),
        (lines([{"type": "session", "version": 3, "id": "x"}]), None),
        (lines([{"type": "session_meta", "payload": {"id": "x"}}]), None),
        (lines([{"type": "init", "session_id": "x", "model": "auto"}]), None),
        (b"[1,2]\n7\nnull\n", None),
        (b"", None),
    ],
)
def test_recognise(head: bytes, form: str | None) -> None:
    """The first line with a session tells a transcript from a stream, and from others'."""
    assert SOURCE.recognise(head) == form


@pytest.mark.parametrize(
    "noise",
    [b'{"type":"us\xffer","sessionId":"x"}', b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"],
    ids=["utf-8", "deep"],
)
def test_recognise_beyond_noise(noise: bytes) -> None:
    """A first line that cannot be read is no crash."""
    assert SOURCE.recognise(noise + b"\n" + lines([record("user")])) == "transcript"


# Where its files are.


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a project, a subagent of each kind, and things that are no transcripts."""
    project = tmp_path / ".claude" / "projects" / "-work-thing"
    nested = project / "s1" / "subagents"
    nested.mkdir(parents=True)
    (project / "s1.jsonl").write_bytes(lines([assistant("m1"), assistant("m2")]))
    (project / "agent-old.jsonl").write_bytes(lines([assistant("m3", isSidechain=True)]))
    (nested / "agent-a1.jsonl").write_bytes(
        lines([assistant("m4", isSidechain=True, agentId="a1")])
    )
    (nested / "agent-a1.meta.json").write_text("{}")
    (project / "x.jsonl").mkdir()
    (project / "dangling.jsonl").symlink_to(tmp_path / "gone.jsonl")
    (project / "notes.txt").write_text("no")
    return tmp_path


def found_in(home: Path, **env: str) -> dict[str, tuple[str | None, str]]:
    """The transcripts by name: their session and thread."""
    places = Places(home=home, env=env)
    return {Path(t.path).name: (t.session, t.thread) for t in transcripts(places)}


def test_transcripts(home: Path) -> None:
    """Every transcript is found with its session and thread; folders and dangling links are not."""
    assert found_in(home) == {
        "s1.jsonl": ("s1", MAIN),
        "agent-old.jsonl": ("s1", "old"),
        "agent-a1.jsonl": ("s1", "a1"),
    }


def test_transcript_facts(home: Path) -> None:
    """A transcript has its size and time, and can be read from a cursor."""
    places = Places(home=home, env={})
    main = next(t for t in transcripts(places) if t.session == "s1" and t.thread == MAIN)
    status = os.stat(main.path)
    assert (main.agent, main.size, main.modified) == ("claude", status.st_size, status.st_mtime)
    reader = SOURCE.read(main)
    assert [event.id for event in reader if isinstance(event, Call)] == ["m1", "m2"]
    assert reader.cursor.offset == main.size
    again = SOURCE.read(main, reader.cursor)
    assert list(again) == []
    assert again.cursor == reader.cursor


def test_transcript_that_has_gone(home: Path) -> None:
    """A transcript that was deleted since is an error with its path."""
    places = Places(home=home, env={})
    main = next(t for t in transcripts(places) if t.thread == MAIN)
    Path(main.path).unlink()
    with pytest.raises(UnreadableTranscript, match="No such file"):
        SOURCE.read(main, Cursor())


def test_no_files(tmp_path: Path) -> None:
    """A machine without Claude Code has no transcripts, and that is no error."""
    assert found_in(tmp_path) == {}


def test_linked_transcript(home: Path, tmp_path: Path) -> None:
    """A link to a file is followed; a link to a folder is not, so that no ring is walked."""
    project = home / ".claude" / "projects" / "-work-thing"
    (tmp_path / "real.jsonl").write_bytes(lines([assistant("m9")]))
    (project / "linked.jsonl").symlink_to(tmp_path / "real.jsonl")
    (project / "ring").symlink_to(project)
    assert sorted(found_in(home)) == [
        "agent-a1.jsonl", "agent-old.jsonl", "linked.jsonl", "s1.jsonl",
    ]  # fmt: skip


@pytest.mark.usefixtures("without_privileges")
def test_unreadable_folder(home: Path) -> None:
    """A folder that may not be read is passed over, the others are read."""
    closed = home / ".claude" / "projects" / "closed"
    closed.mkdir()
    (closed / "s9.jsonl").write_bytes(b"")
    closed.chmod(0)
    try:
        assert "s1.jsonl" in found_in(home)
        assert "s9.jsonl" not in found_in(home)
    finally:
        closed.chmod(0o700)


def test_projects_that_is_a_file(tmp_path: Path) -> None:
    """A `projects` that is no folder is passed over."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "projects").write_text("no folder")
    assert found_in(tmp_path) == {}


def test_roots(tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR names one or several folders instead of the usual ones."""
    usual = [tmp_path / ".claude", tmp_path / ".config" / "claude"]
    assert roots(Places(home=tmp_path, env={})) == usual
    assert roots(Places(home=tmp_path, env={"CLAUDE_CONFIG_DIR": ""})) == usual
    named = Places(home=tmp_path, env={"CLAUDE_CONFIG_DIR": "/a, /b,"})
    assert roots(named) == [Path("/a"), Path("/b")]


def test_named_root(home: Path, tmp_path: Path) -> None:
    """Only the folder that is named is looked in."""
    other = tmp_path / "other"
    (other / "projects" / "p").mkdir(parents=True)
    (other / "projects" / "p" / "s7.jsonl").write_bytes(b"")
    assert found_in(home, CLAUDE_CONFIG_DIR=str(other)) == {"s7.jsonl": ("s7", MAIN)}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/p/s1.jsonl", ("s1", MAIN)),
        ("/p/agent-x.jsonl", (None, "x")),
        ("/p/s1/subagents/agent-x.jsonl", ("s1", "x")),
        ("/p/s1/subagents/agent-acompact-9.jsonl", ("s1", "acompact-9")),
        ("s1.jsonl", ("s1", MAIN)),
    ],
)
def test_whose(path: str, expected: tuple[str | None, str]) -> None:
    """A transcript's place tells its session and thread."""
    assert whose(path) == expected


# What the user told it.


def write(path: Path, **settings: Any) -> None:
    """Write a settings file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings), "utf-8")


def told(home: Path, project: Path | None = None, **env: str) -> tuple[bool | None, dict[str, int]]:
    """Whether it compacts by itself, and in which windows."""
    places = Places(home=home, env=env)
    found = SOURCE.settings(places, str(project) if project else None)
    assert found.place == "Claude Code's settings"
    return found.auto_compact, dict(found.auto_compact_windows)


def test_settings_untold(tmp_path: Path) -> None:
    """Without any file or variable nothing is told."""
    assert told(tmp_path) == (None, {})


def test_settings_files(tmp_path: Path) -> None:
    """The user's settings.json and .claude.json tell it, models by name."""
    write(tmp_path / ".claude.json", autoCompactEnabled=False, projects={}, numStartups=5)
    assert told(tmp_path) == (False, {})
    write(
        tmp_path / ".claude" / "settings.json",
        autoCompactEnabled=True,
        autoCompactWindow=300_000,
        modelSettings={"claude-opus-5-5": {"autoCompactWindow": 200_000}, "other": {}},
    )
    assert told(tmp_path) == (True, {"claude-opus-5-5": 200_000, "*": 300_000})


def test_settings_of_a_project(tmp_path: Path) -> None:
    """A project's settings go over the user's, its local ones over both."""
    project = tmp_path / "work"
    write(tmp_path / ".claude" / "settings.json", autoCompactWindow=300_000)
    write(project / ".claude" / "settings.json", autoCompactWindow=200_000)
    assert told(tmp_path, project) == (None, {"*": 200_000})
    write(project / ".claude" / "settings.local.json", autoCompactWindow=150_000)
    assert told(tmp_path, project) == (None, {"*": 150_000})
    assert told(tmp_path) == (None, {"*": 300_000})


def test_settings_from_the_environment(tmp_path: Path) -> None:
    """The variable goes before every file; what is no number says nothing."""
    write(tmp_path / ".claude" / "settings.json", autoCompactWindow=300_000)
    assert told(tmp_path, CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000") == (None, {"*": 150_000})
    assert told(tmp_path, CLAUDE_CODE_AUTO_COMPACT_WINDOW="many") == (None, {"*": 300_000})
    write(tmp_path / ".claude" / "settings.json", env={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "180000"})
    assert told(tmp_path) == (None, {"*": 180_000})


@pytest.mark.parametrize("name", ["DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"])
def test_switched_off_by_a_variable(tmp_path: Path, name: str) -> None:
    """A variable switches it off, whatever the files say; 0 and nothing do not."""
    write(tmp_path / ".claude.json", autoCompactEnabled=True)
    for value in ("1", "true", "YES", "on"):
        assert told(tmp_path, None, **{name: value}) == (False, {})
    for value in ("0", "", "false"):
        assert told(tmp_path, None, **{name: value}) == (True, {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"autoCompactWindow": "big"}', "\ufeff{}"])
def test_settings_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    """A settings file that is not as expected is not ours to complain about: it tells nothing."""
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    assert told(tmp_path) == (None, {})


def test_settings_that_are_no_text(tmp_path: Path) -> None:
    """Also a file that is no UTF-8, or a folder, tells nothing."""
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(b'{"env":{"A":"\xff"}}')
    assert told(tmp_path) == (None, {})
    (tmp_path / ".claude.json").mkdir()
    assert told(tmp_path) == (None, {})


def test_settings_of_a_named_folder(tmp_path: Path) -> None:
    """With CLAUDE_CONFIG_DIR both files lie in that folder."""
    other = tmp_path / "other"
    write(other / "settings.json", autoCompactWindow=150_000)
    write(other / ".claude.json", autoCompactEnabled=False)
    write(tmp_path / ".claude.json", autoCompactEnabled=True)
    assert told(tmp_path, CLAUDE_CONFIG_DIR=str(other)) == (False, {"*": 150_000})


def test_settings_with_an_empty_folder_name(tmp_path: Path) -> None:
    """A CLAUDE_CONFIG_DIR that names nothing is no crash."""
    assert told(tmp_path, CLAUDE_CONFIG_DIR=" , ") == (None, {})
    assert found_in(tmp_path, CLAUDE_CONFIG_DIR=" , ") == {}


def test_settings_to_limit(tmp_path: Path) -> None:
    """`/autocompact 200k` on a 1M model: it compacts at 167,000 while the window is 1,000,000."""
    write(
        tmp_path / ".claude" / "settings.json",
        modelSettings={"claude-opus-5-5": {"autoCompactWindow": 200_000}},
    )
    found = session(assistant("m1", message={"model": "claude-opus-5-5"}))
    reading = read(
        found, found.threads[MAIN], "transcript",
        settings=SOURCE.settings(Places(home=tmp_path, env={})),
    )  # fmt: skip
    assert reading.window is not None
    assert reading.limit is not None
    assert (reading.window.tokens, reading.limit.tokens) == (1_000_000, 167_000)


def test_uses_the_tables() -> None:
    """What a transcript tells is enough to find its window and its limit."""
    found = session(assistant("m1", 50_000))
    reading = read(found, found.threads[MAIN], "transcript")
    assert reading.window is not None
    assert reading.limit is not None
    assert (reading.window.tokens, reading.limit.tokens) == (200_000, 167_000)


@pytest.mark.parametrize(
    ("told", "part"),
    [("50", 0.5), ("100", 1.0), ("12.5", 0.125), ("0", None), ("101", None), ("", None),
     ("half", None), ("nan", None)],
)  # fmt: skip
def test_part_of_the_window(tmp_path: Path, told: str, part: float | None) -> None:
    """CLAUDE_AUTOCOMPACT_PCT_OVERRIDE, read as the client reads it."""
    places = Places(home=tmp_path, env={"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": told})
    assert SOURCE.settings(places).part == part
