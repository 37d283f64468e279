"""Claude Code's log records: `api_request` for each call, `compaction` (2.1.325).

They have no sign of a long window: the mark `[1m]` of a model is left out.
"""

import json
from collections.abc import Sequence

from brimline.agents.telemetry import (
    EVENT_NAME,
    OTLP_HEADERS,
    OTLP_HEADERS_VARIABLE,
    Attributes,
    LogRecord,
    ManagedSettings,
    ManagedSettingsFile,
    TelemetryEvent,
    TelemetryReader,
    get_count,
    get_id,
    get_text,
    get_time,
)
from brimline.context.events import (
    MAIN,
    TRIGGERS,
    AnyEvent,
    Call,
    Compacted,
    Spent,
    compaction_thread,
)
from brimline.context.usage import Usage

SERVICE, SCOPE_PREFIX = "claude-code", "com.anthropic.claude_code"
API_REQUEST, COMPACTION = "api_request", "compaction"
# Who asked: the main thread of an interactive or a headless session, a subagent, a compaction.
MAIN_SOURCES = ("repl_main_thread", "sdk")
SUBAGENT_PREFIX = "agent:"
COMPACTION_SOURCE = "compact"


class ClaudeTelemetry(TelemetryReader):
    def is_own(self, service: str, scope: str) -> bool:
        return service == SERVICE or scope.startswith(SCOPE_PREFIX)

    def read_log(self, record: LogRecord) -> Sequence[TelemetryEvent]:
        fields = record.attributes
        if fields.get(EVENT_NAME) == API_REQUEST:
            usage = _usage(fields)
            id = get_text(fields, "request_id") or _make_id(record, usage)
            event: AnyEvent = _read_call(id, fields, record.at, usage)
        elif fields.get(EVENT_NAME) == COMPACTION and fields.get("success") == "true":
            id = f"compaction {get_time(record)}"
            trigger = TRIGGERS.get(get_text(fields, "trigger"))
            before = get_count(fields, "pre_tokens")
            event = Compacted(at=record.at, trigger=trigger, before=before)
        else:
            return ()
        return [TelemetryEvent(id, get_id(fields, "session.id"), event)]


def _make_id(record: LogRecord, usage: Usage) -> str:
    """Return an id for a call to a gateway or provider that sends no request id."""
    marks = (get_text(record.attributes, name) for name in ("event.sequence", "agent_id"))
    counts = usage.input, usage.cache_read, usage.cache_write, usage.output
    return " ".join((get_time(record), *marks, *map(str, counts)))


def _read_call(id: str, fields: Attributes, at: float | None, usage: Usage) -> AnyEvent:
    """A call of a thread; others, as for a title, only cost tokens."""
    model = get_text(fields, "model") or None
    source = get_text(fields, "query_source")
    thread: str | None = None
    if source.startswith(MAIN_SOURCES):
        thread = MAIN
    elif source.startswith(SUBAGENT_PREFIX):
        thread = get_text(fields, "agent_id") or source
    elif source == COMPACTION_SOURCE:
        thread = compaction_thread()
    if thread is None:
        return Spent(at=at, id=id, usage=usage, model=model)
    return Call(at=at, id=id, usage=usage, model=model, thread=thread)


def _usage(fields: Attributes) -> Usage:
    return Usage(
        get_count(fields, "input_tokens"),
        get_count(fields, "cache_read_tokens"),
        get_count(fields, "cache_creation_tokens"),
        get_count(fields, "output_tokens"),
        cache_write_1h=get_count(fields, "cache_creation_1h_tokens", 0),
    )


TELEMETRY = ClaudeTelemetry()

NOTE = (
    "Prompts stay on the machine unless OTEL_LOG_USER_PROMPTS is set. To keep the token out of "
    "this file, name a script as otelHeadersHelper that prints the headers as JSON."
)


def managed_settings(url: str) -> ManagedSettings:
    """Variables that users cannot override (2.1.325)."""
    variables = {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        OTLP_HEADERS_VARIABLE: OTLP_HEADERS,
    }
    file = ManagedSettingsFile(
        linux="/etc/claude-code/managed-settings.json",
        macos="/Library/Application Support/ClaudeCode/managed-settings.json",
        text=json.dumps({"env": variables}, indent=2) + "\n",
    )
    return ManagedSettings("Claude Code", [file], NOTE)
