"""Log records of clients: the calls in them, and nothing else."""

from typing import Any

import pytest

from brimline.agents import telemetry_readers
from brimline.agents.telemetry import Attributes, TelemetryEvent
from brimline.errors import InvalidUsage
from brimline.events import Call, Spent
from brimline.usage import Usage

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


def read(agent: str, fields: Attributes) -> TelemetryEvent | None:
    return READERS[agent].read_log(fields, 5.0)


def event_of(agent: str, fields: Attributes) -> object:
    found = read(agent, fields)
    assert found is not None
    assert found.session == "s1"
    return found.event


def test_call_of_claude_code() -> None:
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
def test_thread_of_claude_code(fields: dict[str, Any], thread: str) -> None:
    event = event_of("claude", CLAUDE | fields)
    assert isinstance(event, Call)
    assert event.thread == thread


def test_call_beside_the_threads_only_costs() -> None:
    event = event_of("claude", CLAUDE | {"query_source": "generate_session_title"})
    assert isinstance(event, Spent)
    assert event.usage.sent == 124
    assert isinstance(event_of("gemini", GEMINI | {"role": "utility_router"}), Spent)


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
        ("claude", CLAUDE | {"session.id": ""}),
        ("codex", CODEX | {"event.kind": "response.created"}),
        ("codex", CODEX | {"event.name": "codex.api_request"}),
        ("gemini", GEMINI | {"event.name": "gemini_cli.api_request"}),
    ],
)
def test_other_records_are_no_calls(agent: str, fields: dict[str, Any]) -> None:
    assert read(agent, fields) is None


@pytest.mark.parametrize("value", ["many", "", -1, 1.5, True])
def test_count_that_is_no_number(value: Any) -> None:
    with pytest.raises(InvalidUsage):
        read("claude", CLAUDE | {"input_tokens": value})


def test_services_of_the_clients() -> None:
    names = {
        service: [name for name, reader in READERS.items() if reader.is_own(service)]
        for service in ("claude-code", "codex_cli_rs", "gemini-cli", "my-agent", "")
    }
    assert names == {
        "claude-code": ["claude"],
        "codex_cli_rs": ["codex"],
        "gemini-cli": ["gemini"],
        "my-agent": [],
        "": [],
    }
