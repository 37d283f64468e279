"""Codex: rollouts, `exec --json`, paths and settings."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import source
from brimline.agents.codex.paths import transcripts
from brimline.agents.codex.source import SOURCE
from brimline.agents.codex.transcript import MAX_TURNS, RolloutParser
from brimline.errors import InvalidUsage, UnreadableTranscript
from brimline.events import (
    AnyEvent,
    Call,
    Compacted,
    Rewound,
    SessionSeen,
    Spent,
    Trimmed,
    WindowReported,
)
from brimline.transcripts.source import Cursor, Parser, Places, Source, Transcript
from brimline.usage import Usage
from hypothesis_examples import examples

from .garbage import garbage, survives

OWN = "01a1dd36-54c4-7a43-b7cd-e47e7674d424"
CHILD = "01a1dd37-6b88-79b0-bb5c-84439248f53a"
AT = "2026-11-15T03:18:07.000Z"
SECONDS = 1794712687.0

Json = dict[str, Any]


def line(kind: str, payload: Json, **more: Any) -> Json:
    """A record of a rollout."""
    return {"timestamp": AT, "type": kind, "payload": payload, **more}


def event(kind: str, **fields: Any) -> Json:
    """An event_msg."""
    return line("event_msg", {"type": kind, **fields})


def meta(name: str = OWN, **fields: Any) -> Json:
    """A header."""
    known = {"id": name, "cwd": "/home/me/project", "cli_version": "0.142.5", "source": "cli"}
    return line("session_meta", known | fields)


def turn(name: str, model: str = "gpt-5.5") -> Json:
    """A turn_context."""
    return line("turn_context", {"turn_id": name, "model": model})


def tokens(prompt: int, output: int, cached: int = 0, written: int = 0) -> Json:
    """A count as Codex writes it."""
    return {
        "input_tokens": prompt,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": output,
        "reasoning_output_tokens": 0,
        "total_tokens": prompt + output,
    }


def count(last: Json, total: Json, window: int | None = 258_400) -> Json:
    """A token_count."""
    info = {"last_token_usage": last, "total_token_usage": total, "model_context_window": window}
    return event("token_count", info=info)


def record(name: str | None, usage: Json, total: Json, thread: str = OWN, **more: Any) -> Json:
    """A token_usage_record."""
    payload = {"response_id": name, "usage": usage, "thread_token_usage": total}
    return line("token_usage_record", payload | {"thread_id": thread}, **more)


def estimate(left: int) -> Json:
    """The count after a compaction."""
    return tokens(0, 0) | {"total_tokens": left}


def fed(parser: Parser, records: list[Json]) -> list[AnyEvent]:
    """What a parser says to some records."""
    found: list[AnyEvent] = []
    for each in records:
        found += parser.feed(msgspec.json.encode(each)) or ()
    return found


def events(*records: Json) -> list[AnyEvent]:
    """What a new parser says to some records."""
    return fed(RolloutParser(), list(records))


def calls(found: list[AnyEvent]) -> list[Call]:
    """The calls among some events."""
    return [each for each in found if isinstance(each, Call)]


def of(found: list[AnyEvent], *kinds: type) -> list[AnyEvent]:
    """The events of some kinds."""
    return [each for each in found if isinstance(each, kinds)]


SESSION: list[Json] = [
    meta(),
    event("task_started", turn_id="t1", model_context_window=258_400),
    turn("t1"),
    event("user_message", message="go"),
    event("token_count", info=None),
    count(tokens(1_000, 50), tokens(1_000, 50)),
    line("response_item", {"type": "message"}),
    count(tokens(2_000, 60, 900), tokens(3_000, 110, 900)),
    count(tokens(2_000, 60, 900), tokens(3_000, 110, 900)),
    line("compacted", {"message": "", "replacement_history": []}),
    turn("t1"),
    count(estimate(400), tokens(3_000, 110, 900)),
    event("context_compacted"),
    count(tokens(700, 10), tokens(3_700, 120, 900), 353_400),
    event("task_complete"),
    event("task_started", turn_id="t2"),
    turn("t2", "gpt-5.6"),
    event("user_message", message="more"),
    count(tokens(700, 10), tokens(3_700, 120, 900), 353_400),
    record("resp_0000000001", tokens(800, 20, 600, 100), tokens(4_500, 140, 1_500, 100)),
    count(tokens(800, 20, 600, 100), tokens(4_500, 140, 1_500, 100), 353_400),
    event("thread_rolled_back", num_turns=1),
    event("thread_name_updated", thread_name="A name"),
    event("task_complete"),
]


def write(path: Path, records: list[Json]) -> Path:
    """A file of some records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))
    return path


def transcript(path: Path) -> Transcript:
    """A file as a transcript."""
    return Transcript("codex", str(path), 0, 0)


def test_it_is_a_source() -> None:
    """The constant satisfies the protocol and is found by its name."""
    found: Source = SOURCE
    assert source("codex") is found
    assert found.agent == "codex"


def test_session_is_seen() -> None:
    """The header tells session, project, version and that compactions are recorded."""
    assert events(meta()) == [
        SessionSeen(
            at=SECONDS,
            session=OWN,
            agent="codex",
            project="/home/me/project",
            version="0.142.5",
            records_compactions=True,
        )
    ]


def test_calls_are_disjoint_and_hold_the_total() -> None:
    """Cache reads and writes are taken out of the input; held is Codex's total_tokens."""
    found = calls(events(meta(), turn("t1"), count(tokens(800, 20, 600, 100), tokens(9, 9))))
    assert found[0].usage == Usage(100, 600, 100, 20, 0)
    assert found[0].usage.held == 820
    assert (found[0].model, found[0].thread, found[0].at) == ("gpt-5.5", "main", SECONDS)


def test_model_before_the_first_turn() -> None:
    """A call that compacts at the very beginning has its model from the thread's settings."""
    told = event("thread_settings_applied", thread_settings={"model": "gpt-6"})
    usage = tokens(800, 20)
    assert calls(events(meta(), told, record("resp_1", usage, usage)))[0].model == "gpt-6"


def test_repeats_collapse() -> None:
    """A token_count that is repeated, at once or in the next turn, is one call."""
    told = count(tokens(800, 20), tokens(800, 20))
    assert len(calls(events(meta(), turn("t1"), told, told, turn("t2"), told))) == 1


def test_equal_calls_are_two() -> None:
    """Two calls of the same size differ by the running total."""
    first = count(tokens(800, 20), tokens(800, 20))
    second = count(tokens(800, 20), tokens(1_600, 40))
    assert len({call.id for call in calls(events(meta(), turn("t1"), first, second))}) == 2


def test_response_id_is_the_id() -> None:
    """Where a token_usage_record tells the call, its response id is used and told once."""
    usage, total = tokens(800, 20), tokens(4_500, 140)
    found = calls(events(meta(), record("resp_1", usage, total), count(usage, total)))
    assert [call.id for call in found] == ["resp_1"]


def test_totals_may_differ_from_records() -> None:
    """A compaction that only the records count makes totals differ, and no call is told twice."""
    usage = tokens(800, 20)
    found = events(
        meta(), record("resp_1", usage, tokens(9_000, 90)), count(usage, tokens(800, 20))
    )
    assert [call.id for call in calls(found)] == ["resp_1"]


def test_record_without_response_id() -> None:
    """A record without a response id gets the id that its token_count would have got."""
    usage = tokens(800, 20)
    told = calls(events(meta(), turn("t1"), record(None, usage, usage), count(usage, usage)))
    made = calls(events(meta(), turn("t1"), count(usage, usage)))
    assert [call.id for call in told] == [call.id for call in made]


def test_fork_has_the_same_ids() -> None:
    """A fork repeats its origin's records under its own header: same ids, its own session."""
    origin = [meta(), turn("t1"), count(tokens(800, 20), tokens(800, 20))]
    fork = events(meta("019f0000-0000", forked_from_id=OWN), *origin)
    assert [call.id for call in calls(fork)] == [call.id for call in calls(events(*origin))]
    assert [each.session for each in fork if isinstance(each, SessionSeen)] == ["019f0000-0000"]


def test_fork_that_copies_nothing() -> None:
    """A fork that refers to its origin's file may repeat that one's last count: it is no call."""
    last = count(tokens(800, 20), tokens(4_500, 140))
    base = {"thread_id": OWN, "end_ordinal_exclusive": 30, "end_byte_offset": 9}
    fork = [meta("019f0000-0000", forked_from_id=OWN, history_base=base), last, turn("t1"), last]
    assert calls(events(*fork)) == []
    assert len(calls(events(*fork, count(tokens(900, 20), tokens(5_400, 160))))) == 1


def test_sessions_differ_where_turns_have_no_ids() -> None:
    """Without turn ids the session's id keeps equal calls of two sessions apart."""
    told = count(tokens(800, 20), tokens(800, 20))
    assert calls(events(meta("a"), told))[0].id != calls(events(meta("b"), told))[0].id


def test_header_written_again() -> None:
    """The own header again says nothing, unless version or project changed."""
    found = events(meta(), meta(), meta(cli_version="0.166.0"))
    assert found[1:] == [
        SessionSeen(at=SECONDS, version="0.166.0", project="/home/me/project"),
    ]


def test_null_info_is_no_call() -> None:
    """A token_count of rate limits alone says nothing."""
    assert events(event("token_count", info=None), event("token_count")) == []


def test_compaction_has_its_estimate() -> None:
    """The zero token_count after a compaction tells it again with its `after`, and is no call."""
    found = events(*SESSION)
    at_once = Compacted(at=SECONDS, trigger="auto", before=2_060)
    again = Compacted(at=SECONDS, trigger="auto", before=2_060, after=400)
    assert of(found, Compacted) == [at_once, again]
    assert [call.usage.sent for call in calls(found)] == [1_000, 2_000, 700, 800]


def test_compaction_stands_before_the_next_call() -> None:
    """A compaction without an estimate is told before the call that follows."""
    after = count(tokens(700, 10), tokens(700, 10))
    found = events(meta(), line("compacted", {"message": ""}), after)
    assert [type(each) for each in of(found, Compacted, Call)] == [Compacted, Call]


@pytest.mark.parametrize("kind", ["task_complete", "turn_aborted", "task_started"])
def test_estimate_is_expected_within_the_turn(kind: str) -> None:
    """A compaction is told at once, and a zero token_count beyond its turn is not about it."""
    late = count(estimate(400), tokens(9, 9))
    found = events(meta(), line("compacted", {"message": ""}), event(kind), late)
    assert of(found, Compacted) == [Compacted(at=SECONDS)]


def test_two_compactions_are_two() -> None:
    """A compaction right after another does not swallow it."""
    done = line("compacted", {"message": ""})
    found = events(meta(), done, done, count(estimate(400), tokens(9, 9)))
    assert [each.after for each in found if isinstance(each, Compacted)] == [None, None, 400]


def test_estimate_alone_is_nothing() -> None:
    """A zero token_count that is repeated later is neither call nor compaction."""
    again = count(estimate(400), tokens(9, 9), None)
    once = events(meta(), line("compacted", {}), again)
    assert events(meta(), line("compacted", {}), again, again) == once


def test_compaction_call_is_a_call() -> None:
    """The request that wrote the summary is billed and counted like any other."""
    asked = tokens(900, 30)
    found = events(
        meta(),
        event("task_started"),
        record("resp_1", asked, asked),
        line("compacted", {"compaction_response_id": "resp_1"}),
        count(estimate(400), asked),
    )
    assert [call.id for call in calls(found)] == ["resp_1"]
    assert of(found, Compacted)[-1] == Compacted(at=SECONDS, before=930, after=400)


def test_compaction_amid_calls_is_automatic() -> None:
    """A call in the same turn that did not write the summary is the one that triggered it."""
    first, second = tokens(800, 20), tokens(900, 30)
    found = events(
        meta(),
        event("task_started"),
        record("resp_1", first, first),
        record("resp_2", second, tokens(1_700, 50)),
        line("compacted", {"compaction_response_id": "resp_2"}),
        event("task_complete"),
    )
    assert of(found, Compacted) == [Compacted(at=SECONDS, trigger="auto", before=820)]


def test_compaction_apart_from_the_calls_is_automatic() -> None:
    """One call is enough where the summary was written by another that is not recorded here."""
    first = tokens(800, 20)
    found = events(
        meta(),
        event("task_started"),
        record("resp_1", first, first),
        line("compacted", {"compaction_response_id": "resp_9"}),
        event("task_complete"),
    )
    assert of(found, Compacted) == [Compacted(at=SECONDS, trigger="auto", before=820)]


def test_window_is_reported_when_it_changes() -> None:
    """The window is told once, and again when it is another; nonsense is not."""
    found = events(*SESSION, count(estimate(1), tokens(1, 1), 0))
    assert [each.tokens for each in found if isinstance(each, WindowReported)] == [258_400, 353_400]


def test_rollback_goes_back_to_the_call_before_the_turn() -> None:
    """Rolled back turns leave what the call before them held."""
    found = events(*SESSION)
    before = calls(found)[2].id
    assert of(found, Rewound) == [Rewound(at=SECONDS, to=before)]


def test_rollback_of_everything() -> None:
    """With every turn rolled back nothing is held."""
    told = count(tokens(800, 20), tokens(800, 20))
    back = event("thread_rolled_back", num_turns=1)
    assert events(meta(), event("user_message"), told, back)[-1] == Rewound(at=SECONDS, to=None)


def test_rollback_beyond_what_is_remembered() -> None:
    """A rollback of more turns than are remembered is a fall of unknown depth; of none, nothing."""
    asked = [event("user_message")] * (MAX_TURNS + 1)
    far = event("thread_rolled_back", num_turns=MAX_TURNS + 1)
    assert events(meta(), *asked, far)[-1] == Trimmed(at=SECONDS)
    assert events(meta(), *asked, event("thread_rolled_back", num_turns=0))[1:] == []


def test_title() -> None:
    """A thread's name is the session's title; an empty one says nothing."""
    assert events(*SESSION)[-1] == SessionSeen(at=SECONDS, title="A name")
    assert events(event("thread_name_updated", thread_name=None)) == []


SPAWN = {"subagent": {"thread_spawn": {"parent_thread_id": OWN, "agent_nickname": "Tesla"}}}


def test_subagent_is_a_thread_of_its_parents_session() -> None:
    """A subagent's calls, windows and compactions are in its own thread of the parent's session."""
    found = events(
        meta(CHILD, session_id=OWN, parent_thread_id=OWN, source=SPAWN),
        turn("01a1dd37-6b8d"),
        count(tokens(800, 20), tokens(800, 20)),
        line("compacted", {}),
        event("task_complete"),
    )
    assert isinstance(found[0], SessionSeen)
    assert found[0].session == OWN
    threads = {e.thread for e in found if isinstance(e, Call | WindowReported | Compacted)}
    assert threads == {"Tesla-9248f53a"}


@pytest.mark.parametrize(
    ("fields", "session", "thread"),
    [
        ({"source": "exec"}, CHILD, "main"),
        ({"source": {"subagent": "review"}}, CHILD, "main"),
        ({"source": {"custom": "x"}}, CHILD, "main"),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": OWN}}}}, OWN, CHILD),
        ({"source": {"subagent": "review"}, "session_id": OWN}, OWN, CHILD),
        ({"parent_thread_id": OWN, "agent_role": "worker"}, OWN, "worker-9248f53a"),
        ({"session_id": CHILD, "source": SPAWN}, OWN, "Tesla-9248f53a"),
    ],
)
def test_whose_a_rollout_is(tmp_path: Path, fields: Json, session: str, thread: str) -> None:
    """Session and thread come from the header, whatever the version wrote there."""
    places = Places(home=tmp_path, env={})
    write(tmp_path / ".codex/sessions/2026/11/15/rollout-x.jsonl", [meta(CHILD, **fields)])
    (found,) = transcripts(places)
    assert (found.session, found.thread, found.project) == (session, thread, "/home/me/project")


def test_copied_history_by_ordinal() -> None:
    """What a subagent's file repeats of its parent is not the subagent's."""
    usage = tokens(800, 20)
    found = events(
        meta(CHILD, source=SPAWN, subagent_history_start_ordinal=5),
        record("resp_1", usage, usage, ordinal=2),
        line("compacted", {}, ordinal=3),
        event("task_complete") | {"ordinal": 4},
        event("thread_rolled_back", num_turns=1) | {"ordinal": 4},
        event("user_message") | {"ordinal": 4},
        count(usage, usage) | {"ordinal": 5},
        record("resp_2", usage, tokens(1_600, 40), CHILD, ordinal=6),
    )
    assert [call.id for call in calls(found)] == ["resp_2"]
    assert of(found, Compacted, Rewound, Trimmed) == []


def test_copied_history_by_id() -> None:
    """Without ordinals, a thread's name or a turn older than the subagent tells the copy."""
    usage = tokens(800, 20)
    found = events(
        meta(CHILD, source=SPAWN),
        meta(OWN),
        turn("01a1dd36-0000"),
        count(usage, usage),
        record("resp_1", usage, usage, OWN),
        turn("01a1dd38-0000"),
        count(usage, usage),
        count(usage, tokens(1_600, 40)),
    )
    assert [call.thread for call in calls(found)] == []
    own = events(meta(CHILD, source=SPAWN), turn("01a1dd38-0000"), count(usage, usage))
    assert len(calls(own)) == 1


def test_blank_record_is_no_call() -> None:
    """A usage record of nothing is no call."""
    assert events(meta(), record("resp_1", tokens(0, 0), tokens(9, 9)))[1:] == []


def test_rollouts_of_2025() -> None:
    """Bare headers and items of the first versions are known and tell the session alone."""
    parser = RolloutParser()
    found = fed(
        parser,
        [
            {"id": OWN, "timestamp": AT, "instructions": None},
            {"type": "message", "role": "user", "content": []},
            {"record_type": "state"},
        ],
    )
    assert found == [SessionSeen(at=SECONDS, session=OWN, agent="codex", records_compactions=True)]


@pytest.mark.parametrize(
    "unknown", [{}, {"type": "tomorrow", "payload": 3}, event("tomorrow", info="x")]
)
def test_unknown_kinds_are_told(unknown: Json) -> None:
    """A kind that is not known is None, so that it can be counted."""
    assert RolloutParser().feed(msgspec.json.encode(unknown)) is None


@pytest.mark.parametrize(
    "bad",
    [
        line("session_meta", {"cwd": "/"}),
        line("session_meta", {"id": 5}),
        line("turn_context", {"model": 5}),
        line("token_usage_record", {"response_id": "r"}),
        event("token_count", info={"last_token_usage": {}}),
        count(tokens(10, 1, cached=11), tokens(10, 1)),
        record("r", tokens(-10, 1), tokens(10, 1)),
        event("thread_rolled_back"),
        event("task_started", model_context_window="big"),
        line("compacted", {"compaction_response_id": 5}),
        line("event_msg", {}),
        {"type": 5},
    ],
)
def test_malformed_records_raise_and_change_nothing(bad: Json) -> None:
    """A known kind with wrong values raises, and the parser goes on as if it had not been."""
    parser = RolloutParser()
    fed(parser, SESSION[:10])
    before = parser.carry()
    with pytest.raises((msgspec.DecodeError, InvalidUsage)):
        parser.feed(msgspec.json.encode(bad))
    assert parser.carry() == before


def test_reading_goes_on_from_any_cursor(tmp_path: Path) -> None:
    """Read in two parts, split at any record, a rollout tells the same as in one."""
    whole = list(SOURCE.read(transcript(write(tmp_path / "whole.jsonl", SESSION))))
    for split in range(len(SESSION) + 1):
        path = write(tmp_path / "part.jsonl", SESSION[:split])
        first = SOURCE.read(transcript(path))
        found = list(first)
        write(path, SESSION)
        found += SOURCE.read(transcript(path), first.cursor)
        assert found == whole


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is gone is an error that says so."""
    with pytest.raises(UnreadableTranscript):
        SOURCE.read(transcript(tmp_path / "gone.jsonl"), Cursor())


def test_transcript_from_anywhere(tmp_path: Path) -> None:
    """A rollout can be read from an open file."""
    path = write(tmp_path / "x.jsonl", SESSION)
    with path.open("rb") as file:
        assert list(SOURCE.parse(file)) == events(*SESSION)


def test_transcripts_are_found(tmp_path: Path) -> None:
    """Sessions and archived sessions are found by their names; what is no file is passed over."""
    home = tmp_path / "elsewhere"
    first = write(home / "sessions/2026/11/15/rollout-a.jsonl", [meta("a")])
    second = write(home / "archived_sessions/rollout-b.jsonl", [{"id": "b", "timestamp": AT}])
    broken = home / "sessions/rollout-c.jsonl"
    broken.write_text('{"half')
    (home / "sessions/history.jsonl").write_text("{}")
    (home / "sessions/rollout-d.jsonl").mkdir()
    (home / "sessions/rollout-e.jsonl").symlink_to(home / "nowhere")
    found = {
        each.path: each
        for each in transcripts(Places(home=tmp_path, env={"CODEX_HOME": str(home)}))
    }
    assert set(found) == {str(first), str(second), str(broken)}
    assert [found[str(path)].session for path in (first, second, broken)] == ["a", "b", None]
    assert found[str(first)].size == first.stat().st_size


def test_no_transcripts(tmp_path: Path) -> None:
    """Without Codex there is nothing."""
    assert list(transcripts(Places(home=tmp_path, env={}))) == []


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (msgspec.json.encode(meta()) + b"\n", "transcript"),
        (msgspec.json.encode(event("token_count")) + b"\n", "transcript"),
        (msgspec.json.encode(meta())[:150], "transcript"),
        (b'\0\n{"id":"x","timestamp":"2025","instructions":null}\n', "transcript"),
        (b'{"id":"x","timestamp":"2025","git":{}}', "transcript"),
        (b'{"type":"thread.started","thread_id":"x"}\n', "stream"),
        (b'{"type":"thread.started"}\n', None),
        (b'{"id":"x","timestamp":"2025"}', None),
        (b'{"type":"session","id":"x","timestamp":"2025","cwd":"/"}\n', None),
        (b'{"type":"user","sessionId":"x","timestamp":"2025","message":{}}\n', None),
        (b'{"type":"system","subtype":"init","session_id":"x"}\n', None),
        (b"[]\n", None),
        (b"", None),
    ],
)
def test_recognise(head: bytes, form: str | None) -> None:
    """Its own files and streams are recognised, a header longer than the head too; others not."""
    assert SOURCE.recognise(head) == form


def settings_of(tmp_path: Path, user: str, project: str | None = None) -> tuple[Any, ...]:
    """What is read from the user's and the project's settings."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text(user)
    if project is not None:
        (tmp_path / "project/.codex").mkdir(parents=True)
        (tmp_path / "project/.codex/config.toml").write_text(project)
    where = str(tmp_path / "project") if project is not None else None
    told = SOURCE.settings(Places(home=tmp_path, env={}), where)
    return told.limit, dict(told.windows), told.auto_compact


def test_settings(tmp_path: Path) -> None:
    """Limit and window come from config.toml; of the window Codex grants 95 %."""
    text = 'model = "x"\nmodel_context_window = 100000\nmodel_auto_compact_token_limit = 60000\n'
    assert settings_of(tmp_path, text) == (60_000, {"*": 95_000}, None)


def test_settings_of_a_profile_and_a_project(tmp_path: Path) -> None:
    """The chosen profile goes over the file, the project's file over the user's."""
    user = (
        'profile = "small"\nmodel_context_window = 100000\nmodel_auto_compact_token_limit = 9\n'
        "[profiles.small]\nmodel_context_window = 50000\n"
    )
    project = "model_auto_compact_token_limit = 30000\n"
    assert settings_of(tmp_path, user, project) == (30_000, {"*": 47_500}, None)


NESTED = "a = " + 100_000 * "["


@pytest.mark.parametrize("text", ["not toml [", 'model_context_window = "big"', "", "\0", NESTED])
def test_settings_that_do_not_parse(tmp_path: Path, text: str) -> None:
    """A file that is not as expected tells nothing and breaks nothing."""
    assert settings_of(tmp_path, text) == (None, {}, None)


def test_no_settings(tmp_path: Path) -> None:
    """Without a file nothing is told."""
    assert SOURCE.settings(Places(home=tmp_path, env={})).limit is None


def done(prompt: int, output: int, cached: int = 0) -> Json:
    """A turn.completed."""
    usage = tokens(prompt, output, cached)
    del usage["total_tokens"]
    return {"type": "turn.completed", "usage": usage}


STREAM: list[Json] = [
    {"type": "thread.started", "thread_id": OWN},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "x"}},
    done(1_000, 50),
    {"type": "thread.started", "thread_id": OWN},
    done(3_000, 110, 900),
    done(3_000, 110, 900),
    {"type": "turn.failed", "error": {"message": "x"}},
    {"type": "thread.started", "thread_id": CHILD},
    done(700, 10),
]


def test_stream_spends_the_growth() -> None:
    """Totals are over the thread and its resumes: what is spent is by how much they grew."""
    found = fed(SOURCE.stream(), STREAM)
    assert [each.usage for each in found if isinstance(each, Spent)] == [
        Usage(1_000, 0, 0, 50, 0),
        Usage(1_100, 900, 0, 60, 0),
        Usage(700, 0, 0, 10, 0),
    ]
    assert [each.session for each in found if isinstance(each, SessionSeen)] == [OWN, OWN, CHILD]
    assert calls(found) == []


def test_stream_total_that_fell() -> None:
    """A total that fell began anew: all of it was spent since."""
    found = fed(SOURCE.stream(), [STREAM[0], done(1_000, 50), done(200, 5)])
    assert found[-1] == Spent(usage=Usage(200, 0, 0, 5, 0))


def test_stream_of_older_versions() -> None:
    """Versions that told neither reasoning nor cache writes are read."""
    usage = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2}
    found = fed(SOURCE.stream(), [{"type": "turn.completed", "usage": usage}])
    assert found == [Spent(usage=Usage(6, 4, 0, 2))]


def test_stream_unknown_and_malformed() -> None:
    """Unknown lines are None, a turn without its usage raises."""
    assert SOURCE.stream().feed(b'{"type":"tomorrow"}') is None
    with pytest.raises(msgspec.ValidationError):
        SOURCE.stream().feed(b'{"type":"turn.completed"}')


@examples(300)
@given(st.lists(garbage(records=SESSION), max_size=6), st.integers(0, len(SESSION)))
def test_garbage_in_a_rollout(found: list[bytes], ready: int) -> None:
    """Whatever comes, only the declared errors come out, and a parser can always go on."""
    parser = RolloutParser()
    fed(parser, SESSION[:ready])
    survives(parser, SOURCE, found)
    RolloutParser(parser.carry())


@examples(300)
@given(st.lists(garbage(records=STREAM), max_size=6))
def test_garbage_in_a_stream(found: list[bytes]) -> None:
    """Whatever comes, only the declared errors come out."""
    survives(SOURCE.stream(), SOURCE, found)
