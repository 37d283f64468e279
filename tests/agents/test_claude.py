"""Claude Code's transcripts with the oddities of real ones, their places and its settings."""

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
from brimline.agents.claude.transcript import TranscriptParser
from brimline.agents.claude.transcript_source import SOURCE
from brimline.agents.transcripts.lines import JsonLines
from brimline.agents.transcripts.source import START, Cursor, Lookalike, Places, Tally
from brimline.context.events import MAIN, AnyEvent, Call, Compacted, SessionSeen, Trimmed, Unmetered
from brimline.context.providers.anthropic import MESSAGES, MessageUsage, usage_of
from brimline.context.tracker import Session, Thread, fold, read
from brimline.context.usage import Usage
from brimline.errors import UnreadableTranscript

Json = dict[str, Any]
ZERO = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 0}  # fmt: skip


def record(kind: str, **fields: Any) -> Json:
    return {
        "type": kind,
        "uuid": "u0",
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "timestamp": "2026-11-14T10:00:00.000Z",
        "sessionId": "s1",
        "cwd": "/project",
        "version": "2.1.325",
        **fields,
    }


def assistant(id: str, sent: int = 1_000, output: int = 10, **fields: Any) -> Json:
    """An assistant record of a call that sent this many tokens."""
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
    metadata = {"trigger": "auto", "preTokens": 167_300, "postTokens": 2_961}
    return record(
        "system", **{"subtype": "compact_boundary", "compactMetadata": metadata, **fields}
    )


def summary(**fields: Any) -> Json:
    message = {"role": "user", "content": "This session is being continued."}
    return record("user", message=message, isCompactSummary=True, **fields)


def timestamp(minute: int) -> str:
    return f"2026-11-14T10:{minute:02}:00.000Z"


def lines(records: Iterable[Json]) -> bytes:
    return b"".join(json.dumps(r, separators=(",", ":")).encode() + b"\n" for r in records)


def parse_records(*records: Json) -> tuple[list[AnyEvent], Tally]:
    """Return the reader of a transcript, with its counts."""
    reader = SOURCE.parse(io.BytesIO(lines(records)))
    return list(reader), reader.tally


def events(*records: Json) -> list[AnyEvent]:
    """Return the events of a transcript without malformed records, and without SessionSeen."""
    reader, tally = parse_records(*records)
    assert (tally.records, tally.unknown, tally.malformed) == (len(records), 0, 0)
    return [event for event in reader if not isinstance(event, SessionSeen)]


def session(*records: Json) -> Session:
    return fold(Session(), parse_records(*records)[0])


def thread(*records: Json) -> Thread:
    return session(*records).threads[MAIN]


def test_source_is_registered_by_its_name() -> None:
    assert source("claude") is SOURCE
    assert SOURCE.agent == "claude"


# Calls.


def test_call_has_the_message_id_and_all_token_counts() -> None:
    reader, _ = parse_records(assistant("m1", 31_204, 250))
    assert reader == [
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
def test_usage_read_in_bulk_equals_that_of_the_provider_table(
    fresh: int, output: int, read: int, write: int
) -> None:
    record = MessageUsage(fresh, output, read, write)
    assert usage_of(record) == MESSAGES.usage(record) == Usage(fresh, read, write, output)


def test_copies_of_a_message_are_one_call_with_the_last_output() -> None:
    main = thread(
        assistant("m1", 5_000, 1, uuid="a", requestId="r"),
        record("user", message={"role": "user", "content": [{"type": "tool_result"}]}),
        assistant("m1", 5_000, 250, uuid="b"),
    )
    assert list(main.calls) == ["m1"]
    assert main.calls["m1"].usage.output == 250


def test_copies_with_and_without_a_request_id_are_one_call() -> None:
    main = thread(assistant("m1", requestId="r1"), assistant("m1"), assistant("m1", requestId=None))
    assert len(main.calls) == 1


def test_synthetic_reply_is_no_call() -> None:
    made_up = assistant(
        "x", isApiErrorMessage=True, message={"model": "<synthetic>", "usage": ZERO}
    )
    assert events(made_up) == []


def test_synthetic_reply_with_counts_is_no_call() -> None:
    assert thread(
        assistant("m1"), assistant("x", message={"model": "<synthetic>"})
    ).calls.keys() == {"m1"}


NO_COUNTS = {"input_tokens": None, "output_tokens": None}


@pytest.mark.parametrize("message", [{"usage": None}, {"usage": NO_COUNTS}], ids=str)
def test_reply_without_usage_is_unmetered(message: Json) -> None:
    bad = assistant("m1", message=message)
    assert [type(each) for each in events(bad)] == [Unmetered]
    assert events(assistant("m1", message=message | {"model": "<synthetic>"})) == []


def test_record_without_a_message_is_no_call() -> None:
    assert events(record("assistant", message=None)) == []


def test_counts_of_the_cache_may_be_null() -> None:
    """By the API's reference, null means that the cache was not used."""
    usage = {"input_tokens": 900, "output_tokens": 5, "cache_read_input_tokens": None,
             "cache_creation_input_tokens": None,
             "cache_creation": {"ephemeral_1h_input_tokens": None}}  # fmt: skip
    (call,) = events(assistant("m1", message={"usage": usage}))
    assert isinstance(call, Call)
    assert call.usage == Usage(900, 0, 0, 5)


def unnamed(uuid: str | None, parent: str, id: str | None = None, **fields: Any) -> Json:
    """A record of a call without a message id."""
    return assistant("", uuid=uuid, parentUuid=parent, message={"id": id}, **fields)


@pytest.mark.parametrize("id", [None, ""], ids=["null", "empty"])
def test_call_without_message_id_has_the_request_s(id: str | None) -> None:
    records = [unnamed("u1", "u0", id, requestId="r1"), unnamed("u2", "u1", id, requestId="r1"),
               unnamed("u4", "u3", id, requestId="r2")]  # fmt: skip
    assert thread(*records).calls.keys() == {"r1", "r2"}


def test_call_without_any_id_has_that_of_its_first_record() -> None:
    """Its records are a chain; the next call's follow a tool result."""
    records = [unnamed("u1", "u0"), unnamed("u2", "u1"), unnamed("u3", "u2"), unnamed("u5", "u4")]
    assert thread(*records).calls.keys() == {"u1", "u5"}
    parser = TranscriptParser()
    parser.feed(lines(records[:1]))
    later = TranscriptParser(parser.carry()).feed(lines(records[1:2])) or ()
    assert [each.id for each in later if isinstance(each, Call)] == ["u1"]


def test_reply_without_any_id_is_unmetered() -> None:
    assert [type(each) for each in events(unnamed(None, "u0"))] == [Unmetered]


def test_last_pass_that_is_no_advisor_s_counts() -> None:
    one = {"type": "message", "input_tokens": 5, "cache_read_input_tokens": 46_000,
           "cache_creation_input_tokens": 1_000, "output_tokens": 400}  # fmt: skip
    advisor = {"type": "advisor_message", "input_tokens": 60_000, "output_tokens": 900}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90_000,
             "cache_creation_input_tokens": 2_000, "output_tokens": 700,
             "iterations": [one, advisor, one]}  # fmt: skip
    main = thread(assistant("m1", advisorModel="claude-opus-5-5", message={"usage": usage}))
    assert main.calls["m1"].usage == Usage(5, 46_000, 1_000, 400)


def advised(id: str, output: int = 10) -> Json:
    """A call with a pass, an advisor's and its own last one, whose top level has their sums."""
    own = {"type": "message", "input_tokens": 5, "cache_read_input_tokens": 46_000,
           "output_tokens": output}  # fmt: skip
    advice = {"type": "advisor_message", "input_tokens": 60_000, "output_tokens": 900,
              "model": "claude-fable-5"}  # fmt: skip
    usage = {"input_tokens": 10, "cache_read_input_tokens": 92_000, "output_tokens": 2 * output,
             "iterations": [own, advice, own]}  # fmt: skip
    return assistant(id, message={"usage": usage})


def test_passes_beside_the_last_are_spent_once_by_model() -> None:
    main = thread(advised("m1", 1), advised("m1", 400), assistant("m2"), advised("m1", 400))
    own, advice = Usage(5, 46_000, 0, 400), Usage(60_000, 0, 0, 900)
    assert main.calls["m1"].usage == own
    assert {(each.id, each.model): each.usage for each in main.spendings} == {
        ("m1", "claude-sonnet-4-5"): own,
        ("m1", "claude-fable-5"): advice,
    }
    assert main.total == own + own + advice + main.calls["m2"].usage


@pytest.mark.parametrize(
    ("fields", "service_tier"),
    [
        ({"speed": "fast", "service_tier": "standard"}, "fast"),
        ({"speed": "standard", "service_tier": "priority"}, "priority"),
        ({"speed": None, "service_tier": None}, None),
        ({}, None),
    ],
)
def test_call_has_its_speed_or_service_tier(fields: Json, service_tier: str | None) -> None:
    usage = {"input_tokens": 3, "output_tokens": 5, **fields}
    main = thread(assistant("m1", message={"usage": usage}))
    assert main.calls["m1"].service_tier == service_tier


def test_call_has_the_branch_of_its_own_record() -> None:
    """A detached head, and a folder that is no repository, are `HEAD` or empty."""
    branches = ["main", "feature/x", "HEAD", "", None]
    records = [assistant(f"m{n}", gitBranch=branch) for n, branch in enumerate(branches)]
    calls = [e for e in events(*records, assistant("old")) if isinstance(e, Call)]
    assert [call.branch for call in calls] == ["main", "feature/x", None, None, None, None]


def test_usage_in_progress_and_tool_results_is_no_call() -> None:
    nested = assistant("sub")["message"]
    read_events = events(
        record("progress", data={"message": {"message": nested}, "type": "agent_progress"}),
        record("progress", data={"normalizedMessages": [{"message": nested}]}),
        record("user", message={"role": "user", "content": []},
               toolUseResult={"usage": nested["usage"], "totalTokens": 5}),
    )  # fmt: skip
    assert read_events == []


def test_summary_record_is_a_title_not_a_compaction() -> None:
    assert events({"type": "summary", "summary": "Fix the bug", "leafUuid": "u9"}) == []


def test_requested_model_gives_the_window() -> None:
    folded = session(
        assistant("m1", 50_000, requestedModel="claude-opus-4-6[1m]",
                  message={"model": "claude-opus-4-6"})
    )  # fmt: skip
    main = folded.threads[MAIN]
    assert main.model == "claude-opus-4-6[1m]"
    assert main.models == ("claude-opus-4-6",)
    window = read(folded, main, "transcript").window
    assert window is not None
    assert window.tokens == 1_000_000


@pytest.mark.parametrize(
    "requested", ["sonnet", "default", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"]
)
def test_unknown_requested_model_does_not_hide_the_answering_one(requested: str) -> None:
    folded = session(assistant("m1", 50_000, requestedModel=requested))
    window = read(folded, folded.threads[MAIN], "transcript").window
    assert window is not None
    assert window.tokens == 200_000


def test_new_client_version_is_reported_once() -> None:
    reader, _ = parse_records(
        assistant("m1", version="2.1.20"), assistant("m2", version="2.1.20"),
        assistant("m3", version="2.1.22", sessionId="s2", cwd="/other"),
    )  # fmt: skip
    seen = [event for event in reader if isinstance(event, SessionSeen)]
    assert [(s.session, s.project, s.version) for s in seen] == [
        ("s1", "/project", "2.1.20"),
        (None, None, "2.1.22"),
    ]
    assert fold(Session(), reader).id == "s1"


def test_new_effort_is_reported_once() -> None:
    """A subagent's own effort is not that of the session."""
    efforts = ("low", "low", None, "high", None)
    calls = [assistant(f"m{n}", effort=effort) for n, effort in enumerate(efforts)]
    aside = assistant("s1", isSidechain=True, agentId="a1", effort="max")
    reader, _ = parse_records(*calls, aside)
    seen = [event for event in reader if isinstance(event, SessionSeen)]
    assert [event.effort for event in seen] == ["low", "high"]


@pytest.mark.parametrize("stamp", [None, "", "yesterday", "2026-11-14"], ids=repr)
def test_call_without_a_valid_time_counts(stamp: str | None) -> None:
    (call,) = events(assistant("m1", timestamp=stamp))
    assert isinstance(call, Call)


# Sidechains.


def test_sidechains_in_the_main_file_are_threads_of_their_own() -> None:
    folded = session(
        assistant("m1", 50_000, uuid="main-1"),
        record("user", uuid="aaaaaaaa-1", isSidechain=True),
        assistant("x1", 3_000, uuid="aaaaaaaa-2", parentUuid="aaaaaaaa-1", isSidechain=True),
        record("user", uuid="bbbbbbbb-1", isSidechain=True),
        assistant("y1", 4_000, uuid="bbbbbbbb-2", parentUuid="bbbbbbbb-1", isSidechain=True),
        assistant("x2", 3_500, uuid="aaaaaaaa-3", parentUuid="aaaaaaaa-2", isSidechain=True),
    )
    chains = {name: list(folded.threads[name].calls) for name in folded.threads}
    assert chains == {
        MAIN: ["m1"],
        "sidechain-aaaaaaaa": ["x1", "x2"],
        "sidechain-bbbbbbbb": ["y1"],
    }


def test_sidechain_continues_after_a_cursor() -> None:
    data = lines([
        record("user", uuid="aaaaaaaa-1", isSidechain=True),
        assistant("x1", uuid="aaaaaaaa-2", parentUuid="aaaaaaaa-1", isSidechain=True),
    ])  # fmt: skip
    first = SOURCE.parse(io.BytesIO(data))
    list(first)
    more = lines([assistant("x2", uuid="z", parentUuid="aaaaaaaa-2", isSidechain=True)])
    later = list(JsonLines(io.BytesIO(more), TranscriptParser(first.cursor.carry), first.cursor))
    assert [event.thread for event in later if isinstance(event, Call)] == ["sidechain-aaaaaaaa"]


def test_sidechain_without_a_uuid_does_not_absorb_others() -> None:
    loose = assistant("x1", isSidechain=True)
    del loose["uuid"]
    folded = session(
        loose,
        assistant("y1", uuid="bbbbbbbb-1", isSidechain=True),
        assistant("z1", uuid="cccccccc-1", isSidechain=True),
    )
    assert {"sidechain-bbbbbbbb", "sidechain-cccccccc"} <= set(folded.threads)


def test_subagent_file_gives_the_thread_that_its_records_name() -> None:
    folded = session(
        assistant("x1", isSidechain=True, agentId="a881341", uuid="1"),
        assistant("x2", isSidechain=True, agentId="a881341", uuid="2", parentUuid="elsewhere"),
    )
    assert {name: len(t.calls) for name, t in folded.threads.items()} == {"a881341": 2}
    assert folded.id == "s1"


# Compactions.


def test_boundary_and_summary_are_one_compaction() -> None:
    main = thread(
        assistant("m1", 166_000), boundary(), summary(), assistant("m2", 42_000), assistant("m3", 1)
    )
    (compaction,) = main.compactions
    assert (compaction.trigger, compaction.before, compaction.after) == ("auto", 167_300, 42_000)
    assert not compaction.inferred


def test_each_boundary_is_a_compaction() -> None:
    by_hand = {"trigger": "manual"}
    main = thread(
        assistant("m1", 166_000),
        boundary(timestamp=timestamp(1)),
        summary(timestamp=timestamp(1)),
        assistant("m2", 42_000),
        boundary(timestamp=timestamp(2), compactMetadata=by_hand),
        summary(timestamp=timestamp(2)),
        boundary(timestamp=timestamp(3)),
        summary(timestamp=timestamp(3)),
    )
    assert [(c.trigger, c.before) for c in main.compactions] == [
        ("auto", 167_300),
        ("manual", 42_010),
        ("auto", 167_300),
    ]


def test_summary_without_a_boundary_is_a_compaction() -> None:
    """Clients up to 1.0.x write no boundary."""
    old: Json = {"version": "1.0.60"}
    main = thread(
        assistant("m1", 150_000, 90, **old), summary(**old), assistant("m2", 30_000, **old),
        summary(**old),
    )  # fmt: skip
    assert [(c.before, c.after, c.trigger) for c in main.compactions] == [
        (150_090, 30_000, None),
        (30_010, None, None),
    ]


def test_summary_after_a_cursor_belongs_to_the_boundary_before_it() -> None:
    first = SOURCE.parse(io.BytesIO(lines([assistant("m1"), boundary()])))
    list(first)
    rest = JsonLines(
        io.BytesIO(lines([summary()])), TranscriptParser(first.cursor.carry), first.cursor
    )
    assert list(rest) == []


def test_sidechain_between_boundary_and_summary_makes_no_second_compaction() -> None:
    main = thread(
        assistant("m1", 166_000),
        boundary(timestamp=timestamp(1)),
        assistant("x1", uuid="aaaaaaaa-1", isSidechain=True),
        summary(timestamp=timestamp(2)),
    )
    assert len(main.compactions) == 1


def test_preserved_messages_after_a_boundary_are_no_calls() -> None:
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


def test_trimmed_results_make_the_context_unknown_without_a_compaction() -> None:
    trimmed = record("system", subtype="microcompact_boundary")
    assert events(trimmed) == [Trimmed(at=1_794_650_400.0)]
    main = thread(assistant("m1", 150_000), trimmed, assistant("m2", 60_000))
    assert (main.compactions, main.current) == ((), "m2")


def test_fall_without_a_record_is_no_compaction() -> None:
    assert thread(assistant("m1", 150_000), assistant("m2", 20_000)).compactions == ()


@pytest.mark.parametrize("subtype", ["stop_hook_summary", "turn_duration", "local_command", None])
def test_other_system_records_give_no_event(subtype: str | None) -> None:
    assert events(record("system", subtype=subtype)) == []


def test_boundary_without_metadata_is_a_compaction() -> None:
    assert events(boundary(compactMetadata=None)) == [Compacted(at=1_794_650_400.0)]
    assert events(boundary(compactMetadata={"trigger": "new way"})) == [
        Compacted(at=1_794_650_400.0)
    ]


def test_compaction_of_a_subagent_is_not_the_main_thread_s() -> None:
    folded = session(assistant("m1"), boundary(isSidechain=True, agentId="a1"))
    assert folded.threads[MAIN].compactions == ()
    assert len(folded.threads["a1"].compactions) == 1


# Kinds.


@pytest.mark.parametrize("kind", sorted(TRANSCRIPT_KINDS - {"assistant", "user", "system"}))
def test_known_unread_kind_is_neither_unknown_nor_malformed(kind: str) -> None:
    assert events({"type": kind}) == []
    assert events({"type": kind, "message": "text", "version": 7, "timestamp": 1.5}) == []


@pytest.mark.parametrize("extra", [{}, {"message": "text"}, {"uuid": 7}])
def test_unknown_kind_is_counted_and_skipped(extra: Json) -> None:
    reader, tally = parse_records({"type": "brand-new", **extra}, assistant("m1"))
    assert (tally.records, tally.unknown, tally.malformed) == (2, 1, 0)
    assert [event.id for event in reader if isinstance(event, Call)] == ["m1"]


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("input_tokens", -1, "got -1"),
        ("input_tokens", "5", "got `str`"),
        ("output_tokens", 5.0, "got `float`"),
        ("output_tokens", True, "got `bool`"),
        ("cache_read_input_tokens", -7, "'cache_read' must be"),
    ],
)
def test_malformed_usage_is_counted_and_the_rest_read(
    field: str, value: object, complaint: str
) -> None:
    bad = assistant("m1")
    bad["message"]["usage"][field] = value
    reader, tally = parse_records(bad, assistant("m2"))
    assert (tally.records, tally.unknown, tally.malformed) == (2, 0, 1)
    assert complaint in tally.places[0]
    assert [event.id for event in reader if isinstance(event, Call)] == ["m2"]


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
def test_missing_count_is_an_error_not_zero(field: str) -> None:
    bad = assistant("m1")
    del bad["message"]["usage"][field]
    tally = parse_records(bad)[1]
    assert tally.malformed == 1
    assert field in tally.places[0]


@pytest.mark.parametrize("kind", ["assistant", "user", "system"])
def test_known_kind_of_another_form_is_malformed(kind: str) -> None:
    assert parse_records({"type": kind, "message": "text"})[1].malformed == 1


@pytest.mark.parametrize("line", [b"{}", b'{"type":7}', b"[]", b'{"type":"user"', b"7"])
def test_line_without_a_kind_is_malformed(line: bytes) -> None:
    reader = SOURCE.parse(io.BytesIO(line + b"\n" + lines([assistant("m1")])))
    assert len(list(reader)) == 2
    assert reader.tally.malformed == 1


@pytest.mark.parametrize("place", ["type", "uuid", "version"])
def test_invalid_utf8_loses_no_other_record(place: str) -> None:
    broken = record("user")
    broken[place] = "marker"
    bad = lines([broken]).replace(b"marker", b"\xff\xfe")
    reader = SOURCE.parse(io.BytesIO(bad + lines([assistant("m2")])))
    assert [event.id for event in reader if isinstance(event, Call)][-1] == "m2"


def test_two_records_on_one_line_are_both_read() -> None:
    glued = lines([assistant("m1")]).rstrip() + lines([assistant("m2")])
    reader = SOURCE.parse(io.BytesIO(glued))
    assert [event.id for event in reader if isinstance(event, Call)] == ["m1", "m2"]
    assert (reader.tally.records, reader.tally.malformed) == (2, 0)


KINDS = st.sampled_from([
    assistant("m1", 150_000, 1), assistant("m1", 150_000, 90), assistant("m2", 20_000),
    assistant("x1", uuid="a", isSidechain=True),
    assistant("x2", uuid="b", parentUuid="a", isSidechain=True),
    assistant("m3", version="2.1.326"), boundary(), summary(), record("user"),
    record("system", subtype="microcompact_boundary"), {"type": "brand-new"}, {"type": "user",
    "message": 5}, {"type": "summary", "summary": "x", "leafUuid": "y"},
])  # fmt: skip


@given(st.lists(KINDS, max_size=12), st.data())
def test_reading_by_cursors_gives_the_same_events(records: list[Json], data: st.DataObject) -> None:
    whole, cursor, read_events = lines(records), START, list[AnyEvent]()
    for n in [*sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=4))), len(records)]:
        file = io.BytesIO(lines(records[:n]))
        file.seek(cursor.offset)
        part = JsonLines(file, TranscriptParser(cursor.carry), cursor)
        read_events += list(part)
        cursor = part.cursor
    at_once = SOURCE.parse(io.BytesIO(whole))
    assert read_events == list(at_once)
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
def test_garbage_is_counted_and_the_rest_read(pieces: list[bytes]) -> None:
    data = b"\n".join(pieces) + b"\n" + lines([assistant("last")])
    reader = SOURCE.parse(io.BytesIO(data))
    calls = [event for event in reader if isinstance(event, Call)]
    assert calls[-1].id == "last"
    fold(Session(), SOURCE.parse(io.BytesIO(data)))


# Whose it is.


def stream_init(**fields: Any) -> Json:
    return {"type": "system", "subtype": "init", "session_id": "s", **fields}


def hook_line() -> Json:
    return {"type": "system", "subtype": "hook_started", "session_id": "s", "hook_id": "h"}


def without_user_type(line: Json) -> Json:
    return {name: value for name, value in line.items() if name != "userType"}


@pytest.mark.parametrize(
    ("head", "form"),
    [
        ([stream_init(qwen_code_version="0.24.4", permission_mode="yolo", tools=[])], "stream"),
        ([stream_init(apiKeySource="login", permissionMode="default")], "stream"),
        ([hook_line(), {"type": "result", "session_id": "s"}], "stream"),
        ([without_user_type(record("user", provenance="local"))], "transcript"),
        ([without_user_type(record("system", subtype="ui_telemetry"))], "transcript"),
    ],
    ids=["Qwen Code", "Cursor", "no init", "Qwen Code's transcript", "its telemetry"],
)
def test_lines_without_a_mark_of_claude_code_are_only_alike(head: list[Json], form: str) -> None:
    """Other clients write lines of the same shape, and count their tokens in another way."""
    match = SOURCE.recognise(lines(head))
    assert isinstance(match, Lookalike)
    assert match.form == form


def test_stream_of_qwen_code_is_not_read() -> None:
    """Its `input_tokens` include the cache: read as Claude Code's, the tokens were doubled."""
    usage = {"input_tokens": 20_010, "cache_read_input_tokens": 20_000, "output_tokens": 5}
    reply: Json = {"type": "assistant", "session_id": "s", "message": {"id": "m", "usage": usage}}
    result: Json = {"type": "result", "session_id": "s", "usage": usage, "modelUsage": {}}
    stream = [hook_line(), stream_init(qwen_code_version="0.24.4"), reply, result]
    match = SOURCE.recognise(lines(stream))
    assert isinstance(match, Lookalike)
    assert match.is_foreign
    parser = SOURCE.stream()
    assert [parser.feed(lines([each])) for each in stream] == [(), None, None, None]


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
        (lines([stream_init(claude_code_version="2.1.325")]), "stream"),
        (lines([stream_init(apiKeySource="none", mcp_servers=[])]), "stream"),
        (lines([hook_line(), stream_init(claude_code_version="2.1.325")]), "stream"),
        (lines([{"type": "result", "session_id": "s", "modelUsage": {}}]), "stream"),
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
def test_first_line_with_a_session_identifies_a_transcript(head: bytes, form: str | None) -> None:
    assert SOURCE.recognise(head) == form


@pytest.mark.parametrize(
    "noise",
    [b'{"type":"us\xffer","sessionId":"x"}', b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"],
    ids=["utf-8", "deep"],
)
def test_unreadable_first_line_is_not_recognised(noise: bytes) -> None:
    assert SOURCE.recognise(noise + b"\n" + lines([record("user")])) == "transcript"


# Where its files are.


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a project, a subagent of each kind, and files that are no transcripts."""
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


def transcripts_by_name(home: Path, **env: str) -> dict[str, tuple[str | None, str]]:
    """Return session and thread of each transcript."""
    places = Places(home=home, env=env)
    return {Path(t.path).name: (t.session, t.thread) for t in transcripts(places)}


def test_transcripts_are_listed_with_session_and_thread(home: Path) -> None:
    assert transcripts_by_name(home) == {
        "s1.jsonl": ("s1", MAIN),
        "agent-old.jsonl": ("s1", "old"),
        "agent-a1.jsonl": ("s1", "a1"),
    }


def test_transcript_has_size_and_time_and_reads_from_a_cursor(home: Path) -> None:
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


def test_deleted_transcript_is_an_error_with_its_path(home: Path) -> None:
    places = Places(home=home, env={})
    main = next(t for t in transcripts(places) if t.thread == MAIN)
    Path(main.path).unlink()
    with pytest.raises(UnreadableTranscript, match="No such file"):
        SOURCE.read(main, Cursor())


def test_home_without_claude_has_no_transcripts(tmp_path: Path) -> None:
    assert transcripts_by_name(tmp_path) == {}


def test_link_to_a_file_is_followed_but_not_to_a_folder(home: Path, tmp_path: Path) -> None:
    project = home / ".claude" / "projects" / "-work-thing"
    (tmp_path / "real.jsonl").write_bytes(lines([assistant("m9")]))
    (project / "linked.jsonl").symlink_to(tmp_path / "real.jsonl")
    (project / "ring").symlink_to(project)
    assert sorted(transcripts_by_name(home)) == [
        "agent-a1.jsonl", "agent-old.jsonl", "linked.jsonl", "s1.jsonl",
    ]  # fmt: skip


@pytest.mark.usefixtures("without_privileges")
def test_unreadable_folder_is_skipped(home: Path) -> None:
    closed = home / ".claude" / "projects" / "closed"
    closed.mkdir()
    (closed / "s9.jsonl").write_bytes(b"")
    closed.chmod(0)
    try:
        assert "s1.jsonl" in transcripts_by_name(home)
        assert "s9.jsonl" not in transcripts_by_name(home)
    finally:
        closed.chmod(0o700)


def test_file_in_place_of_the_projects_folder_is_skipped(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "projects").write_text("no folder")
    assert transcripts_by_name(tmp_path) == {}


def test_config_dir_names_one_or_several_folders(tmp_path: Path) -> None:
    usual = [tmp_path / ".claude", tmp_path / ".config" / "claude"]
    assert roots(Places(home=tmp_path, env={})) == usual
    assert roots(Places(home=tmp_path, env={"CLAUDE_CONFIG_DIR": ""})) == usual
    named = Places(home=tmp_path, env={"CLAUDE_CONFIG_DIR": "/a, /b,"})
    assert roots(named) == [Path("/a"), Path("/b")]


def test_only_the_named_folder_is_searched(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "projects" / "p").mkdir(parents=True)
    (other / "projects" / "p" / "s7.jsonl").write_bytes(b"")
    assert transcripts_by_name(home, CLAUDE_CONFIG_DIR=str(other)) == {"s7.jsonl": ("s7", MAIN)}


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
def test_path_of_a_transcript_gives_session_and_thread(
    path: str, expected: tuple[str | None, str]
) -> None:
    assert whose(path) == expected


# Settings.


def write_settings(path: Path, **settings: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings), "utf-8")


def compaction_settings(
    home: Path, project: Path | None = None, **env: str
) -> tuple[bool | None, dict[str, int]]:
    """Return whether it compacts by itself, and its windows."""
    places = Places(home=home, env=env)
    settings = SOURCE.settings(places, str(project) if project else None)
    assert settings.place == "Claude Code's settings"
    return settings.auto_compact, dict(settings.auto_compact_windows)


def test_no_settings_give_no_values(tmp_path: Path) -> None:
    assert compaction_settings(tmp_path) == (None, {})


def test_user_settings_are_read_from_both_files(tmp_path: Path) -> None:
    write_settings(tmp_path / ".claude.json", autoCompactEnabled=False, projects={}, numStartups=5)
    assert compaction_settings(tmp_path) == (False, {})
    write_settings(
        tmp_path / ".claude" / "settings.json",
        autoCompactEnabled=True,
        autoCompactWindow=300_000,
        modelSettings={"claude-opus-5-5": {"autoCompactWindow": 200_000}, "other": {}},
    )
    assert compaction_settings(tmp_path) == (True, {"claude-opus-5-5": 200_000, "*": 300_000})


def test_local_settings_override_project_and_user_settings(tmp_path: Path) -> None:
    project = tmp_path / "work"
    write_settings(tmp_path / ".claude" / "settings.json", autoCompactWindow=300_000)
    write_settings(project / ".claude" / "settings.json", autoCompactWindow=200_000)
    assert compaction_settings(tmp_path, project) == (None, {"*": 200_000})
    write_settings(project / ".claude" / "settings.local.json", autoCompactWindow=150_000)
    assert compaction_settings(tmp_path, project) == (None, {"*": 150_000})
    assert compaction_settings(tmp_path) == (None, {"*": 300_000})


def test_variable_overrides_every_file_unless_it_is_no_number(tmp_path: Path) -> None:
    write_settings(tmp_path / ".claude" / "settings.json", autoCompactWindow=300_000)
    assert compaction_settings(tmp_path, CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000") == (
        None,
        {"*": 150_000},
    )
    assert compaction_settings(tmp_path, CLAUDE_CODE_AUTO_COMPACT_WINDOW="many") == (
        None,
        {"*": 300_000},
    )
    write_settings(
        tmp_path / ".claude" / "settings.json", env={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "180000"}
    )
    assert compaction_settings(tmp_path) == (None, {"*": 180_000})


@pytest.mark.parametrize("name", ["DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"])
def test_variable_switches_compaction_off_unless_0_or_empty(tmp_path: Path, name: str) -> None:
    write_settings(tmp_path / ".claude.json", autoCompactEnabled=True)
    for value in ("1", "true", "YES", "on"):
        assert compaction_settings(tmp_path, None, **{name: value}) == (False, {})
    for value in ("0", "", "false"):
        assert compaction_settings(tmp_path, None, **{name: value}) == (True, {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"autoCompactWindow": "big"}', "\ufeff{}"])
def test_malformed_settings_are_ignored(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    assert compaction_settings(tmp_path) == (None, {})


def test_settings_that_are_no_utf8_or_a_folder_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(b'{"env":{"A":"\xff"}}')
    assert compaction_settings(tmp_path) == (None, {})
    (tmp_path / ".claude.json").mkdir()
    assert compaction_settings(tmp_path) == (None, {})


def test_settings_are_read_from_the_config_dir(tmp_path: Path) -> None:
    other = tmp_path / "other"
    write_settings(other / "settings.json", autoCompactWindow=150_000)
    write_settings(other / ".claude.json", autoCompactEnabled=False)
    write_settings(tmp_path / ".claude.json", autoCompactEnabled=True)
    assert compaction_settings(tmp_path, CLAUDE_CONFIG_DIR=str(other)) == (False, {"*": 150_000})


def test_empty_config_dir_is_harmless(tmp_path: Path) -> None:
    assert compaction_settings(tmp_path, CLAUDE_CONFIG_DIR=" , ") == (None, {})
    assert transcripts_by_name(tmp_path, CLAUDE_CONFIG_DIR=" , ") == {}


def test_configured_window_lowers_the_limit_but_not_the_window(tmp_path: Path) -> None:
    """`/autocompact 200k` on a 1M model compacts at 167,000."""
    write_settings(
        tmp_path / ".claude" / "settings.json",
        modelSettings={"claude-opus-5-5": {"autoCompactWindow": 200_000}},
    )
    folded = session(assistant("m1", message={"model": "claude-opus-5-5"}))
    reading = read(
        folded, folded.threads[MAIN], "transcript",
        settings=SOURCE.settings(Places(home=tmp_path, env={})),
    )  # fmt: skip
    assert reading.window is not None
    assert reading.limit is not None
    assert (reading.window.tokens, reading.limit.tokens) == (1_000_000, 167_000)


def test_transcript_alone_gives_window_and_limit() -> None:
    folded = session(assistant("m1", 50_000))
    reading = read(folded, folded.threads[MAIN], "transcript")
    assert reading.window is not None
    assert reading.limit is not None
    assert (reading.window.tokens, reading.limit.tokens) == (200_000, 167_000)


@pytest.mark.parametrize(
    ("fraction", "part"),
    [("50", 0.5), ("100", 1.0), ("12.5", 0.125), ("0", None), ("101", None), ("", None),
     ("half", None), ("nan", None)],
)  # fmt: skip
def test_percent_override_is_read_as_the_client_reads_it(
    tmp_path: Path, fraction: str, part: float | None
) -> None:
    places = Places(home=tmp_path, env={"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": fraction})
    assert SOURCE.settings(places).part == part
