"""Pi: sessions, `--mode json`, paths and settings."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import source
from brimline.agents.pi.paths import transcripts
from brimline.agents.pi.source import SOURCE
from brimline.agents.pi.transcript import SessionParser
from brimline.errors import InvalidUsage, UnreadableTranscript
from brimline.events import (
    AnyEvent,
    Call,
    Compacted,
    Compacting,
    Rewound,
    SessionSeen,
    Spent,
    Trimmed,
)
from brimline.transcripts.source import Parser, Places, Source, Transcript
from brimline.usage import Usage
from brimline.windows import ClientSettings
from hypothesis_examples import examples

from .garbage import garbage, survives

AT = "2026-11-15T03:18:07.000Z"
SECONDS = 1794712687.0

Json = dict[str, Any]


def header(**fields: Any) -> Json:
    """A header."""
    known = {"type": "session", "version": 3, "id": "s1", "timestamp": AT, "cwd": "/home/me/x"}
    return known | fields


def entry(kind: str, name: str, parent: str | None, /, **fields: Any) -> Json:
    """An entry of a session."""
    return {"type": kind, "id": name, "parentId": parent, "timestamp": AT, **fields}


def tokens(prompt: int, output: int, read: int = 0, written: int = 0, **more: int) -> Json:
    """A count as the client writes it."""
    counts = {"input": prompt, "output": output, "cacheRead": read, "cacheWrite": written}
    return counts | {"totalTokens": sum(counts.values()), "cost": {"total": 0.1}} | more


def reply(usage: Json, **fields: Any) -> Json:
    """An assistant's message."""
    known: Json = {"role": "assistant", "content": [], "model": "m", "timestamp": 1794712687000}
    return known | {"usage": usage} | fields


def said(name: str, parent: str | None, prompt: int, call: str) -> Json:
    """An entry with a reply."""
    return entry("message", name, parent, message=reply(tokens(prompt, 5), responseId=call))


def user(name: str, parent: str | None) -> Json:
    """An entry of the user."""
    return entry("message", name, parent, message={"role": "user", "content": "x"})


def fed(parser: Parser, records: list[Json]) -> list[AnyEvent]:
    """What a parser says to some records."""
    found: list[AnyEvent] = []
    for each in records:
        found += parser.feed(msgspec.json.encode(each)) or ()
    return found


def events(*records: Json) -> list[AnyEvent]:
    """What a new parser says to some records."""
    return fed(SessionParser(), list(records))


def calls(found: list[AnyEvent]) -> list[Call]:
    """The calls among some events."""
    return [each for each in found if isinstance(each, Call)]


FIRST, SECOND, THIRD, FOURTH = (f"msg_000000000{number}" for number in range(4))

SESSION: list[Json] = [
    header(),
    entry("model_change", "a1", None, provider="p", modelId="m"),
    entry("thinking_level_change", "a2", "a1", thinkingLevel="off"),
    user("b1", "a2"),
    said("b2", "b1", 1_000, FIRST),
    entry("message", "b3", "b2", message={"role": "toolResult", "content": [], "isError": False}),
    said("b4", "b3", 2_000, SECOND),
    entry("compaction", "c1", "b4", summary="x", tokensBefore=2_005, usage=tokens(2_100, 40)),
    user("c2", "c1"),
    said("c3", "c2", 300, THIRD),
    entry("branch_summary", "d1", "b2", fromId="c3", summary="x", usage=tokens(50, 6)),
    said("d2", "d1", 1_100, FOURTH),
    entry("session_info", "d3", "d2", name="A name"),
    user("e1", "c2"),
    entry("tomorrow", "e2", "b3"),
    entry("message", "e3", "e2", message=reply(tokens(7, 1), timestamp=9)),
]


def write(path: Path, records: list[Json]) -> Path:
    """A file of some records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))
    return path


def transcript(path: Path) -> Transcript:
    """A file as a transcript."""
    return Transcript("pi", str(path), 0, 0)


def test_it_is_a_source() -> None:
    """The constant satisfies the protocol and is found by its name."""
    found: Source = SOURCE
    assert source("pi") is found
    assert found.agent == "pi"


def test_session_is_seen_once() -> None:
    """The header tells session and project; a second one says nothing."""
    seen = SessionSeen(
        at=SECONDS, session="s1", agent="pi", project="/home/me/x", records_compactions=True
    )
    assert events(header(), header()) == [seen]


def test_usage_is_disjoint() -> None:
    """Input, cache and output are taken as they are, reasoning as a part of the output."""
    usage = tokens(4, 18, 2_409, 5_064, reasoning=3, cacheWrite1h=0)
    (call,) = calls(events(entry("message", "a", None, message=reply(usage))))
    assert call.usage == Usage(4, 2_409, 5_064, 18, 3)
    assert call.usage.held == usage["totalTokens"]
    assert (call.at, call.model, call.final) == (SECONDS, "m", True)


@pytest.mark.parametrize(("told", "kept"), [({"reasoningTokens": 2}, 2), ({"reasoning": 6}, None)])
def test_reasoning(told: dict[str, int], kept: int | None) -> None:
    """The other name is read; more reasoning than output is no part of it and is left out."""
    message = reply(tokens(4, 5, **told))
    (call,) = calls(events(entry("message", "a", None, message=message)))
    assert call.usage.reasoning == kept


def test_refused_replies_are_no_calls() -> None:
    """A reply that was refused or broken off has no usage and is no call."""
    gone = entry("message", "a", None, message=reply(tokens(0, 0), stopReason="error"))
    none = entry("message", "b", "a", message={"role": "assistant", "content": []})
    assert events(gone, none) == []


def test_ids_are_the_providers() -> None:
    """A call is named by its response id; one too short to be unique gets its time and counts."""
    told = [reply(tokens(4, 5), responseId=name) for name in (FIRST, "chatcmpl-123")]
    found = calls(events(*(entry("message", f"{n}", None, message=m) for n, m in enumerate(told))))
    assert [call.id for call in found] == [FIRST, "chatcmpl-123@1794712687000:4+0+0+5"]


def test_made_ids_survive_forks_and_migration() -> None:
    """Without a response id the message itself names the call, in whatever file it lies."""
    message = reply(tokens(4, 5))
    first = {"type": "message", "timestamp": AT, "message": message}
    moved = entry("message", "fresh", None, message=message)
    assert calls(events(header(), first)) == calls(events(header(id="s2"), moved))


def test_nameless_calls_get_their_place() -> None:
    """Without response id and time, the place in the session names the call."""
    message = reply(tokens(4, 5), timestamp=None)
    bare = {"type": "message", "message": message}
    found = calls(events(header(), bare, bare, entry("message", "a", None, message=message)))
    assert [call.id for call in found] == ["s1#0", "s1#1", "s1#a"]


def test_version_one_is_linear() -> None:
    """Entries without ids follow one another: nothing is rewound."""
    first, second = ({"type": "message", "message": reply(tokens(n, 5))} for n in (10, 20))
    kept = {"type": "compaction", "summary": "x", "firstKeptEntryIndex": 3, "tokensBefore": 25}
    found = events(header(version=None), first, second, kept)
    assert [type(each) for each in found] == [SessionSeen, Call, Call, Compacted]
    assert found[-1] == Compacted(before=25)


def test_going_back_rewinds() -> None:
    """An entry whose parent is not the last one goes back to the last call of that branch."""
    found = events(*SESSION)
    back = [each for each in found if isinstance(each, Rewound)]
    assert [each.to for each in back] == [FIRST, SECOND, FIRST]
    assert [call.usage.sent for call in calls(found)] == [1_000, 2_000, 300, 1_100, 7]


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=20))
def test_any_tree(shape: list[tuple[int, bool]]) -> None:
    """Whatever the tree, what was told last is the nearest call above the last entry."""
    above: dict[str | None, str | None] = {None: None}
    records: list[Json] = []
    for number, (place, is_call) in enumerate(shape):
        name, parent = f"e{number}", list(above)[place % len(above)]
        call = f"msg_{number:010}"
        records.append(said(name, parent, 10, call) if is_call else user(name, parent))
        above[name] = call if is_call else above[parent]
    told: str | None = None
    for each in events(*records):
        told = each.id if isinstance(each, Call) else each.to if isinstance(each, Rewound) else told
    assert told == above[f"e{len(shape) - 1}"]


def test_rewinding_stands_before_the_entry() -> None:
    """The way back is told before what the entry itself tells."""
    found = events(*SESSION[:11])
    assert found[-2:] == [
        Rewound(at=SECONDS, to=FIRST),
        Spent(at=SECONDS, usage=Usage(50, 0, 0, 6), model="m"),
    ]


def test_going_back_behind_a_compaction() -> None:
    """Between a compaction and the next call less is held than the last call held."""
    found = events(*SESSION[:14])
    assert found[-2:] == [Rewound(at=SECONDS, to=SECOND), Trimmed(at=SECONDS)]


def test_unknown_entries_are_part_of_the_tree() -> None:
    """An unknown entry is told as unknown, unless it went back; what follows it goes on from it."""
    parser = SessionParser()
    fed(parser, SESSION[:5])
    assert parser.feed(msgspec.json.encode(entry("tomorrow", "x", "b2"))) is None
    assert parser.feed(msgspec.json.encode(entry("tomorrow", "y", None))) == (
        Rewound(at=SECONDS, to=None),
    )
    assert parser.feed(msgspec.json.encode(user("z", "y"))) == ()


def test_lost_parent() -> None:
    """A parent that was never read is a broken record, and no way back."""
    assert events(*SESSION[:5], user("z", "lost"))[-1] == events(*SESSION[:5])[-1]


def test_compaction() -> None:
    """A compaction tells what was held, and what its summary cost."""
    assert events(*SESSION[:8])[-2:] == [
        Spent(at=SECONDS, usage=Usage(2_100, 0, 0, 40), model="m"),
        Compacted(at=SECONDS, before=2_005),
    ]


def test_usage_outside_the_context() -> None:
    """Keeping the cache warm is spent and no call."""
    warm = entry("usage", "a", None, kind="cache_warm", model="n", usage=tokens(0, 0, 50_000))
    assert events(warm) == [Spent(at=SECONDS, usage=Usage(0, 50_000, 0, 0), model="n")]
    assert events(entry("usage", "a", None, usage=tokens(0, 0))) == []


def test_context_edits() -> None:
    """Taking something out of the context trims it; taking out a failed reply does not."""
    failed = entry("message", "x", "b2", message=reply(tokens(0, 0)))
    edit = entry("context_edit", "y", "x", targetId="x", replacement=None)
    other = entry("context_edit", "z", "y", targetId="b1", replacement=None)
    assert events(*SESSION[:5], failed, edit) == events(*SESSION[:5])
    assert events(*SESSION[:5], failed, edit, other)[-1] == Trimmed(at=SECONDS)


def test_titles() -> None:
    """A session's name is its title; an empty one says nothing."""
    assert SessionSeen(at=SECONDS, title="A name") in events(*SESSION)
    assert events({"type": "title", "v": 1, "title": ""}) == []


@pytest.mark.parametrize(
    "bad",
    [
        entry("message", "z", "b2", message={"role": "assistant", "usage": {"input": 1}}),
        entry("message", "z", "b1", message=reply(tokens(-4, 5))),
        entry("message", "z", "b1", message=[]),
        entry("compaction", "z", "b1", tokensBefore="many"),
        entry("compaction", "z", "b1", tokensBefore=1, usage={"input": 1}),
        entry("usage", "z", "b1", usage=5),
        {"type": None},
        {},
    ],
)
def test_malformed_entries_raise_and_change_nothing(bad: Json) -> None:
    """A known kind with wrong values raises, and the parser goes on as if it had not been."""
    parser = SessionParser()
    fed(parser, SESSION[:5])
    before = parser.carry()
    with pytest.raises((msgspec.DecodeError, InvalidUsage)):
        parser.feed(msgspec.json.encode(bad))
    assert parser.carry() == before


def test_reading_goes_on_from_any_cursor(tmp_path: Path) -> None:
    """Read in two parts, split at any entry, a session tells the same as in one."""
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
        SOURCE.read(transcript(tmp_path / "gone.jsonl"))


def test_transcript_from_anywhere(tmp_path: Path) -> None:
    """A session can be read from an open file."""
    path = write(tmp_path / "x.jsonl", SESSION)
    with path.open("rb") as file:
        assert list(SOURCE.parse(file)) == events(*SESSION)


@pytest.mark.parametrize(
    ("env", "told", "folder"),
    [
        ({}, {}, ".pi/agent/sessions/--home-me-x--"),
        ({"PI_CODING_AGENT_DIR": "~/other"}, {}, "other/sessions/--home-me-x--"),
        ({"PI_CODING_AGENT_SESSION_DIR": "~/flat"}, {}, "flat"),
        ({}, {"sessionDir": "~"}, ".pi/agent/sessions/deep"),
        ({}, {"sessionDir": "~/.pi/agent/sessions/deep"}, ".pi/agent/sessions/deep"),
        ({}, {"sessionDir": "{home}/flat"}, "flat"),
    ],
)
def test_transcripts_are_found(
    tmp_path: Path, env: dict[str, str], told: dict[str, str], folder: str
) -> None:
    """Sessions are found where variables and settings say; what is no file is passed over."""
    if told:
        named = {key: value.format(home=tmp_path) for key, value in told.items()}
        write(tmp_path / ".pi/agent/settings.json", [named])
    path = write(tmp_path / folder / "2026-11-15T03-20-25-211Z_s_1.jsonl", SESSION)
    (tmp_path / folder / "x.jsonl").mkdir()
    (tmp_path / folder / "y.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / folder / "notes.txt").write_text("x")
    (found,) = transcripts(Places(home=tmp_path, env=env))
    assert (found.path, found.session, found.size) == (str(path), "s_1", path.stat().st_size)


def test_transcript_with_another_name(tmp_path: Path) -> None:
    """Where the name does not tell the session, only the content does."""
    write(tmp_path / ".pi/agent/sessions/mine.jsonl", SESSION)
    assert [each.session for each in transcripts(Places(home=tmp_path, env={}))] == [None]


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (b"", None),
        (msgspec.json.encode(header()), "stream"),
        (msgspec.json.encode(header()) + b'\n{"type":"agent_start"}\n', "stream"),
        (msgspec.json.encode(header()) + b'\n{"type":"message","id":"x', "transcript"),
        (msgspec.json.encode(header()) + b"\nbroken", "transcript"),
        (b'{"type":"title","v":1}\n' + msgspec.json.encode(header()) + b"\n{}", "transcript"),
        (b'{"type":"session","id":"x"}\n{"type":"agent_start"}\n', None),
        (b'{"type":"session","id":5,"cwd":"/"}\n', None),
        (b'{"type":"thread.started","thread_id":"x"}\n', None),
        (b'{"timestamp":"2026","type":"session_meta","payload":{}}\n', None),
        (b'{"type":"summary","summary":"x","leafUuid":"y"}\n', None),
    ],
)
def test_recognise(head: bytes, form: str | None) -> None:
    """A session and a stream begin with the same line; the next one tells which it is."""
    assert SOURCE.recognise(head) == form


def settings_of(tmp_path: Path, **files: str) -> ClientSettings:
    """What is read from the user's and the project's settings."""
    project = tmp_path / "project"
    for name, text in files.items():
        folder = project / ".pi" if name == "project" else tmp_path / ".pi/agent"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{'settings' if name == 'project' else name}.json").write_text(text)
    where = str(project) if "project" in files else None
    return SOURCE.settings(Places(home=tmp_path, env={}), where)


def test_settings(tmp_path: Path) -> None:
    """Compaction comes from settings.json, windows and longest replies from models.json."""
    models = """\ufeff{"providers": {"p": { // mine
        "baseUrl": "http://127.0.0.1/v1",
        "models": [{"id": "m", "contextWindow": 200000, "maxTokens": 8192,}, {"id": "n"}],
        "modelOverrides": {"o": {"contextWindow": 1000}}}}}"""
    compaction = '{"compaction": {"enabled": false, "reserveTokens": 9000}}'
    told = settings_of(tmp_path, settings=compaction, models=models)
    assert (told.auto_compact, told.reserve) == (False, 9_000)
    assert (told.windows, told.max_outputs) == ({"m": 200_000, "o": 1_000}, {"m": 8_192})


def test_settings_of_a_project(tmp_path: Path) -> None:
    """A project's settings go over the user's, value by value."""
    told = settings_of(
        tmp_path,
        settings='{"compaction": {"enabled": false, "reserveTokens": 9000}}',
        project='{"compaction": {"enabled": true}}',
    )
    assert (told.auto_compact, told.reserve) == (True, 9_000)
    (tmp_path / "project/.pi/settings.json").write_text('{"compaction": {"reserveTokens": 0}}')
    told = SOURCE.settings(Places(home=tmp_path, env={}), str(tmp_path / "project"))
    assert (told.auto_compact, told.reserve) == (False, 0)


@pytest.mark.parametrize("text", ["{", '{"compaction": 5, "providers": 5}', "\0"])
def test_settings_that_do_not_parse(tmp_path: Path, text: str) -> None:
    """A file that is not as expected tells nothing and breaks nothing."""
    told = settings_of(tmp_path, settings=text, models=text)
    assert (told.auto_compact, told.reserve, told.windows) == (None, None, {})


STREAM: list[Json] = [
    header(),
    {"type": "agent_start"},
    {"type": "message_start", "message": {"role": "user", "content": "x"}},
    {"type": "message_end", "message": {"role": "user", "content": "x"}},
    {"type": "message_start", "message": reply(tokens(0, 0))},
    {"type": "message_update", "usage": tokens(10, 1), "assistantMessageEvent": {}},
    {"type": "message_end", "message": reply(tokens(10, 5), responseId=FIRST)},
    {"type": "turn_end", "message": reply(tokens(10, 5), responseId=FIRST), "toolResults": []},
    {"type": "message_start", "message": reply(tokens(20, 1), responseId=SECOND)},
    {"type": "message_update", "usage": tokens(20, 1), "assistantMessageEvent": {}},
    {"type": "message_update", "usage": tokens(20, 3), "assistantMessageEvent": {}},
    {"type": "message_end", "message": reply(tokens(20, 6), responseId=SECOND)},
    {"type": "agent_end", "messages": [reply(tokens(10, 5), responseId=FIRST)]},
    {"type": "compaction_start", "reason": "threshold"},
    {
        "type": "compaction_end",
        "reason": "threshold",
        "result": {"tokensBefore": 26, "estimatedTokensAfter": 9, "usage": tokens(30, 4)},
        "aborted": False,
    },
    {"type": "session_info_changed", "name": "A name"},
]


def test_stream_tells_each_call_once() -> None:
    """A message that turn_end and agent_end repeat is told by message_end alone."""
    found = calls(fed(SOURCE.stream(), STREAM))
    assert [(call.id, call.usage.output) for call in found if call.final] == [
        (FIRST, 5),
        (SECOND, 6),
    ]


def test_stream_ids_are_the_transcripts() -> None:
    """A call has the same id in the stream and in the session."""
    for message in (reply(tokens(4, 5)), reply(tokens(4, 5), responseId=FIRST)):
        told = calls(fed(SOURCE.stream(), [{"type": "message_end", "message": message}]))
        kept = calls(events(entry("message", "a", None, message=message)))
        assert [call.id for call in told] == [call.id for call in kept]


def test_stream_partial_usage() -> None:
    """A reply whose id is known is told while it grows, when its usage changed, as not final."""
    found = calls(fed(SOURCE.stream(), STREAM))
    assert [(call.id, call.usage.output) for call in found if not call.final] == [
        (SECOND, 1),
        (SECOND, 3),
    ]


def test_stream_of_older_versions() -> None:
    """Older lines give the whole message so far."""
    growing = {"type": "message_update", "message": reply(tokens(20, 3), responseId=FIRST)}
    (call,) = calls(fed(SOURCE.stream(), [growing, growing]))
    assert (call.id, call.usage.output, call.final) == (FIRST, 3, False)


def test_stream_reply_without_a_name() -> None:
    """A reply that only its final counts can name is not told before it is whole."""
    start = {"type": "message_start", "message": reply(tokens(20, 1), responseId="chatcmpl-123")}
    assert fed(SOURCE.stream(), [start, STREAM[9]]) == []


def test_stream_refused_reply() -> None:
    """A reply without usage is no call."""
    none = {"type": "message_end", "message": {"role": "assistant", "responseId": FIRST}}
    assert fed(SOURCE.stream(), [none]) == []


def test_stream_compaction() -> None:
    """Beginning, cost, before and after of a compaction are told."""
    assert fed(SOURCE.stream(), STREAM[-3:-1]) == [
        Compacting(trigger="auto"),
        Spent(usage=Usage(30, 0, 0, 4)),
        Compacted(trigger="auto", before=26, after=9),
    ]


def test_stream_compaction_after_an_overflow_says_so() -> None:
    ended = {"type": "compaction_end", "reason": "overflow", "result": {"tokensBefore": 26}}
    assert fed(SOURCE.stream(), [ended]) == [Compacted(trigger="auto", before=26, overflow=True)]


def test_stream_compaction_that_was_asked_for() -> None:
    """A compaction that the user asked for is manual; one without reason is neither."""
    ended = {"type": "compaction_end", "reason": "manual", "result": {"tokensBefore": 26}}
    assert fed(SOURCE.stream(), [ended]) == [Compacted(trigger="manual", before=26)]
    assert fed(SOURCE.stream(), [{"type": "compaction_start"}]) == [Compacting()]


def test_stream_compaction_that_failed() -> None:
    """A compaction without a result did not happen."""
    assert fed(SOURCE.stream(), [{"type": "compaction_end", "reason": "manual"}]) == []


def test_stream_session() -> None:
    """The header tells the session, a change of name its title."""
    found = fed(SOURCE.stream(), [*STREAM, {"type": "session_info_changed"}])
    seen = [each for each in found if isinstance(each, SessionSeen)]
    assert [(each.session, each.project, each.title) for each in seen] == [
        ("s1", "/home/me/x", None),
        (None, None, "A name"),
    ]


def test_stream_unknown_and_malformed() -> None:
    """Unknown lines are None, wrong values raise."""
    assert SOURCE.stream().feed(b'{"type":"tomorrow"}') is None
    with pytest.raises(msgspec.ValidationError):
        SOURCE.stream().feed(b'{"type":"compaction_end","result":5}')


@examples(300)
@given(st.lists(garbage(records=SESSION), max_size=6), st.integers(0, len(SESSION)))
def test_garbage_in_a_session(found: list[bytes], ready: int) -> None:
    """Whatever comes, only the declared errors come out, and a parser can always go on."""
    parser = SessionParser()
    fed(parser, SESSION[:ready])
    survives(parser, SOURCE, found)
    SessionParser(parser.carry())


@examples(300)
@given(st.lists(garbage(records=STREAM), max_size=6))
def test_garbage_in_a_stream(found: list[bytes]) -> None:
    """Whatever comes, only the declared errors come out."""
    survives(SOURCE.stream(), SOURCE, found)
