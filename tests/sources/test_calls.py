"""Reading calls in C: what it reads is what the parser reads; the rest is left to the parser."""

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brimline.events import MAIN, AnyEvent, Call
from brimline.sources.claude.calls import CompiledCalls, Told
from brimline.sources.claude.parse import TranscriptParser
from brimline.sources.claude.quick import ID, NEEDLES
from brimline.transcripts.line_filter import BATCH_RUNS, CompiledLineFilter
from brimline.transcripts.lines import MALFORMED
from brimline.transcripts.source import parse_time
from brimline.usage import Usage
from trying import examples

Json = dict[str, Any]
Change = Callable[[Json], object]
VERSION = "2.1.325"

pytestmark = pytest.mark.usefixtures("compiled")


def record(id: str = "msg_1") -> Json:
    """A call's record, with what Claude Code puts into one and where."""
    return {
        "parentUuid": "0f0e",
        "isSidechain": False,
        "message": {
            "model": "claude-opus-4-6",
            "id": id,
            "type": "message",
            "content": [
                {"type": "text", "text": 'so "this" is\n\tit: caf\u00e9, \\n, \u2192 {"id":"x"}'},
                {"type": "tool_use", "input": {"a": [1, -0.5, 1e9, True, None, [], {}], "b": ""}},
            ],
            "stop_reason": None,
            "usage": {
                "input_tokens": 4,
                "cache_creation_input_tokens": 24_355,
                "cache_read_input_tokens": 90_000,
                "cache_creation": {"ephemeral_5m_input_tokens": 24_355},
                "output_tokens": 53,
                "iterations": [
                    {"input_tokens": 4, "output_tokens": 53, "type": "message", "cache": {}}
                ],
            },
        },
        "requestId": "req_1",
        "requestedModel": "claude-opus-4-6[1m]",
        "type": "assistant",
        "uuid": "5b1f",
        "timestamp": "2026-11-14T20:33:10.190Z",
        "cwd": "/home/dev/project",
        "sessionId": "1bfc",
        "version": VERSION,
    }


def line(made: Json) -> bytes:
    """A record as the client writes it: nothing between its parts, and text as it is."""
    return json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()


def parser(version: str | None = VERSION) -> TranscriptParser:
    """A parser that has seen the session, and calls of a version."""
    made = TranscriptParser()
    made.feed(line(record("msg_0") | {"version": version}))
    return made


def told(data: bytes, by: TranscriptParser | None = None) -> list[Told]:
    """What is told of lines."""
    reader = CompiledCalls(CompiledLineFilter(NEEDLES, ID), ID)
    return list(reader.told(bytearray(data), len(data), by or parser()))


def fed(data: bytes) -> list[AnyEvent] | None:
    """What the parser tells of a line; None where it is malformed."""
    try:
        return list(parser().feed(data) or ())
    except MALFORMED:
        return None


def test_a_call() -> None:
    """A record as the client writes it is read whole."""
    (call,) = told(line(record()) + b"\n")
    assert call == Call(
        id="msg_1",
        usage=Usage(4, 90_000, 24_355, 53),
        model="claude-opus-4-6",
        asked_for="claude-opus-4-6[1m]",
        at=1_794_688_390.19,
    )
    assert [call] == fed(line(record()))


def in_message(**fields: object) -> Change:
    """Other fields in the message."""
    return lambda made: made["message"].update(deepcopy(fields))


def in_usage(**fields: object) -> Change:
    """Other fields in the usage."""
    return lambda made: made["message"]["usage"].update(fields)


def also(**fields: object) -> Change:
    """Other fields in the record."""
    return lambda made: made.update(fields)


def without(*names: str) -> Change:
    """Fewer fields in the record."""
    return lambda made: [made.pop(name) for name in names]


PLAIN: dict[str, Change] = {
    "as it is": also(),
    "no model": in_message(model=None),
    "nothing was asked for": also(requestedModel=None),
    "the same was asked for": also(requestedModel="claude-opus-4-6"),
    "another was asked for": also(requestedModel="opus"),
    "a subagent's": also(isSidechain=True, agentId="a1b2"),
    "with an agent, and no sidechain": also(agentId="a1b2"),
    "no passes": in_usage(iterations=None),
    "none of the passes": in_usage(iterations=[]),
    "nothing cached": in_message(usage={"input_tokens": 7, "output_tokens": 0}),
    "no project": without("cwd", "uuid", "parentUuid", "sessionId"),
    "nulls": also(cwd=None, uuid=None, parentUuid=None, sessionId=None, subtype=None),
    "no compaction": also(isCompactSummary=False, compactMetadata=None),
    "more fields": also(slug="x", effort={"level": ["high"]}, apiBlockIndex=0),
    "a long count": in_usage(cache_read_input_tokens=999_999_999_999_999),
}


@pytest.mark.parametrize("name", PLAIN)
def test_read(name: str) -> None:
    """What is a call and nothing else is read, and read as the parser reads it."""
    made = record()
    PLAIN[name](made)
    (call,) = told(line(made) + b"\n")
    assert isinstance(call, Call), "it was left to the parser"
    assert [call] == fed(line(made))


PASS = {"input_tokens": 1, "output_tokens": 1}
DEEP = json.loads("[" * 65 + "]" * 65)
LEFT: dict[str, Change] = {
    "another version": also(version="2.1.326"),
    "no version": without("version"),
    "a user's": also(type="user"),
    "a summary": also(isCompactSummary=1),
    "a compaction": also(compactMetadata={}),
    "no type": without("type"),
    "no time": without("timestamp"),
    "another time": also(timestamp="2026-11-14T20:33:10Z"),
    "a time with a zone": also(timestamp="2026-11-14T20:33:10.19+01"),
    "no such time": also(timestamp="2026-11-31T20:33:10.190Z"),
    "no message": also(message=None),
    "no id": in_message(id=None),
    "an empty id": in_message(id=""),
    "no usage": in_message(usage=None),
    "no tokens": in_message(usage={"input_tokens": 0, "output_tokens": 0}),
    "less than none": in_usage(output_tokens=-1),
    "half a token": in_usage(output_tokens=1.5),
    "a flag for a count": in_usage(output_tokens=True),
    "a text for a count": in_usage(cache_read_input_tokens="5"),
    "a very long count": in_usage(output_tokens=10**15),
    "several passes": in_usage(iterations=[PASS, PASS]),
    "a pass without a count": in_usage(iterations=[{"input_tokens": 1}]),
    "a pass of another kind": in_usage(iterations=[PASS | {"type": 5}]),
    "a chain in the main file": also(isSidechain=True),
    "a sidechain, perhaps": also(isSidechain=None),
    "a uuid that is none": also(uuid=5),
    "a project beyond ASCII": also(cwd="/home/jos\u00e9"),
    "an id with an escape": in_message(id='a"b'),
    "a model with an empty name": in_message(model=""),
    "something deep": also(deep=DEEP),
    "half a character": also(text="\\ud83d"),
}


@pytest.mark.parametrize("name", LEFT)
def test_left(name: str) -> None:
    """Whatever is in any way different is left to the parser."""
    made = record() | {"picked": {"output_tokens": 1}}
    LEFT[name](made)
    data = line(made).replace(b"\\\\ud83d", b"\\ud83d")
    (run,) = told(data + b"\n")
    assert isinstance(run, tuple), "it was read"
    assert run[:3] == (0, 0, len(data))


def test_the_parser_is_asked() -> None:
    """Before its session is known, or between a boundary and the next call, the parser reads."""
    data = line(record()) + b"\n"
    assert isinstance(told(data, TranscriptParser())[0], tuple)
    after = parser()
    after.feed(line({"type": "system", "subtype": "compact_boundary"}))
    assert isinstance(told(data, after)[0], tuple)
    assert isinstance(told(data, parser(None))[0], tuple)


def test_copies() -> None:
    """Of copies the last is read, if the name that they have in common is its id."""
    one, two = record("m1"), record("m1")
    two["message"]["usage"]["output_tokens"] = 99
    (call,) = told(line(one) + b"\n" + line(two) + b"\n")
    assert isinstance(call, Call)
    assert call.usage.output == 99
    for made in (one, two):
        made["message"] = {"first": {"id": "same"}, **made["message"]}
    first = line(one) + b"\n"
    (run,) = told(first + line(two) + b"\n")
    assert isinstance(run, tuple), "it was read"
    assert run[:3] == (0, len(first), len(first + line(two)))


def test_settings() -> None:
    """Each call has the model, thread and wish of its own line, whatever stands between them."""
    changes: list[Json] = [
        {},
        {"requestedModel": None},
        {"isSidechain": True, "agentId": "a1"},
        {"isSidechain": True, "agentId": "a2"},
        {"type": "user"},
        {"isSidechain": True, "agentId": "a2"},
        {"version": "2.1.326"},
        {},
    ]
    data = b"".join(line(record(f"m{n}") | made) + b"\n" for n, made in enumerate(changes))
    found = [call for call in told(data) if isinstance(call, Call)]
    assert [(call.id, call.thread, call.asked_for) for call in found] == [
        ("m0", MAIN, "claude-opus-4-6[1m]"),
        ("m1", MAIN, None),
        ("m2", "a1", "claude-opus-4-6[1m]"),
        ("m3", "a2", "claude-opus-4-6[1m]"),
        ("m5", "a2", "claude-opus-4-6[1m]"),
        ("m7", MAIN, "claude-opus-4-6[1m]"),
    ]


def test_more_than_there_is_room_for() -> None:
    """Any number of calls is read, each once."""
    count = 2 * BATCH_RUNS + 1
    data = b"".join(line(record(f"m{n}")) + b"\n" for n in range(count))
    found = [call.id for call in told(data) if isinstance(call, Call)]
    assert found == [f"m{n}" for n in range(count)]


moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31))


@given(moments)
@example(datetime(2000, 2, 29, 23, 59, 59, 999_000))
@example(datetime(1970, 1, 1))
def test_times(moment: datetime) -> None:
    """A time is the same number, to the last bit."""
    text = moment.isoformat(timespec="milliseconds") + "Z"
    (call,) = told(line(record() | {"timestamp": text}) + b"\n")
    assert isinstance(call, Call)
    assert call.at == parse_time(text)


PIECES = [
    *(b"", b'"', b"\\", b"\\u12", b"\\n", b"{", b"}", b"[", b"]", b",", b":", b" ", b"0", b"-"),
    *(b"1.", b"1e", b"\0", b"\x1f", b"\x7f", b"\xff", b"\xc3\xa9", b"null", b"tru", b"{}", b"}{"),
    *(b'"id":"x",', b'"type":5,', b'"usage":{},', b'"input_tokens":7,', b'"iterations":[],'),
    b'"uuid":"a\\u0062",',
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A record of any of these kinds, with pieces put in or cut out anywhere."""
    made = record()
    for change in draw(st.lists(st.sampled_from([*PLAIN.values(), *LEFT.values()]), max_size=2)):
        try:
            change(made)
        except (AttributeError, KeyError, TypeError):
            continue  # what it changes is not there any more
    if draw(st.booleans()):
        made = {name: made[name] for name in draw(st.permutations(sorted(made)))}
    data = line(made)
    for _ in range(draw(st.integers(0, 3))):
        at, cut = draw(st.integers(0, len(data))), draw(st.sampled_from([0, 0, 1, 2, 9]))
        data = data[:at] + draw(st.sampled_from(PIECES)) + data[at + cut :]
    return data.replace(b"\n", b"")


@examples(1_500)
@given(mutated())
def test_never_otherwise(data: bytes) -> None:
    """Whatever a line is, it is read as the parser reads it, or left to the parser."""
    for found in told(data + b"\n"):
        if isinstance(found, Call):
            assert fed(data) == [found]
