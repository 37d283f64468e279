"""Pi: sessions, `--mode json` and `--mode rpc`, paths and settings."""

import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import source
from brimline.agents.pi.paths import transcripts
from brimline.agents.pi.transcript import PiSessionParser
from brimline.agents.pi.transcript_source import SOURCE, PiStreamParser
from brimline.agents.transcripts.source import Lookalike, Parser, Places, Source, Transcript
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    Rewound,
    SessionSeen,
    Spent,
    Trimmed,
    Unmetered,
    WindowReported,
)
from brimline.context.tracker import Session, fold, read
from brimline.context.usage import Usage
from brimline.context.window import ClientSettings, RegistryModel, shipped_registry
from brimline.errors import InvalidUsage, MalformedJson, UnexpectedJson, UnreadableTranscript
from hypothesis_examples import examples

from .garbage import check_survives, garbage

AT = "2026-11-15T03:18:07.000Z"
SECONDS = 1794712687.0

Json = dict[str, Any]


def header(**fields: Any) -> Json:
    known = {"type": "session", "version": 3, "id": "s1", "timestamp": AT, "cwd": "/home/me/x"}
    return known | fields


def entry(kind: str, name: str, parent: str | None, /, **fields: Any) -> Json:
    return {"type": kind, "id": name, "parentId": parent, "timestamp": AT, **fields}


def tokens(prompt: int, output: int, read: int = 0, written: int = 0, **more: int) -> Json:
    counts = {"input": prompt, "output": output, "cacheRead": read, "cacheWrite": written}
    return counts | {"totalTokens": sum(counts.values()), "cost": {"total": 0.1}} | more


def reply(usage: Json, **fields: Any) -> Json:
    known: Json = {"role": "assistant", "content": [], "model": "m", "timestamp": 1794712687000}
    return known | {"usage": usage} | fields


def reply_entry(name: str, parent: str | None, prompt: int, call: str) -> Json:
    return entry("message", name, parent, message=reply(tokens(prompt, 5), responseId=call))


def user(name: str, parent: str | None) -> Json:
    return entry("message", name, parent, message={"role": "user", "content": "x"})


def feed(parser: Parser, records: list[Json]) -> list[AnyEvent]:
    """Return the events that a parser gives for some records."""
    read_events: list[AnyEvent] = []
    for each in records:
        read_events += parser.feed(msgspec.json.encode(each)) or ()
    return read_events


def events(*records: Json) -> list[AnyEvent]:
    """Return the events that a new parser gives for some records."""
    return feed(PiSessionParser(), list(records))


def calls(parsed_events: list[AnyEvent]) -> list[Call]:
    return [each for each in parsed_events if isinstance(each, Call)]


@pytest.mark.parametrize(
    ("provider", "window"), [("openai-codex", 272_000), ("github-copilot", 1_050_000)]
)
def test_window_is_that_of_the_provider(provider: str, window: int) -> None:
    answer = reply(
        tokens(9_000, 5), model="gpt-5.6-sol", provider=provider, responseId="resp_0123456789"
    )
    printed = feed(PiStreamParser(), [header(), {"type": "message_end", "message": answer}])
    for recorded in (events(header(), entry("message", "a", None, message=answer)), printed):
        session = fold(Session(), recorded)
        reading = read(session, session.threads[MAIN], "transcript")
        assert reading.window is not None
        assert reading.window.tokens == window


FIRST, SECOND, THIRD, FOURTH = (f"msg_000000000{number}" for number in range(4))

SESSION: list[Json] = [
    header(),
    entry("model_change", "a1", None, provider="p", modelId="m"),
    entry("thinking_level_change", "a2", "a1", thinkingLevel="off"),
    user("b1", "a2"),
    reply_entry("b2", "b1", 1_000, FIRST),
    entry("message", "b3", "b2", message={"role": "toolResult", "content": [], "isError": False}),
    reply_entry("b4", "b3", 2_000, SECOND),
    entry("compaction", "c1", "b4", summary="x", tokensBefore=2_005, usage=tokens(2_100, 40)),
    user("c2", "c1"),
    reply_entry("c3", "c2", 300, THIRD),
    entry("branch_summary", "d1", "b2", fromId="c3", summary="x", usage=tokens(50, 6)),
    reply_entry("d2", "d1", 1_100, FOURTH),
    entry("session_info", "d3", "d2", name="A name"),
    user("e1", "c2"),
    entry("tomorrow", "e2", "b3"),
    entry("message", "e3", "e2", message=reply(tokens(7, 1), timestamp=9)),
]


def write(path: Path, records: list[Json]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))
    return path


def transcript(path: Path) -> Transcript:
    return Transcript("pi", str(path), 0, 0)


def test_source_satisfies_the_protocol_and_is_registered() -> None:
    pi: Source = SOURCE
    assert source("pi") is pi
    assert pi.agent == "pi"


def test_only_the_first_header_gives_the_session() -> None:
    seen = SessionSeen(
        at=SECONDS, session="s1", agent="pi", project="/home/me/x", records_compactions=True
    )
    assert events(header(), header()) == [seen]


def test_input_cache_and_output_are_disjoint_and_reasoning_is_output() -> None:
    usage = tokens(4, 18, 2_409, 5_064, reasoning=3, cacheWrite1h=5_000)
    (call,) = calls(events(entry("message", "a", None, message=reply(usage))))
    assert call.usage == Usage(4, 2_409, 5_064, 18, 3, 5_000)
    assert call.usage.held == usage["totalTokens"]
    assert (call.at, call.model, call.final) == (SECONDS, "m", True)


@pytest.mark.parametrize(
    ("lifetimes", "kept_1h"),
    [
        ({"ephemeral1h": 5_000}, 5_000),
        ({"ephemeral5m": 64, "ephemeral1h": 9_000}, 5_064),
        ({"ephemeral5m": 5_064}, 0),
        (None, 0),
    ],
)
def test_cache_writes_by_lifetime_have_those_for_an_hour(
    lifetimes: dict[str, int] | None, kept_1h: int
) -> None:
    """A fork of Pi records them; without their price a session cost a fifth less."""
    message = reply(tokens(4, 18, 2_409, 5_064) | {"cttl": lifetimes})
    (call,) = calls(events(entry("message", "a", None, message=message)))
    assert call.usage.cache_write_1h == kept_1h


@pytest.mark.parametrize(
    ("counts", "reasoning"), [({"reasoningTokens": 2}, 2), ({"reasoning": 6}, None)]
)
def test_reasoning_under_either_name_is_at_most_the_output(
    counts: dict[str, int], reasoning: int | None
) -> None:
    message = reply(tokens(4, 5, **counts))
    (call,) = calls(events(entry("message", "a", None, message=message)))
    assert call.usage.reasoning == reasoning


def test_refused_or_aborted_reply_is_no_call() -> None:
    gone = entry("message", "a", None, message=reply(tokens(0, 0), stopReason="error"))
    none = entry("message", "b", "a", message={"role": "assistant", "content": []})
    assert [type(each) for each in events(gone, none)] == [Unmetered]


def test_response_id_is_the_call_id_unless_too_short() -> None:
    replies = [reply(tokens(4, 5), responseId=name) for name in (FIRST, "chatcmpl-123")]
    read_calls = calls(
        events(*(entry("message", f"{n}", None, message=m) for n, m in enumerate(replies)))
    )
    assert [call.id for call in read_calls] == [FIRST, "chatcmpl-123@1794712687000:4+0+0+5"]


def test_call_without_response_id_has_the_same_id_in_any_file() -> None:
    message = reply(tokens(4, 5))
    first = {"type": "message", "timestamp": AT, "message": message}
    moved = entry("message", "fresh", None, message=message)
    assert calls(events(header(), first)) == calls(events(header(id="s2"), moved))


def test_call_without_response_id_and_time_is_named_by_its_place() -> None:
    message = reply(tokens(4, 5), timestamp=None)
    bare = {"type": "message", "message": message}
    read_calls = calls(events(header(), bare, bare, entry("message", "a", None, message=message)))
    assert [call.id for call in read_calls] == ["s1#0", "s1#1", "s1#a"]


def test_entries_without_ids_are_linear() -> None:
    first, second = ({"type": "message", "message": reply(tokens(n, 5))} for n in (10, 20))
    compaction = {
        "type": "compaction",
        "summary": "x",
        "firstKeptEntryIndex": 3,
        "tokensBefore": 25,
    }
    read_events = events(header(version=None), first, second, compaction)
    assert [type(each) for each in read_events] == [SessionSeen, Call, Call, Compacted]
    assert read_events[-1] == Compacted(before=25)


def test_entry_with_an_earlier_parent_rewinds_to_its_branch() -> None:
    read_events = events(*SESSION)
    back = [each for each in read_events if isinstance(each, Rewound)]
    assert [each.to for each in back] == [FIRST, SECOND, FIRST]
    assert [call.usage.sent for call in calls(read_events)] == [1_000, 2_000, 300, 1_100, 7]


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=20))
def test_last_event_is_the_nearest_call_above_the_last_entry(shape: list[tuple[int, bool]]) -> None:
    above: dict[str | None, str | None] = {None: None}
    records: list[Json] = []
    for number, (place, is_call) in enumerate(shape):
        name, parent = f"e{number}", list(above)[place % len(above)]
        call = f"msg_{number:010}"
        records.append(reply_entry(name, parent, 10, call) if is_call else user(name, parent))
        above[name] = call if is_call else above[parent]
    last_call: str | None = None
    for each in events(*records):
        last_call = (
            each.id
            if isinstance(each, Call)
            else each.to
            if isinstance(each, Rewound)
            else last_call
        )
    assert last_call == above[f"e{len(shape) - 1}"]


def spending(entry: str, usage: Usage, model: str = "m") -> Spent:
    """The event of an entry with usage beside the calls; it has the same id in a fork."""
    return Spent(at=SECONDS, usage=usage, model=model, id=f"{entry}@{SECONDS}", cost=0.1)


@pytest.mark.parametrize(
    ("cost", "dollars"),
    [({"input": 0.1, "total": 0.3}, 0.3), ({"total": 0}, None), ({}, None), (None, None)],
)
def test_call_has_the_cost_that_pi_computed(cost: object, dollars: float | None) -> None:
    """Pi writes 0 for a model without a price."""
    message = reply(tokens(4, 18) | {"cost": cost}, responseId=FIRST)
    (call,) = calls(events(entry("message", "a", None, message=message)))
    assert call.cost == dollars
    (streamed,) = feed(SOURCE.stream(), [{"type": "message_end", "message": message}])
    assert isinstance(streamed, Call)
    assert streamed.cost == dollars


def test_rewind_comes_before_the_events_of_its_entry() -> None:
    read_events = events(*SESSION[:11])
    assert read_events[-2:] == [
        Rewound(at=SECONDS, to=FIRST),
        spending("d1", Usage(50, 0, 0, 6)),
    ]


def test_rewind_behind_a_compaction_is_unknown() -> None:
    read_events = events(*SESSION[:14])
    assert read_events[-2:] == [Rewound(at=SECONDS, to=SECOND), Trimmed(at=SECONDS)]


def test_unknown_entries_are_part_of_the_tree() -> None:
    """An unknown entry is None unless it rewinds."""
    parser = PiSessionParser()
    feed(parser, SESSION[:5])
    assert parser.feed(msgspec.json.encode(entry("tomorrow", "x", "b2"))) is None
    assert parser.feed(msgspec.json.encode(entry("tomorrow", "y", None))) == (
        Rewound(at=SECONDS, to=None),
    )
    assert parser.feed(msgspec.json.encode(user("z", "y"))) == ()


def test_unknown_parent_is_malformed() -> None:
    assert events(*SESSION[:5], user("z", "lost"))[-1] == events(*SESSION[:5])[-1]


def test_compaction_has_before_and_the_cost_of_its_summary() -> None:
    assert events(*SESSION[:8])[-2:] == [
        spending("c1", Usage(2_100, 0, 0, 40)),
        Compacted(at=SECONDS, before=2_005),
    ]


def test_cache_refresh_is_spent_and_no_call() -> None:
    warm = entry("usage", "a", None, kind="cache_warm", model="n", usage=tokens(0, 0, 50_000))
    assert events(warm) == [spending("a", Usage(0, 50_000, 0, 0), "n")]
    assert events(entry("usage", "a", None, usage=tokens(0, 0))) == []


def test_removed_context_is_trimmed_unless_it_was_a_failed_reply() -> None:
    failed = entry("message", "x", "b2", message=reply(tokens(0, 0)))
    edit = entry("context_edit", "y", "x", targetId="x", replacement=None)
    other = entry("context_edit", "z", "y", targetId="b1", replacement=None)
    assert events(*SESSION[:5], failed, edit) == events(*SESSION[:5])
    assert events(*SESSION[:5], failed, edit, other)[-1] == Trimmed(at=SECONDS)


def test_session_name_is_the_title_unless_empty() -> None:
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
    parser = PiSessionParser()
    feed(parser, SESSION[:5])
    before = parser.carry()
    with pytest.raises((MalformedJson, InvalidUsage)):
        parser.feed(msgspec.json.encode(bad))
    assert parser.carry() == before


def test_reading_by_a_cursor_gives_the_same_events(tmp_path: Path) -> None:
    whole = list(SOURCE.read(transcript(write(tmp_path / "whole.jsonl", SESSION))))
    for split in range(len(SESSION) + 1):
        path = write(tmp_path / "part.jsonl", SESSION[:split])
        first = SOURCE.read(transcript(path))
        read_events = list(first)
        write(path, SESSION)
        read_events += SOURCE.read(transcript(path), first.cursor)
        assert read_events == whole


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTranscript):
        SOURCE.read(transcript(tmp_path / "gone.jsonl"))


def test_session_can_be_read_from_an_open_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", SESSION)
    with path.open("rb") as file:
        assert list(SOURCE.parse(file)) == events(*SESSION)


@pytest.mark.parametrize(
    ("env", "settings_text", "folder"),
    [
        ({}, {}, ".pi/agent/sessions/--home-me-x--"),
        ({"PI_CODING_AGENT_DIR": "~/other"}, {}, "other/sessions/--home-me-x--"),
        ({"PI_CODING_AGENT_SESSION_DIR": "~/flat"}, {}, "flat"),
        ({}, {"sessionDir": "~"}, ".pi/agent/sessions/deep"),
        ({}, {"sessionDir": "~/.pi/agent/sessions/deep"}, ".pi/agent/sessions/deep"),
        ({}, {"sessionDir": "{home}/flat"}, "flat"),
    ],
)
def test_sessions_are_listed_where_variables_and_settings_say(
    tmp_path: Path, env: dict[str, str], settings_text: dict[str, str], folder: str
) -> None:
    if settings_text:
        named = {key: value.format(home=tmp_path) for key, value in settings_text.items()}
        write(tmp_path / ".pi/agent/settings.json", [named])
    path = write(tmp_path / folder / "2026-11-15T03-20-25-211Z_s_1.jsonl", SESSION)
    (tmp_path / folder / "x.jsonl").mkdir()
    (tmp_path / folder / "y.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / folder / "notes.txt").write_text("x")
    (listed,) = transcripts(Places(home=tmp_path, env=env))
    assert (listed.path, listed.session, listed.size) == (str(path), "s_1", path.stat().st_size)


def test_transcript_with_another_name_has_the_session_of_its_content(tmp_path: Path) -> None:
    write(tmp_path / ".pi/agent/sessions/mine.jsonl", SESSION)
    assert [each.session for each in transcripts(Places(home=tmp_path, env={}))] == [None]


V1_HEADER = header(version=None, provider="anthropic", modelId="claude-sonnet-4-5")


def encode_lines(*records: Json) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in records)


V1_USER: Json = {"type": "message", "timestamp": AT, "message": {"role": "user", "content": "x"}}
V1_REPLY: Json = {"type": "message", "timestamp": AT, "message": reply(tokens(5, 1))}
V1_CHANGE: Json = {"type": "model_change", "timestamp": AT, "provider": "p", "modelId": "m"}


@pytest.mark.parametrize(
    "records",
    [
        # as its first releases wrote it, then without the system prompt, then with the model apart
        [header(version=None, systemPrompt="x", model="p/m", thinkingLevel="off"), V1_USER],
        [header(version=None, provider="p", modelId="m", thinkingLevel="off"), V1_USER],
        [header(version=None), V1_CHANGE, V1_USER],
        [header(version=None, branchedFrom="/x.jsonl"), V1_USER, V1_REPLY],
    ],
)
def test_session_of_the_first_version_is_recognised(records: list[Json]) -> None:
    assert SOURCE.recognise(encode_lines(*records)) == "transcript"
    spaced = "".join(json.dumps(each, sort_keys=True) + "\n" for each in records)
    assert SOURCE.recognise(spaced.encode()) == "transcript"


RPC_REPLY: Json = {"id": 1, "type": "response", "command": "prompt", "success": True}


@pytest.mark.parametrize(
    ("records", "form"),
    [
        ([RPC_REPLY], "stream"),
        ([{"type": "extension_ui_request", "id": "u"}, RPC_REPLY], "stream"),
        ([{"type": "agent_start"}, {"type": "turn_start"}], None),
        ([{"type": "agent_start"}, {"type": "message_end", "message": V1_REPLY["message"]}],
         "stream"),
        ([RPC_REPLY | {"request_seq": 1}], None),  # of a debug adapter
        ([{"type": "response", "id": "r1"}], None),
    ],
)  # fmt: skip
def test_rpc_output_is_recognised_without_a_header(records: list[Json], form: str | None) -> None:
    assert SOURCE.recognise(encode_lines(*records)) == form


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (b"", None),
        (msgspec.json.encode(header()), "stream"),
        (msgspec.json.encode(header()) + b'\n{"type":"agent_start"}\n', "stream"),
        (msgspec.json.encode(header()) + b'\n{"type":"message","id":"x', "transcript"),
        (msgspec.json.encode(header()) + b"\nbroken", "transcript"),
        (b'{"type":"title","v":1}\n' + msgspec.json.encode(header()) + b"\n{}", "transcript"),
        (msgspec.json.encode(V1_HEADER) + b'\n{"type":"message"}', "transcript"),
        (b'{"type":"session","id":"x"}\n{"type":"agent_start"}\n', None),
        (b'{"type":"session","id":5,"cwd":"/"}\n', None),
        (b'{"type":"thread.started","thread_id":"x"}\n', None),
        (b'{"timestamp":"2026","type":"session_meta","payload":{}}\n', None),
        (b'{"type":"summary","summary":"x","leafUuid":"y"}\n', None),
    ],
)
def test_second_line_separates_a_session_from_a_stream(head: bytes, form: str | None) -> None:
    assert SOURCE.recognise(head) == form


@pytest.mark.parametrize("version", [0, None])
def test_header_of_another_version_is_only_alike(version: int | None) -> None:
    """Pi counts its versions from 1; before, it had no number but named the model."""
    match = SOURCE.recognise(msgspec.json.encode(header(version=version)) + b'\n{"type":"user"}')
    assert isinstance(match, Lookalike)
    assert (match.form, match.is_foreign) == ("transcript", False)
    no_version = "its header has no version, and no line names a model"
    assert match.doubt == (no_version if version is None else "its header has version 0")


def read_settings(tmp_path: Path, **files: str) -> ClientSettings:
    """Return the settings of these user and project files."""
    project = tmp_path / "project"
    for name, text in files.items():
        folder = project / ".pi" if name == "project" else tmp_path / ".pi/agent"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{'settings' if name == 'project' else name}.json").write_text(text)
    where = str(project) if "project" in files else None
    return SOURCE.settings(Places(home=tmp_path, env={}), where)


def test_compaction_windows_and_outputs_come_from_the_files(tmp_path: Path) -> None:
    models = """\ufeff{"providers": {"p": { // mine
        "baseUrl": "http://127.0.0.1/v1",
        "models": [{"id": "m", "contextWindow": 200000, "maxTokens": 8192,}, {"id": "n"}],
        "modelOverrides": {"o": {"contextWindow": 1000}}}}}"""
    compaction = '{"compaction": {"enabled": false, "reserveTokens": 9000}}'
    client_settings = read_settings(tmp_path, settings=compaction, models=models)
    assert (client_settings.auto_compact, client_settings.reserve) == (False, 9_000)
    assert (client_settings.windows, client_settings.max_outputs) == (
        {"p/m": 200_000, "p/n": 128_000, "p/o": 1_000},
        {"p/m": 8_192, "p/n": 16_384},
    )


def test_project_settings_override_single_user_values(tmp_path: Path) -> None:
    client_settings = read_settings(
        tmp_path,
        settings='{"compaction": {"enabled": false, "reserveTokens": 9000}}',
        project='{"compaction": {"enabled": true}}',
    )
    assert (client_settings.auto_compact, client_settings.reserve) == (True, 9_000)
    (tmp_path / "project/.pi/settings.json").write_text('{"compaction": {"reserveTokens": 0}}')
    client_settings = SOURCE.settings(Places(home=tmp_path, env={}), str(tmp_path / "project"))
    assert (client_settings.auto_compact, client_settings.reserve) == (False, 0)


@pytest.mark.parametrize("text", ["{", '{"compaction": 5, "providers": 5}', "\0"])
def test_malformed_settings_are_ignored(tmp_path: Path, text: str) -> None:
    client_settings = read_settings(tmp_path, settings=text, models=text)
    assert (client_settings.auto_compact, client_settings.reserve, client_settings.windows) == (
        None,
        None,
        {},
    )


def test_refreshed_registry_is_read_by_provider(tmp_path: Path) -> None:
    """Only providers that are newer than the client's own table count, as for the client."""
    shipped = shipped_registry("pi")
    assert shipped is not None
    assert shipped.made_at is not None
    newer, older = (shipped.made_at + 1) * 1000, shipped.made_at * 1000
    models = [{"id": "new", "contextWindow": 4_000, "maxTokens": 50}, {"id": "unsized"}]
    store = {
        "p": {"models": models, "lastModified": newer, "checkedAt": newer},
        "old": {"models": models, "lastModified": older},
        "undated": {"models": models},
    }
    registry = read_settings(tmp_path, **{"models-store": json.dumps(store)}).registry
    assert registry is not None
    assert registry.models == {"p": {"new": RegistryModel(4_000, 50)}}
    assert re.fullmatch(r"refreshed \d{4}-\d\d-\d\d", registry.made_from)


def test_refreshed_registry_is_read_again_when_it_changes(tmp_path: Path) -> None:
    def size(tokens: int) -> int:
        row = {"id": "m", "contextWindow": tokens}
        text = json.dumps({"p": {"models": [row], "lastModified": 9e15}})
        registry = read_settings(tmp_path, **{"models-store": text}).registry
        assert registry is not None
        return registry.models["p"]["m"].window

    assert (size(7), size(800)) == (7, 800)


@pytest.mark.parametrize("text", ["{", "[]", '{"p": 5}', "\0"])
def test_malformed_registry_is_ignored(tmp_path: Path, text: str) -> None:
    assert read_settings(tmp_path, **{"models-store": text}).registry is None


def test_registry_that_is_no_file_blocks_nothing(tmp_path: Path) -> None:
    (tmp_path / ".pi/agent").mkdir(parents=True)
    os.mkfifo(tmp_path / ".pi/agent/models-store.json")
    assert SOURCE.settings(Places(tmp_path, {})).registry is None
    assert SOURCE.settings(Places(tmp_path, {"PI_CODING_AGENT_DIR": "a\0b"})).registry is None


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


def test_call_repeated_by_turn_end_and_agent_end_counts_once() -> None:
    read_calls = calls(feed(SOURCE.stream(), STREAM))
    assert [(call.id, call.usage.output) for call in read_calls if call.final] == [
        (FIRST, 5),
        (SECOND, 6),
    ]


def test_call_has_the_same_id_in_stream_and_session() -> None:
    for message in (reply(tokens(4, 5)), reply(tokens(4, 5), responseId=FIRST)):
        read_events = calls(feed(SOURCE.stream(), [{"type": "message_end", "message": message}]))
        stored_calls = calls(events(entry("message", "a", None, message=message)))
        assert [call.id for call in read_events] == [call.id for call in stored_calls]


def test_growing_reply_is_reported_when_its_usage_changes() -> None:
    read_calls = calls(feed(SOURCE.stream(), STREAM))
    assert [(call.id, call.usage.output) for call in read_calls if not call.final] == [
        (SECOND, 1),
        (SECOND, 3),
    ]


def test_older_stream_repeats_the_whole_message() -> None:
    growing = {"type": "message_update", "message": reply(tokens(20, 3), responseId=FIRST)}
    (call,) = calls(feed(SOURCE.stream(), [growing, growing]))
    assert (call.id, call.usage.output, call.final) == (FIRST, 3, False)


def test_reply_without_an_id_is_reported_only_when_whole() -> None:
    start = {"type": "message_start", "message": reply(tokens(20, 1), responseId="chatcmpl-123")}
    assert feed(SOURCE.stream(), [start, STREAM[9]]) == []


def test_streamed_reply_without_usage_is_no_call() -> None:
    none = {"type": "message_end", "message": {"role": "assistant", "responseId": FIRST}}
    assert feed(SOURCE.stream(), [none]) == []


def test_streamed_compaction_has_start_cost_before_and_after() -> None:
    assert feed(SOURCE.stream(), STREAM[-3:-1]) == [
        Compacting(trigger="auto"),
        Spent(usage=Usage(30, 0, 0, 4), cost=0.1),
        Compacted(trigger="auto", before=26, after=9),
    ]


def test_stream_compaction_after_an_overflow_says_so() -> None:
    ended = {"type": "compaction_end", "reason": "overflow", "result": {"tokensBefore": 26}}
    assert feed(SOURCE.stream(), [ended]) == [Compacted(trigger="auto", before=26, overflow=True)]


def test_streamed_compaction_of_the_user_is_manual() -> None:
    ended = {"type": "compaction_end", "reason": "manual", "result": {"tokensBefore": 26}}
    assert feed(SOURCE.stream(), [ended]) == [Compacted(trigger="manual", before=26)]
    assert feed(SOURCE.stream(), [{"type": "compaction_start"}]) == [Compacting()]


def test_streamed_compaction_without_a_result_did_not_happen() -> None:
    assert feed(SOURCE.stream(), [{"type": "compaction_end", "reason": "manual"}]) == []


def test_stream_gives_session_and_title() -> None:
    read_events = feed(SOURCE.stream(), [*STREAM, {"type": "session_info_changed"}])
    seen = [each for each in read_events if isinstance(each, SessionSeen)]
    assert [(each.session, each.project, each.title) for each in seen] == [
        ("s1", "/home/me/x", None),
        (None, None, "A name"),
    ]


def respond(command: str, **fields: Any) -> Json:
    return {"type": "response", "command": command, "success": True, **fields}


def test_rpc_state_gives_session_title_and_window() -> None:
    model = {"id": "m", "provider": "p", "contextWindow": 200_000}
    state = {"sessionId": "s1", "sessionName": "A name", "model": model}
    seen = SessionSeen(session="s1", agent="pi", title="A name", records_compactions=True)
    window = WindowReported(tokens=200_000, model="m")
    assert feed(SOURCE.stream(), [respond("get_state", data=state)]) == [seen, window]
    assert feed(SOURCE.stream(), [respond("get_state", data=state | {"model": None})]) == [seen]
    refused = {"type": "response", "command": "get_state", "success": False, "error": "x"}
    assert feed(SOURCE.stream(), [refused]) == []


def test_rpc_command_that_leaves_the_session_clears_the_context() -> None:
    done, cancelled = {"cancelled": False}, {"cancelled": True}
    commands = ("new_session", "switch_session", "fork")
    assert [feed(SOURCE.stream(), [respond(each, data=done)]) for each in commands] == [
        [Cleared()],
        [Cleared()],
        [Trimmed()],
    ]
    assert feed(SOURCE.stream(), [respond("new_session")]) == [Cleared()]
    assert feed(SOURCE.stream(), [respond(each, data=cancelled) for each in commands]) == []
    assert feed(SOURCE.stream(), [respond("get_messages", data={"messages": []})]) == []


def test_compaction_has_another_name_in_older_streams() -> None:
    older = [each | {"type": f"auto_{each['type']}"} for each in STREAM[-3:-1]]
    assert feed(SOURCE.stream(), older) == feed(SOURCE.stream(), STREAM[-3:-1])


def test_unknown_line_is_none_and_wrong_values_raise() -> None:
    assert SOURCE.stream().feed(b'{"type":"tomorrow"}') is None
    with pytest.raises(UnexpectedJson):
        SOURCE.stream().feed(b'{"type":"compaction_end","result":5}')


@examples(300)
@given(st.lists(garbage(records=SESSION), max_size=6), st.integers(0, len(SESSION)))
def test_garbage_in_a_session_raises_only_declared_errors(inputs: list[bytes], ready: int) -> None:
    parser = PiSessionParser()
    feed(parser, SESSION[:ready])
    check_survives(parser, SOURCE, inputs)
    PiSessionParser(parser.carry())


@examples(300)
@given(st.lists(garbage(records=STREAM), max_size=6))
def test_garbage_in_a_stream_raises_only_declared_errors(inputs: list[bytes]) -> None:
    check_survives(SOURCE.stream(), SOURCE, inputs)


def test_time_of_hundreds_of_digits_is_malformed() -> None:
    """Without an id of the provider, the time is a part of the call's."""
    line = json.dumps({"type": "message_end", "message": reply(tokens(9, 5), timestamp=10**400)})
    with pytest.raises((MalformedJson, UnexpectedJson)):
        SOURCE.stream().feed(line.encode())
