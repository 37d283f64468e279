"""Gemini CLI: its chats, older documents, stream and settings."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.gemini.paths import transcripts
from brimline.agents.gemini.transcript import ChatParser
from brimline.agents.gemini.transcript_source import SOURCE, GeminiStreamParser
from brimline.agents.transcripts.document import MAX_DOCUMENT_BYTES
from brimline.agents.transcripts.source import MALFORMED, START, Cursor, Places, Source, Transcript
from brimline.context.events import (
    AnyEvent,
    Call,
    Compacted,
    Rewound,
    SessionSeen,
    Spent,
    Trimmed,
    Unmetered,
)
from brimline.context.tracker import Session, fold, main_thread
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage, MalformedJson, UnreadableTranscript

TIME = "2026-11-15T03:25:06.382Z"
AT = 1794713106.382
ANSWER = "Got it. Thanks for the additional context!"

Json = dict[str, object]


def line(record: Json) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def header(**more: object) -> Json:
    return {"sessionId": "s1", "projectHash": "ab", "startTime": TIME, "kind": "main", **more}


def tokens(sent: int, output: int = 5, cached: int = 0, thoughts: int = 0, tool: int = 0) -> Json:
    counts = {"input": sent, "output": output, "cached": cached, "thoughts": thoughts, "tool": tool}
    return {**counts, "total": sent + output + thoughts + tool}


def reply(id: str, sent: int = 0, **more: object) -> Json:
    """A reply of the model; without tokens if nothing was sent."""
    row = tokens(sent) if sent else None
    return {"id": id, "timestamp": TIME, "type": "gemini", "model": "m", "tokens": row, **more}


def user(id: str, text: str = "hello") -> Json:
    return {"id": id, "timestamp": TIME, "type": "user", "content": [{"text": text}]}


def rewritten(*messages: Json) -> Json:
    """The patch that replaces the conversation."""
    return {"$set": {"messages": list(messages), "lastUpdated": TIME}}


def compressed(summary: str) -> Json:
    """The patch that a compression writes."""
    answer: Json = {"id": f"a-{summary}", "type": "gemini", "content": [{"text": ANSWER}]}
    return rewritten(user("env"), user(f"s-{summary}", summary), answer, reply(f"k-{summary}"))


def feed(records: Iterable[Json], parser: ChatParser | None = None) -> list[AnyEvent]:
    parser = parser or ChatParser()
    return [event for record in records for event in parser.feed(line(record)) or ()]


def without_seen(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    return [event for event in events if not isinstance(event, SessionSeen)]


def write_chat(path: Path, records: Iterable[Json]) -> Transcript:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line(record) + b"\n" for record in records))
    return Transcript(agent="gemini", path=str(path), modified=0, size=path.stat().st_size)


def read_from(transcript: Transcript, cursor: Cursor = START) -> tuple[list[AnyEvent], Cursor]:
    """Return all events after a cursor, and the next cursor."""
    reader = SOURCE.read(transcript, cursor)
    return list(reader), reader.cursor


CHAT: Sequence[Json] = (
    header(),
    rewritten(user("env")),
    user("u1"),
    reply("r1", 10_000),
    {"$set": {"lastUpdated": TIME}},
    reply("r1", 10_000, toolCalls=[]),
    user("u2"),
    reply("r2", 40_000),
    {"$set": {"summary": "A title"}},
    header(),
    rewritten(user("env")),
    {"$set": {"sessionId": "s1"}},
    rewritten(user("env"), user("u1"), reply("r1"), user("r1"), reply("r2")),
    compressed("one"),
    reply("r3", 12_000),
    user("u3"),
    reply("r4", 13_000),
    {"$rewindTo": "u3"},
    compressed("two"),
    {"$rewindTo": "nobody"},
)


def test_cache_is_taken_out_of_the_prompt_and_thoughts_are_output() -> None:
    row = tokens(100, output=7, cached=60, thoughts=3, tool=10)
    (call,) = feed([reply("r", tokens=row)])
    assert isinstance(call, Call)
    assert (call.at, call.id, call.model) == (AT, "r", "m")
    assert call.usage == Usage(50, 60, 0, 10, 3)


def test_held_tokens_are_the_total_of_the_client() -> None:
    row = tokens(100, output=7, cached=60, thoughts=3, tool=10)
    (call,) = feed([reply("r", tokens=row)])
    assert isinstance(call, Call)
    assert call.usage.held == row["total"]


def test_message_written_again_is_the_same_call() -> None:
    calls = feed([reply("r", 5), reply("r", 9)])
    assert [(c.id, c.usage.sent) for c in calls if isinstance(c, Call)] == [("r", 5), ("r", 9)]


@pytest.mark.parametrize("usage", [None, tokens(0, output=0)])
def test_reply_without_usage_is_no_call(usage: Json | None) -> None:
    assert [type(each) for each in feed([reply("r", tokens=usage)])] == [Unmetered] * (not usage)


@pytest.mark.parametrize("kind", ["user", "info", "error", "warning"])
def test_known_unread_kind_gives_no_event(kind: str) -> None:
    assert ChatParser().feed(line({"id": "x", "type": kind, "content": 1})) == ()


@pytest.mark.parametrize(
    "record", [{"id": "x", "type": "new"}, {"id": "x"}, {}, {"sessionId": "s"}]
)
def test_unknown_kind_is_none(record: Json) -> None:
    assert ChatParser().feed(line(record)) is None


@pytest.mark.parametrize(
    "record",
    [
        reply("r", tokens={"input": 1}),
        reply("r", tokens=tokens(-1)),
        reply("r", tokens=tokens(1, cached=2)),
        reply("r", tokens="many"),
        rewritten({"id": "r"}),
        header(messages=[reply("r", tokens=tokens(1, cached=2))]),
        rewritten(reply("r", tokens=tokens(1, cached=2))),
    ],
)
def test_malformed_record_raises_and_changes_nothing(record: Json) -> None:
    parser = ChatParser()
    feed(CHAT[:5], parser)
    before = parser.carry()
    with pytest.raises((MalformedJson, InvalidUsage)):
        parser.feed(line(record))
    assert parser.carry() == before


def test_header_gives_session_project_title_and_time() -> None:
    (seen,) = feed([header(summary="t", directories=["/p"])])
    assert seen == SessionSeen(
        at=AT, session="s1", agent="gemini", project="/p", title="t", records_compactions=False
    )
    (seen,) = feed([header()], ChatParser(project="/q"))
    assert isinstance(seen, SessionSeen)
    assert seen.project == "/q"


def test_subagent_is_a_thread_of_its_parent_session() -> None:
    seen, call = feed([header(kind="subagent"), reply("r", 5)], ChatParser(session="parent"))
    assert isinstance(seen, SessionSeen)
    assert isinstance(call, Call)
    assert (seen.session, call.thread) == ("parent", "s1")


def test_summary_in_a_patch_is_the_title() -> None:
    assert feed([{"$set": {"summary": "t"}}]) == [SessionSeen(title="t")]


def test_rewritten_conversation_shows_that_compressions_are_recorded() -> None:
    assert feed([rewritten(user("env"))]) == [SessionSeen(records_compactions=True)]
    assert feed([rewritten(user("env")), rewritten(user("env"))])[1:] == []


def test_summary_repeated_by_a_resume_is_one_compression() -> None:
    events = feed([reply("r", 5), compressed("one"), compressed("one"), compressed("two")])
    assert [e for e in events if isinstance(e, Compacted)] == [Compacted(at=AT)] * 2


def test_new_call_in_a_rewritten_conversation_counts_once() -> None:
    events = feed([reply("r", 5), rewritten(reply("r", 5), reply("q", 7)), reply("q", 7)])
    assert [e.id for e in events if isinstance(e, Call)] == ["r", "q", "q"]


def test_client_can_compress_only_before_a_prompt_that_is_not_the_first() -> None:
    """Results of tools, the environment and a summary are in the user's name, too."""
    result: Json = {**user("t"), "content": [{"functionResponse": {"id": "x"}}]}
    chat = [
        rewritten(user("env", "<session_context>")),
        user("u1"),
        reply("r1", 10_000),
        result,
        reply("r2", 20_000),
        user("u2"),
        reply("r3", 30_000),
        rewritten(user("env", "<session_context>"), user("s", "<state_snapshot>"), user("u2")),
        reply("r4", 9_000),
    ]
    calls = [event for event in feed(chat) if isinstance(event, Call)]
    assert [call.can_compact for call in calls] == [False, False, True, False]
    document = header() | {"messages": [user("u1"), reply("r1", 1), user("u2"), reply("r2", 2)]}
    calls = [event for event in feed([document]) if isinstance(event, Call)]
    assert [call.can_compact for call in calls] == [False, True]


def test_resume_keeps_the_last_call() -> None:
    thread = main_thread(fold(Session(), feed(CHAT[:13])))
    assert thread is not None
    assert (thread.current, thread.compactions, thread.cycle) == ("r2", (), 0)


def test_calls_resume_compressions_and_rewinds_come_in_order() -> None:
    events = without_seen(feed(CHAT))
    names = [e.id if isinstance(e, Call) else type(e).__name__ for e in events]
    again = ["Rewound", "Rewound"]
    first = ["r1", "r1", "r2", *again, "Compacted", "r3", "r4", "Rewound", "Compacted"]
    assert names == first
    assert events[-2] == Rewound(to="r3")


def test_rewind_holds_the_call_before_the_message() -> None:
    events = feed([reply("r", 5), user("u"), reply("q", 7), {"$rewindTo": "u"}])
    assert events[-1] == Rewound(to="r")


def test_rewind_to_the_start_or_an_unknown_message_holds_nothing() -> None:
    for to in ("u", "nobody"):
        events = feed([user("u"), reply("r", 5), {"$rewindTo": to}])
        assert events[-1] == Rewound(to=None)


def test_rewind_behind_a_compression_is_unknown() -> None:
    rewind: Json = {"$rewindTo": "u"}
    events = feed([reply("r", 5), compressed("one"), user("u"), reply("q", 7), rewind])
    assert events[-1] == Trimmed()


def test_rewind_that_removes_no_call_gives_no_event() -> None:
    assert feed([reply("r", 5), user("u"), {"$rewindTo": "u"}])[1:] == []


def test_replaced_messages_without_a_summary_are_trimmed() -> None:
    events = feed([reply("r", 5), rewritten(user("u"), reply("new"))])
    assert events[-1] == Trimmed(at=AT)


def test_reading_in_two_parts_gives_the_same_events(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    whole, end = read_from(write_chat(path, CHAT))
    for cut in range(len(CHAT) + 1):
        first, cursor = read_from(write_chat(path, CHAT[:cut]))
        second, last = read_from(write_chat(path, CHAT), cursor)
        assert first + second == whole
        assert last == end


def test_document_is_known_by_its_name_or_first_line(tmp_path: Path) -> None:
    events, _ = read_from(write_chat(tmp_path / "chat", CHAT))
    assert events == feed(CHAT)
    path = tmp_path / "full.jsonl"
    path.write_text(json.dumps(header(messages=[reply("r", 5)]), indent=2), encoding="utf-8")
    assert [type(event) for event in read_from(transcript_of(path))[0]] == [SessionSeen, Call]


def transcript_of(path: Path) -> Transcript:
    return Transcript(agent="gemini", path=str(path), modified=0, size=0)


def test_lines_and_documents_are_told_apart_on_stdin() -> None:
    lines = b"".join(line(record) + b"\n" for record in CHAT)
    assert list(SOURCE.parse(BytesIO(lines))) == feed(CHAT)
    document = json.dumps(header(messages=[reply("r", 5)]), indent=2).encode()
    assert [type(event) for event in SOURCE.parse(BytesIO(document))] == [SessionSeen, Call]


def test_changed_document_is_read_whole_and_an_unchanged_one_not(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    path.write_bytes(line(header(messages=[user("u"), reply("r", 5)])))
    events, cursor = read_from(transcript_of(path))
    assert [type(event) for event in events] == [SessionSeen, Call]
    assert cursor.offset == path.stat().st_size
    assert read_from(transcript_of(path), cursor) == ([], cursor)
    path.write_bytes(line(header(messages=[user("u"), reply("r", 6)])))
    again, _ = read_from(transcript_of(path), cursor)
    assert [e.usage.sent for e in again if isinstance(e, Call)] == [6]


@pytest.mark.parametrize("data", [b'{"sessionId": "s", "projec', b"", b"[1]"])
def test_truncated_document_is_malformed_and_read_again(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "session-1.json"
    path.write_bytes(data)
    reader = SOURCE.read(transcript_of(path))
    assert list(reader) == []
    assert (reader.tally.malformed, len(reader.tally.places)) == (1, 1)
    assert reader.cursor == START


def test_json_that_is_no_chat_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}", encoding="utf-8")
    reader = SOURCE.read(transcript_of(path))
    assert (list(reader), reader.tally.unknown) == ([], 1)


def test_too_large_document_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(MAX_DOCUMENT_BYTES + 1)
    with pytest.raises(UnreadableTranscript, match="256 MiB"):
        list(SOURCE.read(transcript_of(path)))


def test_folder_or_missing_file_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(UnreadableTranscript, match=str(path)):
            SOURCE.read(transcript_of(path))


def test_chats_of_all_projects_are_listed_with_their_sessions(tmp_path: Path) -> None:
    root = tmp_path / ".gemini"
    old = sha256(b"/old").hexdigest()
    for name in (
        "tmp/marked/chats/session-a.jsonl",
        "tmp/marked/chats/s1/agent7.jsonl",
        "tmp/marked/chats/session-b.json",
        "tmp/marked/chats/session-b.jsonl",
        "tmp/listed/chats/session-c.json",
        "tmp/listed/chats/notes.txt",
        f"tmp/{old}/chats/session-d.json",
        "tmp/nobodys/chats/session-e.jsonl",
    ):
        write_chat(root / name, [header()])
    (root / "tmp/marked/chats/dir.jsonl").mkdir()
    (root / "tmp/marked/chats/gone.jsonl").symlink_to(root / "nowhere")
    (root / "tmp/marked/.project_root").write_text("/marked\n", encoding="utf-8")
    projects = {"projects": {"/listed": "listed", "/old": "elsewhere"}}
    (root / "projects.json").write_text(json.dumps(projects), encoding="utf-8")
    listed = {Path(t.path).name: t for t in transcripts(Places(tmp_path, {}))}
    assert {name: (t.session, t.thread, t.project) for name, t in listed.items()} == {
        "session-a.jsonl": ("s1", "main", "/marked"),
        "agent7.jsonl": ("s1", "agent7", "/marked"),
        "session-b.jsonl": ("s1", "main", "/marked"),
        "session-c.json": ("s1", "main", "/listed"),
        "session-d.json": ("s1", "main", "/old"),
        "session-e.jsonl": ("s1", "main", None),
    }
    assert all(t.size > 0 and t.modified > 0 for t in listed.values())


def test_chats_are_listed_only_where_gemini_cli_home_says(tmp_path: Path) -> None:
    assert list(transcripts(Places(tmp_path, {}))) == []
    write_chat(tmp_path / "else/.gemini/tmp/p/chats/session-a.jsonl", [header()])
    there = Places(tmp_path, {"GEMINI_CLI_HOME": str(tmp_path / "else")})
    assert len(list(transcripts(there))) == 1


def test_stream_gives_the_spent_tokens_of_each_model() -> None:
    parser = GeminiStreamParser()
    init = line({"type": "init", "timestamp": TIME, "session_id": "s", "model": "auto"})
    assert parser.feed(init) == (SessionSeen(at=AT, session="s", agent="gemini"),)
    model = {"total_tokens": 120, "input_tokens": 100, "output_tokens": 15, "cached": 40}
    stats = {**model, "models": {"m": model}}
    result = line({"type": "result", "timestamp": TIME, "status": "success", "stats": stats})
    assert parser.feed(result) == [Spent(at=AT, usage=Usage(60, 40, 0, 20), model="m")]
    assert parser.carry() == b""


def test_older_stream_gives_one_sum() -> None:
    stats = {"total_tokens": 12, "input_tokens": 10, "output_tokens": 2}
    result = line({"type": "result", "timestamp": TIME, "stats": stats})
    assert GeminiStreamParser().feed(result) == (Spent(at=AT, usage=Usage(10, 0, 0, 2)),)


def test_known_lines_give_nothing_unknown_none_and_wrong_sums_raise() -> None:
    for kind in ("message", "tool_use", "tool_result", "error", "result"):
        assert GeminiStreamParser().feed(line({"type": kind})) == ()
    assert GeminiStreamParser().feed(b'{"type":"new"}') is None
    wrong = {"total_tokens": 1, "input_tokens": 2}
    with pytest.raises(InvalidUsage, match="total_tokens"):
        GeminiStreamParser().feed(line({"type": "result", "stats": wrong}))


def test_source_satisfies_the_protocol_and_is_registered() -> None:
    source: Source = SOURCE
    assert source.agent == "gemini"
    assert isinstance(source.stream(), GeminiStreamParser)


def test_own_chats_documents_and_streams_are_recognised() -> None:
    assert SOURCE.recognise(line(header())) == "transcript"
    assert SOURCE.recognise(json.dumps(header(), indent=2).encode()) == "transcript"
    init = line({"type": "init", "timestamp": TIME, "session_id": "s", "model": "auto"})
    assert SOURCE.recognise(b"Loaded credentials.\n" + init) == "stream"
    for other in (
        b"",
        b"{",
        b'{"type":"user","sessionId":"s","uuid":"u"}',
        b'{"type":"system","subtype":"init","session_id":"s","model":"m"}',
        b'{"type":"session","id":"s"}',
        b'{"info": {"id": "ses_1"}}',
        b"SQLite format 3\0",
        b"[" * 100_000,
    ):
        assert SOURCE.recognise(other) is None


def read_threshold(home: Path, **texts: str) -> float | None:
    """Return the threshold of these user and project files."""
    for name, text in texts.items():
        path = home / name / ".gemini/settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    env = {
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(home / "system/.gemini/settings.json"),
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(home / "defaults/.gemini/settings.json"),
    }
    client_settings = SOURCE.settings(Places(home / "user", env), str(home / "project"))
    return client_settings.fraction


def test_threshold_is_read_from_three_places_and_the_newest_wins(tmp_path: Path) -> None:
    assert read_threshold(tmp_path) is None
    assert (
        read_threshold(tmp_path, user='{"chatCompression":{"contextPercentageThreshold":0.6}}')
        == 0.6
    )
    older = '{"model":{"chatCompression":{"contextPercentageThreshold":0.7}}}'
    assert read_threshold(tmp_path, user=older) == 0.7
    both = '{"model":{"compressionThreshold":0.3,"chatCompression":{}}}'
    assert read_threshold(tmp_path, user=both) == 0.3


def test_system_overrides_project_user_and_defaults(tmp_path: Path) -> None:
    thresholds = [
        read_threshold(tmp_path, **{name: f'{{"model":{{"compressionThreshold":{value}}}}}'})
        for name, value in (("defaults", 0.1), ("user", 0.2), ("project", 0.3), ("system", 0.4))
    ]
    assert thresholds == [0.1, 0.2, 0.3, 0.4]


def test_comments_in_settings_are_ignored(tmp_path: Path) -> None:
    text = '{ /* a */ "theme": "http://x", // b\n "model": {"compressionThreshold": 0.5} }'
    assert read_threshold(tmp_path, user=text) == 0.5


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"model":"m"}', '{"model":{"compressionThreshold":5}}']
)
def test_malformed_settings_are_ignored(tmp_path: Path, text: str) -> None:
    assert read_threshold(tmp_path, user=text) is None


def test_chats_with_a_broken_registry_have_an_unknown_project(tmp_path: Path) -> None:
    write_chat(tmp_path / ".gemini/tmp/p/chats/session-a.jsonl", [header()])
    (tmp_path / ".gemini/projects.json").write_text("{", encoding="utf-8")
    (tmp_path / ".gemini/tmp/p/.project_root").write_bytes(b"\xff")
    (listed,) = transcripts(Places(tmp_path, {}))
    assert listed.project is None


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
usages = ["tokens", "input", "output", "cached", "thoughts", "tool", "stats", "total_tokens"]
others = ["id", "type", "$set", "$rewindTo", "messages", "sessionId", "projectHash", "models"]
names = st.sampled_from([*usages, *others])
kinds = st.sampled_from(["user", "gemini", "result", "init", "x"])
garbage = st.recursive(
    scalars | kinds,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(), inner),
    max_leaves=20,
)


@given(st.lists(garbage.map(lambda value: json.dumps(value).encode()) | st.binary(), max_size=5))
def test_garbage_raises_only_declared_errors(records: list[bytes]) -> None:
    parsers = (ChatParser(), GeminiStreamParser())
    for record in records:
        SOURCE.recognise(record)
        for parser in parsers:
            try:
                parser.feed(record)
            except MALFORMED:
                continue
    assert ChatParser(parsers[0].carry()).carry() == parsers[0].carry()


def test_too_deep_record_is_malformed() -> None:
    deep = b'{"x":' + b"[" * 100_000
    for parser in (ChatParser(), GeminiStreamParser()):
        with pytest.raises(MALFORMED):
            parser.feed(deep)


def test_replies_without_tokens_before_a_call_are_no_changed_format(tmp_path: Path) -> None:
    """A resumed chat begins with replies of which only the texts were kept."""
    bare = [reply(f"b{number}") for number in range(4)]
    path = tmp_path / "chat.json"
    for messages, unmetered in (([*bare, reply("r", 5)], 0), ([reply("r", 5), *bare], 4)):
        path.write_bytes(line(header(messages=messages)))
        transcript = Transcript("gemini", str(path), 0.0, path.stat().st_size)
        assert fold(Session(), SOURCE.read(transcript)).unmetered == unmetered
