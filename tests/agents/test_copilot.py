"""Copilot CLI: the events of its sessions, its stream, and where its files are."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from brimline.agents.copilot.paths import transcripts
from brimline.agents.copilot.transcript import EventsParser
from brimline.agents.copilot.transcript_source import SOURCE
from brimline.agents.transcripts.source import START, Cursor, Places, Transcript
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    Ended,
    SessionSeen,
    Spent,
    Trimmed,
    Unmetered,
    WindowReported,
)
from brimline.context.tracker import Session, fold
from brimline.context.tracker.reading import read
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage, MalformedJson

TIME = "2026-11-15T03:25:06.382Z"
AT = 1794713106.382
AGENT = "2af4e381-f62a-49e0-bb35-b102bc4e9dbe"
MODEL = "claude-sonnet-4.5"

Json = dict[str, Any]


def event(kind: str, agent: str | None = None, **data: Any) -> Json:
    thread: Json = {} if agent is None else {"agentId": agent}
    return {"type": kind, "data": data, **thread, "id": "e", "timestamp": TIME, "parentId": "p"}


def started(**more: Any) -> Json:
    data: dict[str, Any] = {
        "sessionId": "s1",
        "producer": "copilot-agent",
        "copilotVersion": "1.0.102",
    }
    return event("session.start", **data, context={"cwd": "/p", "branch": "topic"}, **more)


def used(id: str, sent: int, output: int = 5, agent: str | None = None, **more: Any) -> Json:
    tokens: Json = {"inputTokens": sent, "outputTokens": output, "maxPromptTokens": 168_000}
    return event(
        "session.usage_record", agent, usage={"model": MODEL, "apiCallId": id} | tokens | more
    )


def compacting(tokens: int, trigger: str = "threshold", agent: str | None = None) -> Json:
    return event("session.compaction_start", agent, currentTokens=tokens, trigger=trigger)


def compacted(id: str = "c1", trigger: str = "threshold", **more: Any) -> Json:
    cost: Json = {"inputTokens": 900, "outputTokens": 30, "cacheReadTokens": 700, "model": MODEL}
    done: Json = {"success": True, "outcome": "applied"} | more
    return event(
        "session.compaction_complete",
        compactionAttemptId=id,
        compactionTokensUsed=cost,
        trigger=trigger,
        **done,
    )


def feed(*records: Json, parser: EventsParser | None = None) -> list[AnyEvent]:
    parser = parser or EventsParser()
    return [each for record in records for each in parser.feed(json.dumps(record).encode()) or ()]


def calls(events: Iterable[AnyEvent]) -> list[Call]:
    return [each for each in events if isinstance(each, Call)]


def session_of(*records: Json) -> Session:
    return fold(Session(), feed(started(), *records))


def test_start_describes_the_session() -> None:
    (seen,) = feed(started(reasoningEffort="high"))
    assert seen == SessionSeen(
        at=AT, session="s1", agent="copilot", project="/p", version="1.0.102",
        records_compactions=True, effort="high",
    )  # fmt: skip


def test_cache_is_taken_out_of_the_prompt() -> None:
    (call,) = calls(
        feed(used("m1", 100, cacheReadTokens=60, cacheWriteTokens=30, reasoningTokens=2))
    )
    assert (call.id, call.usage) == ("m1", Usage(10, 60, 30, 5, 2))
    with pytest.raises(InvalidUsage):
        feed(used("m1", 10, cacheReadTokens=60))


def test_window_is_reported_once_for_each_model() -> None:
    other = used("m3", 10, model="gpt-5.5", maxPromptTokens=272_000, maxOutputTokens=128_000)
    events = feed(used("m1", 10), used("m2", 10), other)
    assert [each for each in events if isinstance(each, WindowReported)] == [
        WindowReported(at=AT, tokens=168_000, model=MODEL),
        WindowReported(at=AT, tokens=272_000, model="gpt-5.5", max_output=128_000),
    ]


def test_call_without_a_provider_id_has_the_clients() -> None:
    record = used("", 10, accounting={"usageId": "own"}, apiCallId=None)
    assert [call.id for call in calls(feed(record, record))] == ["own", "own"]


def test_subagent_has_a_thread_of_its_own_in_the_same_file() -> None:
    session = session_of(
        used("m1", 100),
        used("m2", 50, agent=AGENT),
        event("subagent.completed", AGENT),
        used("m3", 120),
    )
    assert [list(thread.calls) for thread in session.threads.values()] == [["m1", "m3"], ["m2"]]
    assert session.threads[AGENT].ended
    assert feed(event("subagent.failed", AGENT)) == [Ended(at=AT, thread=AGENT)]


def test_compaction_has_its_own_cost_and_what_the_client_compared() -> None:
    events = feed(used("m1", 134_000), compacting(136_394), compacted())
    assert events[2:] == [
        Compacting(at=AT, trigger="auto"),
        Spent(at=AT, id="c1", usage=Usage(200, 700, 0, 30), model=MODEL),
        Compacted(at=AT, trigger="auto", before=136_394),
    ]


def test_calls_during_a_compaction_do_not_disprove_the_limit() -> None:
    records = [used("m1", 136_000), compacting(136_394)]
    between = [used("m2", 150_000), used("m3", 160_000), used("m4", 161_000)]
    session = session_of(*records, *between)
    reading = read(session, session.threads[MAIN], "transcript")
    assert [call.can_compact for call in session.threads[MAIN].calls.values()] == [True] + 3 * [
        False
    ]
    assert reading.limit is not None
    assert (reading.limit.tokens, reading.limit.origin) == (134_400, "known")
    assert reading.state == "measured"
    later = session_of(*records, *between, compacted(), used("m5", 14_000))
    assert later.threads[MAIN].cycle == 1
    assert calls(feed(compacting(9), compacted(), used("m1", 10)))[0].can_compact


def test_limit_of_a_model_that_compacts_earlier_is_learned_from_its_starts() -> None:
    """Users report 50 % with another model."""

    def cycle(name: str, tokens: int) -> list[Json]:
        return [
            used(name, tokens - 90),
            compacting(tokens),
            compacted(name),
            used(f"{name}2", 9_000),
        ]

    once = session_of(*cycle("a", 84_500))
    twice = session_of(*cycle("a", 84_500), *cycle("b", 85_100))
    limits = [read(each, each.threads[MAIN], "transcript").limit for each in (once, twice)]
    assert [(limit.tokens, limit.origin) for limit in limits if limit] == [
        (134_400, "known"), (84_500, "learned"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("trigger", "by", "overflow"),
    [
        ("manual", "manual", False),
        ("context_limit_retry", "auto", True),
        ("memory_pressure", None, False),
        ("model_switch", None, False),
    ],
)
def test_only_a_threshold_shows_the_limit(trigger: str, by: str | None, overflow: bool) -> None:
    session = session_of(
        used("m1", 50_000), compacting(50_100, trigger), compacted(trigger=trigger)
    )
    (compaction,) = session.threads[MAIN].compactions
    assert (compaction.trigger, compaction.overflow) == (by, overflow)
    assert session.threads[MAIN].compacted_at == ()


@pytest.mark.parametrize("more", [{"success": False}, {"outcome": "cancelled"}])
def test_compaction_that_was_not_applied_only_costs(more: Json) -> None:
    events = feed(compacting(90), compacted(**more), used("m1", 100))
    assert [type(each) for each in events] == [Compacting, Spent, WindowReported, Call]
    assert calls(events)[0].can_compact


def test_calls_beside_the_conversation_hold_nothing() -> None:
    events = feed(
        used("m1", 100, interactionType="conversation-background"),
        used("m2", 100, interactionType="conversation-sampling"),
        used("m3", 100, interactionType="conversation-compaction"),
    )
    assert [each.id for each in events if isinstance(each, Spent)] == ["m1", "m2"]
    assert calls(events) == []


def test_reply_without_its_usage_is_reported() -> None:
    reply = event("assistant.message", apiCallId="m1", content="Hi.")
    assert feed(used("m1", 100), reply, reply)[2:] == []
    assert feed(reply) == [Unmetered(at=AT)]
    assert feed(event("assistant.message", content="Hi.")) == [Unmetered(at=AT)]


def test_cut_and_cleared_contexts_are_known() -> None:
    events = feed(event("session.truncation"), event("session.context_cleared", messagesCleared=4))
    assert events == [Trimmed(at=AT), Cleared(at=AT)]


def test_resume_and_change_of_folder_are_noted() -> None:
    folder: Json = {"cwd": "/q", "branch": "main"}
    events = feed(started(), event("session.context_changed", **folder), used("m1", 10))
    assert events[1] == SessionSeen(at=AT, project="/q")
    assert calls(events)[0].branch == "main"
    resumed = feed(event("session.resume", context=folder), parser=EventsParser(session="s1"))
    assert [each.session for each in resumed if isinstance(each, SessionSeen)] == ["s1"]


def test_unknown_kind_is_counted_and_malformed_record_is_an_error() -> None:
    parser = EventsParser()
    assert parser.feed(json.dumps(event("session.new_kind")).encode()) is None
    assert parser.feed(json.dumps(event("hook.start")).encode()) == ()
    with pytest.raises(MalformedJson):
        parser.feed(json.dumps(event("session.usage_record")).encode())


def test_growing_file_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "session-state" / "s1" / "events.jsonl"
    path.parent.mkdir(parents=True)
    places = Places(tmp_path, {"COPILOT_HOME": str(tmp_path)})
    assert list(transcripts(places)) == []
    records = [
        started(),
        used("m1", 10),
        compacting(20),
        used("m2", 30),
        compacted(),
        used("m3", 5),
    ]
    cursor, events = START, list[AnyEvent]()
    for record in records:
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        (transcript,) = transcripts(places)
        assert transcript.session == "s1"
        reader = SOURCE.read(transcript, cursor)
        events += reader
        cursor = Cursor(reader.cursor.offset, reader.cursor.carry)
    assert events == feed(*records)
    records_read = list(SOURCE.records(Transcript("copilot", str(path), 0, 0)))
    assert [each for record in records_read for each in record.events] == events


def line(*records: Json) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_transcripts_and_streams_are_told_apart() -> None:
    ephemeral = event("session.skills_loaded") | {"ephemeral": True}
    result: Json = {"type": "result", "timestamp": TIME, "sessionId": "s1", "exitCode": 0}
    assert SOURCE.recognise(line(started(), used("m1", 1))) == "transcript"
    assert SOURCE.recognise(line(used("m1", 1))) == "transcript"
    assert SOURCE.recognise(line(started())[:200]) == "transcript"
    assert SOURCE.recognise(line(ephemeral, event("user.message"))) == "stream"
    assert SOURCE.recognise(line(result)) == "stream"
    assert SOURCE.recognise(line({"type": "result", "session_id": "s1"})) is None
    assert SOURCE.recognise(line({"type": "session", "id": "1", "parentId": None})) is None


def test_stream_names_its_session_at_its_end() -> None:
    parser = SOURCE.stream()
    result: Json = {"type": "result", "timestamp": TIME, "sessionId": "s1", "exitCode": 0}
    assert parser.feed(line(event("anything.new") | {"ephemeral": True})) == ()
    assert parser.feed(line(event("anything.new"))) is None
    assert parser.feed(line(result)) == (SessionSeen(at=AT, session="s1", agent="copilot"),)
