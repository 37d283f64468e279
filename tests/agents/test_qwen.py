"""Qwen Code: its chats, stream, settings and places."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from brimline.agents.qwen.paths import memory_files, settings, subagent_path, subagent_title
from brimline.agents.qwen.transcript import QwenChatParser
from brimline.agents.qwen.transcript_source import SOURCE, QwenStreamParser
from brimline.agents.transcripts.source import START, Places, Transcript
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacted,
    Rewound,
    SessionSeen,
    Spent,
    Unmetered,
    WindowReported,
)
from brimline.context.tracker import Session, fold
from brimline.context.usage import Usage
from brimline.context.window import ResolveContext, Window, limit_of

TIME = "2026-11-15T03:25:06.382Z"
AT = 1794713106.382

Json = dict[str, object]


def line(record: Json) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def record(kind: str, **more: object) -> Json:
    common = {"sessionId": "s1", "timestamp": TIME, "cwd": "/p", "version": "0.24.4"}
    return {"type": kind, **common, **more}


def system(subtype: str, payload: Json, **more: object) -> Json:
    return record("system", subtype=subtype, systemPayload=payload, **more)


def response(id: str | None, sent: int, output: int = 5, **more: object) -> Json:
    """A call as the client's statistics have it."""
    event: Json = {"event.name": "qwen-code.api_response", "response_id": id, "model": "q"}
    event |= {"input_token_count": sent, "output_token_count": output}
    event |= {"cached_content_token_count": 0, "thoughts_token_count": 0, **more}
    return system("ui_telemetry", {"uiEvent": event}, uuid=f"t{id}")


def reply(uuid: str, sent: int, output: int = 5, **more: object) -> Json:
    counts = {"promptTokenCount": sent, "candidatesTokenCount": output}
    counts |= {"cachedContentTokenCount": 0, "thoughtsTokenCount": 0}
    message = {"role": "model", "parts": [{"text": "Done."}]}
    return record("assistant", uuid=uuid, model="q", message=message, usageMetadata=counts, **more)


def user(uuid: str, parent: str | None = None, text: str = "Go.") -> Json:
    message = {"role": "user", "parts": [{"text": text}]}
    return record("user", uuid=uuid, parentUuid=parent, message=message)


def compression(reason: str = "token_limit") -> Json:
    info = {"originalTokenCount": 999, "newTokenCount": 0, "triggerReason": reason}
    return system("chat_compression", {"info": info, "compressedHistory": []})


def feed(*records: Json, parser: QwenChatParser | None = None) -> list[AnyEvent]:
    parser = parser or QwenChatParser()
    events = [event for one in records for event in parser.feed(line(one)) or ()]
    return [event for event in events if not isinstance(event, SessionSeen)]


def ids(events: Iterable[AnyEvent]) -> list[tuple[str, str | None]]:
    return [(type(e).__name__, e.id) for e in events if isinstance(e, Call | Spent)]


def test_call_has_the_id_of_its_response() -> None:
    """The provider's id, so that telemetry and transcript name one call alike."""
    events = feed(response("r1", 100), reply("u1", 100, contextWindowSize=9_000))
    assert events == [
        WindowReported(tokens=9_000, model="q"),
        Call(at=AT, id="r1", usage=Usage(100, 0, 0, 5, 0), model="q"),
    ]


def test_call_of_a_version_without_responses_has_the_id_of_its_record() -> None:
    assert ids(feed(reply("u1", 100))) == [("Call", "u1")]


def test_cache_and_thoughts_are_parts_of_the_counts() -> None:
    counts = {"promptTokenCount": 100, "candidatesTokenCount": 50}
    counts |= {"cachedContentTokenCount": 60, "thoughtsTokenCount": 20}
    [call] = feed(reply("u1", 0) | {"usageMetadata": counts})
    assert isinstance(call, Call)
    assert call.usage == Usage(40, 60, 0, 50, 20)


def test_responses_without_a_reply_are_spent_and_hold_nothing() -> None:
    """A title, and the two calls of a compression."""
    events = feed(
        response("r1", 100),
        response("title", 7),
        reply("u1", 100),
        response("c1", 200),
        response("c2", 90),
        compression(),
        response("r2", 30),
        reply("u2", 30),
    )
    assert ids(events) == [
        ("Spent", "title"),
        ("Call", "r1"),
        ("Spent", "c1"),
        ("Spent", "c2"),
        ("Call", "r2"),
    ]
    thread = fold(Session(), events).threads[MAIN]
    assert [compaction.before for compaction in thread.compactions] == [105]
    assert thread.total.sent == 100 + 7 + 200 + 90 + 30


def test_subagents_call_is_left_to_its_own_chat(tmp_path: Path) -> None:
    """The subagent that updates the memory has none: its calls were billed, and are in no other."""
    chat = str(tmp_path / "chats/s1.jsonl")
    own = Path(subagent_path(chat, "a"))
    own.parent.mkdir(parents=True)
    own.touch()
    events = feed(
        response("r1", 100, subagent_id="a"),
        response("m1", 7, subagent_id="managed-auto-memory-extractor-1"),
        response("r2", 100),
        reply("u2", 100),
        parser=QwenChatParser(path=chat),
    )
    assert ids(events) == [("Spent", "m1"), ("Call", "r2")]


def test_state_between_two_reads_finds_the_response() -> None:
    """The client writes the response first; a read may end between the two."""
    first = QwenChatParser()
    feed(user("p1", "before"), response("r1", 100), parser=first)
    assert ids(feed(reply("u1", 100), parser=QwenChatParser(first.carry()))) == [("Call", "r1")]


@pytest.mark.parametrize(
    ("reason", "trigger", "overflow"),
    [
        ("token_limit", "auto", False),
        ("image_overflow", "auto", False),
        ("manual", "manual", False),
        ("payload_overflow", "auto", True),
    ],
)
def test_compression_says_why(reason: str, trigger: str, overflow: bool) -> None:
    """Its own counts are estimates, and are not taken."""
    [event] = feed(compression(reason))
    assert isinstance(event, Compacted)
    assert (event.trigger, event.overflow) == (trigger, overflow)
    assert (event.before, event.after) == (None, None)


def test_rewind_goes_back_to_the_call_before_the_prompt() -> None:
    chat = [user("p1"), reply("u1", 10), user("p2", "u1"), reply("u2", 20), user("p3", "u2")]
    back = system("rewind", {}, parentUuid="u1")
    assert feed(*chat, back)[-1] == Rewound(at=AT, to="u1")
    assert feed(*chat, back | {"parentUuid": None})[-1] == Rewound(at=AT, to=None)


def test_reply_without_usage_is_noticed_in_the_main_thread_alone() -> None:
    bare = {k: v for k, v in reply("u1", 1).items() if k != "usageMetadata"}
    assert feed(bare) == [Unmetered(at=AT)]
    assert feed(bare | {"agentId": "a"}) == []
    assert feed(reply("u1", 0, 0)) == []  # an aborted reply


def test_unknown_kinds_are_counted() -> None:
    parser = QwenChatParser()
    assert parser.feed(line(record("new-kind"))) is None
    assert parser.feed(line(record("system", subtype="new-kind"))) is None
    assert parser.feed(line(record("system", subtype="slash_command"))) == ()


def test_title_is_reported_once() -> None:
    titled = system("custom_title", {"customTitle": "A title", "titleSource": "user"})
    parser = QwenChatParser()
    assert parser.feed(line(titled)) == (SessionSeen(title="A title"),)
    assert parser.feed(line(titled)) == ()


def test_subagents_calls_have_the_model_of_the_file_beside(tmp_path: Path) -> None:
    file = Path(subagent_path(str(tmp_path / "chats/s1.jsonl"), "general-1"))
    file.parent.mkdir(parents=True)
    own = {k: v for k, v in reply("u1", 10).items() if k != "model"}
    file.write_bytes(line(own | {"agentId": "general-1"}) + b"\n")
    beside = {"description": "Look", "model": "q2", "status": "completed"}
    file.with_suffix(".meta.json").write_text(json.dumps(beside))
    events = list(SOURCE.read(Transcript("qwen", str(file), 0.0, 0, "s1", "general-1"), START))
    [call] = [event for event in events if isinstance(event, Call)]
    assert (call.model, call.thread, subagent_title(str(file))) == ("q2", "general-1", "Look")
    file.with_suffix(".meta.json").write_text("no json")
    assert subagent_title(str(file)) is None


def test_chats_are_found_where_the_client_puts_them(tmp_path: Path) -> None:
    """Also archived ones; other files of lines are none."""
    folder = tmp_path / "runtime/projects/-p"
    names = ["chats/s1.jsonl", "chats/archive/s2.jsonl", "subagents/s1/agent-a-1.jsonl"]
    for name in (*names, "other.jsonl", "subagents/s1/agent-a-1.jsonl.stream", "chats/notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    home = tmp_path / "home"
    by_variable = Places(home, {"QWEN_RUNTIME_DIR": str(tmp_path / "runtime")})
    (home / ".qwen").mkdir(parents=True)
    settings_file = home / ".qwen/settings.json"
    settings_file.write_text(
        json.dumps({"advanced": {"runtimeOutputDir": str(tmp_path / "runtime")}})
    )
    for places in (by_variable, Places(home, {})):
        found = sorted((t.session, t.thread) for t in SOURCE.transcripts(places))
        assert found == [("s1", "a-1"), ("s1", MAIN), ("s2", MAIN)]
    settings_file.write_text(json.dumps({"advanced": {"runtimeOutputDir": "relative"}}))
    assert list(SOURCE.transcripts(Places(home, {}))) == []


@pytest.mark.parametrize(
    ("window", "fraction", "limit"),
    [
        (1_000_000, None, 850_000),
        (262_144, None, 222_822),
        (131_072, None, 98_072),
        (33_000, None, 28_050),
        (1_000_000, 0.5, 500_000),
        (131_072, 0.9, 98_072),
        (131_072, 0.5, 65_536),
    ],
)
def test_limit_is_a_share_of_the_window_with_room_for_a_summary(
    window: int, fraction: float | None, limit: int, tmp_path: Path
) -> None:
    (tmp_path / ".qwen").mkdir()
    context = {} if fraction is None else {"autoCompactThreshold": fraction}
    text = f"// mine\n{json.dumps({'context': context, 'model': {'name': 'q'}})}"
    (tmp_path / ".qwen/settings.json").write_text(text)
    own = settings(Places(tmp_path, {}))
    known = ResolveContext(agent="qwen", model="q", version="0.24.4", settings=own)
    resolved = limit_of(known, Window(window, "reported", ""))
    assert resolved is not None
    assert (resolved.tokens, resolved.origin) == (limit, "configured" if fraction else "known")


def test_settings_of_the_system_and_the_project_take_precedence(tmp_path: Path) -> None:
    project, system_file = tmp_path / "p", tmp_path / "system.json"
    for file, share in (
        (tmp_path / ".qwen/settings.json", 0.5),
        (project / ".qwen/settings.json", 0.6),
    ):
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"context": {"autoCompactThreshold": share}}))
    places = Places(tmp_path, {"QWEN_CODE_SYSTEM_SETTINGS_PATH": str(system_file)})
    assert settings(places).fraction == 0.5
    assert settings(places, str(project)).fraction == 0.6
    system_file.write_text(json.dumps({"context": {"autoCompactThreshold": 0.7}}))
    assert settings(places, str(project)).fraction == 0.7
    system_file.write_text(json.dumps({"context": {"autoCompactThreshold": 7}}))
    assert settings(places, str(project)).fraction == 0.6


def test_memory_files_are_those_of_the_user_and_above_the_project(tmp_path: Path) -> None:
    project = tmp_path / "above/p"
    files = [tmp_path / ".qwen/QWEN.md", tmp_path / "above/AGENTS.md", project / "QWEN.md"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Be brief.")
    assert {*memory_files(Places(tmp_path, {}), str(project))} == {str(file) for file in files}


def test_stream_has_the_calls_of_the_main_thread() -> None:
    parser = QwenStreamParser()
    init: Json = {"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/p"}
    part: Json = {"id": "m1", "model": "q", "usage": {"input_tokens": 0, "output_tokens": 0}}
    usage = {"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 60}
    lines: list[Json] = [
        init | {"qwen_code_version": "0.24.4"},
        {"type": "assistant", "session_id": "s1", "message": part},
        {"type": "assistant", "session_id": "s1", "message": part | {"id": "m2", "usage": usage}},
        {"type": "result", "session_id": "s1", "usage": usage},
    ]
    events = [event for one in lines for event in parser.feed(line(one)) or ()]
    assert events == [
        SessionSeen(session="s1", agent="qwen", project="/p", version="0.24.4"),
        Call(id="m2", usage=Usage(40, 60, 0, 5, 0), model="q"),
    ]
    assert parser.feed(b'{"type":"new-kind"}') is None


@pytest.mark.parametrize(
    ("first", "form"),
    [
        (user("p1"), "transcript"),
        (reply("u1", 1), "transcript"),
        (system("session_source", {"sourceType": "cli"}), "transcript"),
        ({"type": "system", "subtype": "init", "qwen_code_version": "0.24.4"}, "stream"),
        ({"type": "user", "sessionId": "s", "message": {"role": "user", "content": "x"}}, None),
        ({"type": "assistant", "message": {"role": "model", "parts": []}}, None),
    ],
)
def test_only_marks_of_its_own_are_recognised(first: Json, form: str | None) -> None:
    assert SOURCE.recognise(line(first) + b"\n" + line(first)) == form
