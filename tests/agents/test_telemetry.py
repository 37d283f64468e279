"""Log records and spans of clients: the calls in them, and nothing else."""

from typing import Any

import pytest

from brimline.agents import telemetry_readers
from brimline.agents.telemetry import (
    GEN_AI,
    Attributes,
    LogRecord,
    SpanEvent,
    SpanRecord,
    TelemetryEvent,
)
from brimline.context.events import AnyEvent, Call, Compacted, Spent, WindowReported
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage

READERS = dict(telemetry_readers())

CLAUDE: dict[str, Any] = {
    "event.name": "api_request",
    "session.id": "s1",
    "request_id": "req_1",
    "model": "claude-opus-5",
    "input_tokens": 4,
    "cache_read_tokens": 100,
    "cache_creation_tokens": 20,
    "cache_creation_1h_tokens": 5,
    "output_tokens": 7,
    "query_source": "sdk",
}
COMPACTION_OF_CLAUDE: dict[str, Any] = {
    "event.name": "compaction",
    "session.id": "s1",
    "event.timestamp": "t",
    "trigger": "auto",
    "success": "true",
    "pre_tokens": "121681",
}
CODEX: dict[str, Any] = {
    "event.name": "codex.sse_event",
    "event.kind": "response.completed",
    "event.timestamp": "2026-11-17T08:28:21.830Z",
    "conversation.id": "s1",
    "model": "gpt-5.5",
    "input_token_count": "100",
    "cached_token_count": "60",
    "output_token_count": "9",
    "reasoning_token_count": "3",
}
GEMINI: dict[str, Any] = {
    "event.name": "gemini_cli.api_response",
    "event.timestamp": "2026-11-17T08:29:19.036Z",
    "session.id": "s1",
    "model": "gemini-3.8-flash",
    "input_token_count": 100,
    "cached_content_token_count": 60,
    "output_token_count": 9,
    "thoughts_token_count": 3,
    "role": "main",
}
QWEN: dict[str, Any] = {
    "event.name": "qwen-code.api_response",
    "event.timestamp": "2026-11-17T10:29:07.008Z",
    "session.id": "s1",
    "response_id": "chatcmpl-2",
    "model": "qwen3-coder-plus",
    "input_token_count": 100,
    "cached_content_token_count": 60,
    "output_token_count": 9,
    "thoughts_token_count": 3,
}
COPILOT: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.conversation.id": "s1",
    "gen_ai.response.id": "msg_1",
    "gen_ai.response.model": "claude-sonnet-4.5",
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.cache_read.input_tokens": 60,
    "gen_ai.usage.cache_write.input_tokens": 30,
    "gen_ai.usage.output_tokens": 9,
    "github.copilot.initiator": "agent",
}
TURN = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 300}


def read(agent: str, fields: Attributes) -> list[TelemetryEvent]:
    return [*READERS[agent].read_log(LogRecord(fields, 5.0))]


def event_of(agent: str, fields: Attributes) -> AnyEvent:
    (found,) = read(agent, fields)
    assert found.session == "s1"
    return found.event


def read_copilot(fields: Attributes, *events: SpanEvent, parent: str = "") -> list[AnyEvent]:
    span = SpanRecord("span", parent, fields, 5.0, events)
    return [each.event for each in READERS["copilot"].read_span(span)]


def read_program(**changes: Any) -> list[AnyEvent]:
    """A span of a program: names have `__` in place of their dots, None removes an attribute."""
    fields = {**COPILOT, **{name.replace("__", "."): value for name, value in changes.items()}}
    kept = {name: value for name, value in fields.items() if value is not None}
    return [each.event for each in GEN_AI.read_span(SpanRecord("span", "", kept, 5.0))]


def test_api_request_of_claude_code_is_a_call() -> None:
    usage = Usage(4, 100, 20, 7, cache_write_1h=5)
    expected = Call(at=5.0, id="req_1", usage=usage, model="claude-opus-5")
    assert event_of("claude", CLAUDE) == expected


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({"query_source": "repl_main_thread:outputStyle:custom"}, "main"),
        ({"query_source": "agent:builtin:general-purpose", "agent_id": "a1"}, "a1"),
        ({"query_source": "agent:custom"}, "agent:custom"),
        ({"query_source": "compact"}, "compaction"),
    ],
)
def test_query_source_of_claude_code_names_the_thread(fields: dict[str, Any], thread: str) -> None:
    event = event_of("claude", CLAUDE | fields)
    assert isinstance(event, Call)
    assert event.thread == thread


def test_call_outside_the_threads_only_costs_tokens() -> None:
    event = event_of("claude", CLAUDE | {"query_source": "generate_session_title"})
    assert isinstance(event, Spent)
    assert event.usage.sent == 124
    assert isinstance(event_of("gemini", GEMINI | {"role": "utility_router"}), Spent)


def test_compaction_of_claude_code_counts_if_it_succeeded() -> None:
    expected = Compacted(at=5.0, trigger="auto", before=121_681)
    assert event_of("claude", COMPACTION_OF_CLAUDE) == expected
    assert read("claude", COMPACTION_OF_CLAUDE | {"success": "false"}) == []


def test_call_of_codex_has_its_counts_as_text() -> None:
    event = event_of("codex", CODEX)
    assert isinstance(event, Call)
    assert event.usage == Usage(40, 60, 0, 9, 3)


def test_thoughts_of_gemini_are_output() -> None:
    event = event_of("gemini", GEMINI)
    assert isinstance(event, Call)
    assert event.usage == Usage(40, 60, 0, 12, 3)


@pytest.mark.parametrize(
    ("agent", "fields"),
    [
        ("claude", CLAUDE | {"event.name": "tool_result"}),
        ("codex", CODEX | {"event.kind": "response.created"}),
        ("codex", CODEX | {"event.name": "codex.api_request"}),
        ("codex", {name: CODEX[name] for name in CODEX if not name.endswith("token_count")}),
        ("qwen", QWEN | {"event.name": "qwen-code.api_request"}),
        ("gemini", GEMINI | {"event.name": "gemini_cli.api_request"}),
    ],
)
def test_other_records_are_no_calls(agent: str, fields: dict[str, Any]) -> None:
    assert read(agent, fields) == []


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


@pytest.mark.parametrize(
    ("agent", "fields", "missing"),
    [
        ("claude", without(CLAUDE, "session.id"), "session.id"),
        ("claude", without(CLAUDE, "request_id"), "event.timestamp"),
        ("claude", COMPACTION_OF_CLAUDE | {"session.id": ""}, "session.id"),
        ("claude", without(COMPACTION_OF_CLAUDE, "event.timestamp"), "event.timestamp"),
        ("codex", without(CODEX, "conversation.id"), "conversation.id"),
        ("codex", without(CODEX, "event.timestamp"), "event.timestamp"),
        ("gemini", without(GEMINI, "session.id"), "session.id"),
        ("gemini", without(GEMINI, "event.timestamp"), "event.timestamp"),
        ("qwen", without(QWEN, "session.id"), "session.id"),
        ("qwen", without(QWEN, "event.timestamp", "response_id"), "event.timestamp"),
    ],
)
def test_call_that_cannot_be_identified_is_refused(
    agent: str, fields: dict[str, Any], missing: str
) -> None:
    """It was dropped, and its sender got no answer about it."""
    with pytest.raises(InvalidUsage, match=f"'{missing}' must be an? .*: it is missing"):
        READERS[agent].read_log(LogRecord(fields))


def test_call_of_claude_code_without_a_request_id_is_known_by_its_time_and_tokens() -> None:
    """A gateway may leave the id out; the same record, sent again, is the same call."""
    fields = without(CLAUDE, "request_id") | {"event.timestamp": "2026-11-17T08:28:21.830Z"}
    others = (
        {"event.timestamp": "2026-11-17T08:28:21.831Z"},
        {"event.sequence": 7},
        {"agent_id": "a2"},
        {"input_tokens": 5},
        {"output_tokens": 8},
    )
    records = [fields, fields, *(fields | each for each in others)]
    ids = [READERS["claude"].read_log(LogRecord(each))[0].id for each in records]
    assert ids[0] == ids[1]
    assert len({*ids}) == 1 + len(others)


@pytest.mark.parametrize("value", ["many", "", -1, 1.5, True, float("nan"), "9" * 5_000])
def test_count_that_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InvalidUsage):
        read("claude", CLAUDE | {"input_tokens": value})


def test_client_is_known_by_its_service_name() -> None:
    names = {
        service: [name for name, reader in READERS.items() if reader.is_own(service, "")]
        for service in (
            "claude-code",
            "codex_cli_rs",
            "gemini-cli",
            "github-copilot",
            "qwen-code",
            "my-agent",
            "",
        )
    }
    assert names == {
        "claude-code": ["claude"],
        "codex_cli_rs": ["codex"],
        "gemini-cli": ["gemini"],
        "github-copilot": ["copilot"],
        "qwen-code": ["qwen"],
        "my-agent": [],
        "": [],
    }


def test_thoughts_of_qwen_are_a_part_of_its_output() -> None:
    event = event_of("qwen", QWEN)
    assert event == Call(
        at=5.0, id="chatcmpl-2", usage=Usage(40, 60, 0, 9, 3), model="qwen3-coder-plus"
    )
    subagent = event_of("qwen", QWEN | {"subagent_name": "general-purpose"})
    assert isinstance(subagent, Call)
    assert subagent.thread == "general-purpose"


@pytest.mark.parametrize(("agent", "record"), [("qwen", QWEN), ("gemini", GEMINI)])
def test_compression_is_a_compaction(agent: str, record: dict[str, Any]) -> None:
    name = record["event.name"].replace("api_response", "chat_compression")
    fields = record | {"event.name": name, "tokens_before": 900, "tokens_after": 0}
    assert event_of(agent, fields) == Compacted(at=5.0, before=900)


def test_compression_that_gemini_drops_is_none() -> None:
    fields = GEMINI | {"event.name": "gemini_cli.chat_compression"}
    assert read("gemini", fields | {"tokens_before": 900, "tokens_after": 901}) == []


def test_window_of_qwen_is_in_its_spans() -> None:
    fields = {"session.id": "s1", "gen_ai.request.model": "q"}
    usage = '{"version":1,"window_size_tokens":1000000,"breakdown":{}}'
    for text, windows in ((usage, [1_000_000]), ("{", []), ('{"window_size_tokens":-1}', [])):
        span = SpanRecord("span", "", {**fields, "qwen-code.context.usage": text})
        events = [each.event for each in READERS["qwen"].read_span(span)]
        assert events == [WindowReported(tokens=each, model="q") for each in windows]


def test_call_of_copilot_includes_the_cache() -> None:
    (call,) = read_copilot(COPILOT)
    usage = Usage(10, 60, 30, 9)
    model = "claude-sonnet-4.5"
    assert call == Call(at=5.0, id="msg_1", usage=usage, model=model, is_compacted=False)


def test_subagent_of_copilot_is_named_by_the_span_around_its_calls() -> None:
    fields = COPILOT | {"github.copilot.initiator": "sub-agent"}
    (call,) = read_copilot(fields, parent="task")
    assert isinstance(call, Call)
    assert call.thread == "task"


def test_turn_of_copilot_has_its_window_and_compactions() -> None:
    """Its own usage is the sum of its calls, which count by themselves."""
    start = "github.copilot.session."
    events = [
        SpanEvent(f"{start}usage_info", {"github.copilot.token_limit": 128_000}, 2.0),
        SpanEvent(f"{start}compaction_start", {}, 2.0),
        SpanEvent(f"{start}compaction_complete", {"github.copilot.success": True}, 3.0),
        SpanEvent(f"{start}compaction_complete", {"github.copilot.success": False}, 4.0),
        SpanEvent(f"{start}usage_info", {"github.copilot.token_limit": 168_000}, 4.0),
    ]
    turn = TURN | {"gen_ai.conversation.id": "s1"}
    window, compaction = WindowReported(tokens=168_000), Compacted(at=3.0, is_late=True)
    assert read_copilot(turn, *events) == [window, compaction]
    assert read_copilot(TURN, *events) == []
    nested = [getattr(each, "thread", None) for each in read_copilot(turn, *events, parent="main")]
    assert nested == ["span", "span"]


@pytest.mark.parametrize("spelling", ["cache_creation", "cache_write"])
def test_both_spellings_of_cache_writes_are_read(spelling: str) -> None:
    names: dict[str, Any] = {"gen_ai__usage__cache_write__input_tokens": None}
    names[f"gen_ai__usage__{spelling}__input_tokens"] = 25
    (call,) = read_program(**names)
    assert isinstance(call, Call)
    assert call.usage == Usage(15, 60, 25, 9)


def test_input_without_the_cache_is_added_up() -> None:
    """Some instrumentations of Anthropic's SDK hand on its own counts."""
    (call,) = read_program(gen_ai__usage__input_tokens=4)
    assert isinstance(call, Call)
    assert call.usage == Usage(4, 60, 30, 9)


@pytest.mark.parametrize("operation", ["invoke_agent", "execute_tool", "embeddings", None])
def test_other_spans_of_a_program_are_no_calls(operation: str | None) -> None:
    assert read_program(gen_ai__operation__name=operation) == []


def test_span_without_an_answer_is_its_own_call() -> None:
    (call,) = read_program(gen_ai__response__id=None, gen_ai__conversation__compacted=True)
    assert isinstance(call, Call)
    assert (call.id, call.is_compacted) == ("span", True)


@pytest.mark.parametrize(
    "changes",
    [
        {"gen_ai__conversation__id": None},
        {"gen_ai__usage__output_tokens": None},
        {"gen_ai__usage__input_tokens": -1},
        {"gen_ai__usage__input_tokens": float("nan")},
        {"gen_ai__usage__input_tokens": "100"},
        {"gen_ai__usage__output_tokens": 1 << 70},
    ],
)
def test_call_that_cannot_be_used_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidUsage):
        read_program(**changes)


@pytest.mark.parametrize(
    ("scope", "agent"),
    [
        ("com.anthropic.claude_code.events", "claude"),
        ("gemini-cli", "gemini"),
        ("github.copilot", "copilot"),
        ("qwen-code", "qwen"),
    ],
)
def test_client_is_known_by_its_scope_if_its_service_has_another_name(
    scope: str, agent: str
) -> None:
    """OTEL_SERVICE_NAME changes the name of every program, except Codex."""
    assert [name for name, reader in READERS.items() if reader.is_own("agents", scope)] == [agent]
