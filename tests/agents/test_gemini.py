"""Gemini CLI: its chats, its older documents, its stream, its settings."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.gemini.paths import transcripts
from brimline.agents.gemini.source import SOURCE
from brimline.agents.gemini.stream import GeminiStreamParser
from brimline.agents.gemini.transcript import ChatParser
from brimline.errors import InvalidUsage, UnreadableTranscript
from brimline.events import AnyEvent, Call, Compacted, Rewound, SessionSeen, Spent, Trimmed
from brimline.tracker import Session, fold, main_thread
from brimline.transcripts.document import MAX_DOCUMENT_BYTES
from brimline.transcripts.source import MALFORMED, START, Cursor, Places, Source, Transcript
from brimline.usage import Usage

TIME = "2026-11-15T03:25:06.382Z"
AT = 1794713106.382
ANSWER = "Got it. Thanks for the additional context!"

Json = dict[str, object]


def line(record: Json) -> bytes:
    """A record as the client writes it."""
    return json.dumps(record, separators=(",", ":")).encode()


def header(**more: object) -> Json:
    """A chat's first line."""
    return {"sessionId": "s1", "projectHash": "ab", "startTime": TIME, "kind": "main", **more}


def tokens(sent: int, output: int = 5, cached: int = 0, thoughts: int = 0, tool: int = 0) -> Json:
    """A reply's usage."""
    counts = {"input": sent, "output": output, "cached": cached, "thoughts": thoughts, "tool": tool}
    return {**counts, "total": sent + output + thoughts + tool}


def reply(id: str, sent: int = 0, **more: object) -> Json:
    """A reply of the model; without tokens where nothing was sent."""
    told = tokens(sent) if sent else None
    return {"id": id, "timestamp": TIME, "type": "gemini", "model": "m", "tokens": told, **more}


def user(id: str, text: str = "hello") -> Json:
    """A prompt."""
    return {"id": id, "timestamp": TIME, "type": "user", "content": [{"text": text}]}


def rewritten(*messages: Json) -> Json:
    """The patch that replaces the conversation."""
    return {"$set": {"messages": list(messages), "lastUpdated": TIME}}


def compressed(summary: str) -> Json:
    """The patch that a compression writes."""
    answer: Json = {"id": f"a-{summary}", "type": "gemini", "content": [{"text": ANSWER}]}
    return rewritten(user("env"), user(f"s-{summary}", summary), answer, reply(f"k-{summary}"))


def feed(records: Iterable[Json], parser: ChatParser | None = None) -> list[AnyEvent]:
    """The events of records."""
    parser = parser or ChatParser()
    return [event for record in records for event in parser.feed(line(record)) or ()]


def without_seen(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    """The events that are no SessionSeen."""
    return [event for event in events if not isinstance(event, SessionSeen)]


def written(path: Path, records: Iterable[Json]) -> Transcript:
    """A chat in a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line(record) + b"\n" for record in records))
    return Transcript(agent="gemini", path=str(path), modified=0, size=path.stat().st_size)


def read(transcript: Transcript, cursor: Cursor = START) -> tuple[list[AnyEvent], Cursor]:
    """All events from a cursor on, and the next cursor."""
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


def test_usage_is_disjoint() -> None:
    """The cache is taken out of the prompt, tool prompts are prompt, thoughts are output."""
    told = tokens(100, output=7, cached=60, thoughts=3, tool=10)
    (call,) = feed([reply("r", tokens=told)])
    assert call == Call(at=AT, id="r", model="m", usage=Usage(50, 60, 0, 10, 3))


def test_held_is_the_clients_total() -> None:
    """What we hold is what the client writes as the total."""
    told = tokens(100, output=7, cached=60, thoughts=3, tool=10)
    (call,) = feed([reply("r", tokens=told)])
    assert isinstance(call, Call)
    assert call.usage.held == told["total"]


def test_the_last_copy_wins() -> None:
    """A message that is written again is the same call."""
    calls = feed([reply("r", 5), reply("r", 9)])
    assert [(c.id, c.usage.sent) for c in calls if isinstance(c, Call)] == [("r", 5), ("r", 9)]


@pytest.mark.parametrize("told", [None, tokens(0, output=0)])
def test_no_tokens_no_call(told: Json | None) -> None:
    """A reply without usage, or with zeros, is no call."""
    assert feed([reply("r", tokens=told)]) == []


@pytest.mark.parametrize("kind", ["user", "info", "error", "warning"])
def test_known_kinds_without_events(kind: str) -> None:
    """What we know and do not need is read and says nothing."""
    assert ChatParser().feed(line({"id": "x", "type": kind, "content": 1})) == ()


@pytest.mark.parametrize(
    "record", [{"id": "x", "type": "new"}, {"id": "x"}, {}, {"sessionId": "s"}]
)
def test_unknown_kinds(record: Json) -> None:
    """What we do not know is None, so that it is counted."""
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
def test_malformed_records_change_nothing(record: Json) -> None:
    """A known record with wrong figures is an error, and the parser forgets it."""
    parser = ChatParser()
    feed(CHAT[:5], parser)
    before = parser.carry()
    with pytest.raises((msgspec.DecodeError, InvalidUsage)):
        parser.feed(line(record))
    assert parser.carry() == before


def test_the_header_names_the_session() -> None:
    """Session, project, title and time come from the header and the file's place."""
    (seen,) = feed([header(summary="t", directories=["/p"])])
    assert seen == SessionSeen(
        at=AT, session="s1", agent="gemini", project="/p", title="t", records_compactions=False
    )
    (seen,) = feed([header()], ChatParser(project="/q"))
    assert isinstance(seen, SessionSeen)
    assert seen.project == "/q"


def test_a_subagent_is_a_thread() -> None:
    """Its calls go to a thread of its own, of the session that its place names."""
    seen, call = feed([header(kind="subagent"), reply("r", 5)], ChatParser(session="parent"))
    assert isinstance(seen, SessionSeen)
    assert isinstance(call, Call)
    assert (seen.session, call.thread) == ("parent", "s1")


def test_a_patch_can_title() -> None:
    """A summary in a patch is the session's title."""
    assert feed([{"$set": {"summary": "t"}}]) == [SessionSeen(title="t")]


def test_a_client_that_rewrites_records_compressions() -> None:
    """The first rewritten conversation tells that a compression would be told too."""
    assert feed([rewritten(user("env"))]) == [SessionSeen(records_compactions=True)]
    assert feed([rewritten(user("env")), rewritten(user("env"))])[1:] == []


def test_a_compression_is_told_once() -> None:
    """A resume writes the same summary again; only a new one is a compression."""
    events = feed([reply("r", 5), compressed("one"), compressed("one"), compressed("two")])
    assert [e for e in events if isinstance(e, Compacted)] == [Compacted(at=AT)] * 2


def test_calls_of_a_rewritten_conversation() -> None:
    """A call that no line told before is told by the list that it stands in, once."""
    events = feed([reply("r", 5), rewritten(reply("r", 5), reply("q", 7)), reply("q", 7)])
    assert [e.id for e in events if isinstance(e, Call)] == ["r", "q", "q"]


def test_a_resume_holds_what_was_held() -> None:
    """The conversation is emptied and written again: the last call counts as before."""
    thread = main_thread(fold(Session(), feed(CHAT[:13])))
    assert thread is not None
    assert (thread.current, thread.compactions, thread.cycle) == ("r2", (), 0)


def test_the_whole_story() -> None:
    """Calls, resume, two compressions and rewinds, in order."""
    events = without_seen(feed(CHAT))
    told = [e.id if isinstance(e, Call) else type(e).__name__ for e in events]
    again = ["Rewound", "Rewound"]
    first = ["r1", "r1", "r2", *again, "Compacted", "r3", "r4", "Rewound", "Compacted"]
    assert told == first
    assert events[-2] == Rewound(to="r3")


def test_rewind_to_a_call() -> None:
    """All from that message on is gone: what is held is what the call before it held."""
    events = feed([reply("r", 5), user("u"), reply("q", 7), {"$rewindTo": "u"}])
    assert events[-1] == Rewound(to="r")


def test_rewind_to_the_start() -> None:
    """Before the first call nothing is held; an unknown message empties it too."""
    for to in ("u", "nobody"):
        events = feed([user("u"), reply("r", 5), {"$rewindTo": to}])
        assert events[-1] == Rewound(to=None)


def test_rewind_behind_a_compression() -> None:
    """What is held then was never told: unknown, not empty."""
    rewind: Json = {"$rewindTo": "u"}
    events = feed([reply("r", 5), compressed("one"), user("u"), reply("q", 7), rewind])
    assert events[-1] == Trimmed()


def test_rewind_without_effect() -> None:
    """Where no call goes, nothing is said."""
    assert feed([reply("r", 5), user("u"), {"$rewindTo": "u"}])[1:] == []


def test_truncated_history() -> None:
    """A conversation of other messages without a summary was trimmed."""
    events = feed([reply("r", 5), rewritten(user("u"), reply("new"))])
    assert events[-1] == Trimmed(at=AT)


def test_halves_make_the_whole(tmp_path: Path) -> None:
    """Read in two, at any record, a chat gives the events that it gives at once."""
    path = tmp_path / "c.jsonl"
    whole, end = read(written(path, CHAT))
    for cut in range(len(CHAT) + 1):
        first, cursor = read(written(path, CHAT[:cut]))
        second, last = read(written(path, CHAT), cursor)
        assert first + second == whole
        assert last == end


def test_lines_in_a_file_of_any_name(tmp_path: Path) -> None:
    """A document is told by its name or its first line; the rest are lines."""
    events, _ = read(written(tmp_path / "chat", CHAT))
    assert events == feed(CHAT)
    path = tmp_path / "full.jsonl"
    path.write_text(json.dumps(header(messages=[reply("r", 5)]), indent=2), encoding="utf-8")
    assert [type(event) for event in read(transcript_of(path))[0]] == [SessionSeen, Call]


def transcript_of(path: Path) -> Transcript:
    """A file as somebody names it."""
    return Transcript(agent="gemini", path=str(path), modified=0, size=0)


def test_a_chat_from_anywhere() -> None:
    """Lines and documents are told apart on standard input too."""
    lines = b"".join(line(record) + b"\n" for record in CHAT)
    assert list(SOURCE.parse(BytesIO(lines))) == feed(CHAT)
    document = json.dumps(header(messages=[reply("r", 5)]), indent=2).encode()
    assert [type(event) for event in SOURCE.parse(BytesIO(document))] == [SessionSeen, Call]


def test_an_older_document(tmp_path: Path) -> None:
    """The whole is read when it changed, and nothing is told when it did not."""
    path = tmp_path / "session-1.json"
    path.write_bytes(line(header(messages=[user("u"), reply("r", 5)])))
    events, cursor = read(transcript_of(path))
    assert [type(event) for event in events] == [SessionSeen, Call]
    assert cursor.offset == path.stat().st_size
    assert read(transcript_of(path), cursor) == ([], cursor)
    path.write_bytes(line(header(messages=[user("u"), reply("r", 6)])))
    again, _ = read(transcript_of(path), cursor)
    assert [e.usage.sent for e in again if isinstance(e, Call)] == [6]


@pytest.mark.parametrize("data", [b'{"sessionId": "s", "projec', b"", b"[1]"])
def test_a_document_that_is_cut_off(tmp_path: Path, data: bytes) -> None:
    """It counts as malformed, and is looked at again the next time."""
    path = tmp_path / "session-1.json"
    path.write_bytes(data)
    reader = SOURCE.read(transcript_of(path))
    assert list(reader) == []
    assert (reader.tally.malformed, len(reader.tally.places)) == (1, 1)
    assert reader.cursor == START


def test_a_document_of_nobody(tmp_path: Path) -> None:
    """JSON that is no chat is counted as unknown."""
    path = tmp_path / "x.json"
    path.write_text("{}", encoding="utf-8")
    reader = SOURCE.read(transcript_of(path))
    assert (list(reader), reader.tally.unknown) == ([], 1)


def test_a_document_that_is_too_large(tmp_path: Path) -> None:
    """It is not held in memory; the error says so."""
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(MAX_DOCUMENT_BYTES + 1)
    with pytest.raises(UnreadableTranscript, match="256 MiB"):
        list(SOURCE.read(transcript_of(path)))


def test_unreadable(tmp_path: Path) -> None:
    """A folder or a missing file is an error that names it."""
    for path in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(UnreadableTranscript, match=str(path)):
            SOURCE.read(transcript_of(path))


def test_transcripts(tmp_path: Path) -> None:
    """Chats of all projects, a subagent's with its session, an older document unless it goes on."""
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
        written(root / name, [header()])
    (root / "tmp/marked/chats/dir.jsonl").mkdir()
    (root / "tmp/marked/chats/gone.jsonl").symlink_to(root / "nowhere")
    (root / "tmp/marked/.project_root").write_text("/marked\n", encoding="utf-8")
    projects = {"projects": {"/listed": "listed", "/old": "elsewhere"}}
    (root / "projects.json").write_text(json.dumps(projects), encoding="utf-8")
    found = {Path(t.path).name: t for t in transcripts(Places(tmp_path, {}))}
    assert {name: (t.session, t.thread, t.project) for name, t in found.items()} == {
        "session-a.jsonl": ("s1", "main", "/marked"),
        "agent7.jsonl": ("s1", "agent7", "/marked"),
        "session-b.jsonl": ("s1", "main", "/marked"),
        "session-c.json": ("s1", "main", "/listed"),
        "session-d.json": ("s1", "main", "/old"),
        "session-e.jsonl": ("s1", "main", None),
    }
    assert all(t.size > 0 and t.modified > 0 for t in found.values())


def test_no_transcripts(tmp_path: Path) -> None:
    """Where there is nothing, nothing is found; GEMINI_CLI_HOME leads elsewhere."""
    assert list(transcripts(Places(tmp_path, {}))) == []
    written(tmp_path / "else/.gemini/tmp/p/chats/session-a.jsonl", [header()])
    there = Places(tmp_path, {"GEMINI_CLI_HOME": str(tmp_path / "else")})
    assert len(list(transcripts(there))) == 1


def test_the_stream_tells_what_was_spent() -> None:
    """No call is in the stream: what a run spent on each model, thoughts and all."""
    parser = GeminiStreamParser()
    init = line({"type": "init", "timestamp": TIME, "session_id": "s", "model": "auto"})
    assert parser.feed(init) == (SessionSeen(at=AT, session="s", agent="gemini"),)
    model = {"total_tokens": 120, "input_tokens": 100, "output_tokens": 15, "cached": 40}
    stats = {**model, "models": {"m": model}}
    result = line({"type": "result", "timestamp": TIME, "status": "success", "stats": stats})
    assert parser.feed(result) == [Spent(at=AT, usage=Usage(60, 40, 0, 20), model="m")]
    assert parser.carry() == b""


def test_the_stream_of_older_versions() -> None:
    """Without models one sum is told."""
    stats = {"total_tokens": 12, "input_tokens": 10, "output_tokens": 2}
    result = line({"type": "result", "timestamp": TIME, "stats": stats})
    assert GeminiStreamParser().feed(result) == (Spent(at=AT, usage=Usage(10, 0, 0, 2)),)


def test_the_other_lines_of_the_stream() -> None:
    """Known lines say nothing, unknown ones are None, wrong sums are an error."""
    for kind in ("message", "tool_use", "tool_result", "error", "result"):
        assert GeminiStreamParser().feed(line({"type": kind})) == ()
    assert GeminiStreamParser().feed(b'{"type":"new"}') is None
    wrong = {"total_tokens": 1, "input_tokens": 2}
    with pytest.raises(InvalidUsage, match="total_tokens"):
        GeminiStreamParser().feed(line({"type": "result", "stats": wrong}))


def test_the_source_is_whole() -> None:
    """It has what every source offers."""
    source: Source = SOURCE
    assert source.agent == "gemini"
    assert isinstance(source.stream(), GeminiStreamParser)


def test_recognise() -> None:
    """A chat, a pretty-printed document and a stream are ours; others' first lines are not."""
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


def settings(home: Path, **texts: str) -> float | None:
    """The fraction that these settings files tell; names are a user's and a project's."""
    for name, text in texts.items():
        path = home / name / ".gemini/settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    env = {
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(home / "system/.gemini/settings.json"),
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(home / "defaults/.gemini/settings.json"),
    }
    told = SOURCE.settings(Places(home / "user", env), str(home / "project"))
    return told.fraction


def test_settings_in_every_place(tmp_path: Path) -> None:
    """The threshold stood in three places; a newer one wins."""
    assert settings(tmp_path) is None
    assert settings(tmp_path, user='{"chatCompression":{"contextPercentageThreshold":0.6}}') == 0.6
    older = '{"model":{"chatCompression":{"contextPercentageThreshold":0.7}}}'
    assert settings(tmp_path, user=older) == 0.7
    both = '{"model":{"compressionThreshold":0.3,"chatCompression":{}}}'
    assert settings(tmp_path, user=both) == 0.3


def test_settings_in_order(tmp_path: Path) -> None:
    """System over project over user over defaults."""
    found = [
        settings(tmp_path, **{name: f'{{"model":{{"compressionThreshold":{value}}}}}'})
        for name, value in (("defaults", 0.1), ("user", 0.2), ("project", 0.3), ("system", 0.4))
    ]
    assert found == [0.1, 0.2, 0.3, 0.4]


def test_settings_with_comments(tmp_path: Path) -> None:
    """Comments are no data, and a string that looks like one is no comment."""
    text = '{ /* a */ "theme": "http://x", // b\n "model": {"compressionThreshold": 0.5} }'
    assert settings(tmp_path, user=text) == 0.5


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"model":"m"}', '{"model":{"compressionThreshold":5}}']
)
def test_settings_that_tell_nothing(tmp_path: Path, text: str) -> None:
    """What cannot be read or makes no sense is passed over."""
    assert settings(tmp_path, user=text) is None


def test_broken_registry(tmp_path: Path) -> None:
    """A project that cannot be told is unknown, and its chats are found."""
    written(tmp_path / ".gemini/tmp/p/chats/session-a.jsonl", [header()])
    (tmp_path / ".gemini/projects.json").write_text("{", encoding="utf-8")
    (tmp_path / ".gemini/tmp/p/.project_root").write_bytes(b"\xff")
    (found,) = transcripts(Places(tmp_path, {}))
    assert found.project is None


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
def test_garbage(records: list[bytes]) -> None:
    """Whatever comes, only the declared errors come out, and the carry stays whole."""
    parsers = (ChatParser(), GeminiStreamParser())
    for record in records:
        SOURCE.recognise(record)
        for parser in parsers:
            try:
                parser.feed(record)
            except MALFORMED:
                continue
    assert ChatParser(parsers[0].carry()).carry() == parsers[0].carry()


def test_nesting_without_end() -> None:
    """A record that is too deep is malformed, not the end of the process."""
    deep = b'{"x":' + b"[" * 100_000
    for parser in (ChatParser(), GeminiStreamParser()):
        with pytest.raises(MALFORMED):
            parser.feed(deep)
