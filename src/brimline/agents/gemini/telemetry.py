"""Gemini CLI's log records: one `api_response` for each call (0.61)."""

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
from brimline.context.events import AnyEvent, Call, Compacted, Spent
from brimline.context.usage import from_subset

SERVICE = "gemini-cli"  # also the name of its scope
API_RESPONSE = "gemini_cli.api_response"
CHAT_COMPRESSION = "gemini_cli.chat_compression"
MAIN_ROLES = ("", "main")  # older versions report no role


class GeminiTelemetry(TelemetryReader):
    reports_version = False  # `service.version` is that of node (0.61)

    def is_own(self, service: str, scope: str) -> bool:
        return SERVICE in (service, scope)

    def read_log(self, record: LogRecord) -> Sequence[TelemetryEvent]:
        """A record has no id: its time in milliseconds stands for it."""
        fields = record.attributes
        if fields.get(EVENT_NAME) not in (API_RESPONSE, CHAT_COMPRESSION):
            return ()
        session, id = get_id(fields, "session.id"), get_time(record)
        if fields.get(EVENT_NAME) == API_RESPONSE:
            return [TelemetryEvent(id, session, _read_call(id, fields, record.at))]
        return read_compression(id, session, record)


def read_compression(id: str, session: str, record: LogRecord) -> Sequence[TelemetryEvent]:
    """Return a compaction; none if it made the context no smaller: the client then drops it."""
    before = get_count(record.attributes, "tokens_before")
    if get_count(record.attributes, "tokens_after") >= before:
        return ()
    return [TelemetryEvent(f"compression {id}", session, Compacted(at=record.at, before=before))]


def _read_call(id: str, fields: Attributes, at: float | None) -> AnyEvent:
    """A call of the main thread; others only cost tokens. Thoughts are not in the output count."""
    thoughts = get_count(fields, "thoughts_token_count", 0)
    usage = from_subset(
        get_count(fields, "input_token_count"),
        get_count(fields, "cached_content_token_count", 0),
        0,
        get_count(fields, "output_token_count") + thoughts,
        thoughts,
    )
    model = get_text(fields, "model") or None
    if get_text(fields, "role") in MAIN_ROLES:
        return Call(at=at, id=id, usage=usage, model=model)
    return Spent(at=at, id=id, usage=usage, model=model)


TELEMETRY = GeminiTelemetry()

TOKEN_FILE = "~/.gemini/.env"
NOTE = (
    "The client skips system settings that others than root can write. "
    f"{TOKEN_FILE} is ignored in a project that has its own .env: there, set the variable in the "
    "environment of the client."
)


def managed_settings(url: str) -> ManagedSettings:
    """System settings, which take precedence over each user's (0.61).

    They have no place for headers: the exporter reads these from its environment, to which the
    client adds a file of the user.
    """
    telemetry = {
        "enabled": True,
        "target": "local",
        "otlpEndpoint": url,
        "otlpProtocol": "http",
        "logPrompts": False,
    }
    files = [
        ManagedSettingsFile(
            linux="/etc/gemini-cli/settings.json",
            macos="/Library/Application Support/GeminiCli/settings.json",
            text=json.dumps({"telemetry": telemetry}, indent=2) + "\n",
        ),
        ManagedSettingsFile(
            linux=TOKEN_FILE, macos=TOKEN_FILE, text=f'{OTLP_HEADERS_VARIABLE}="{OTLP_HEADERS}"\n'
        ),
    ]
    return ManagedSettings("Gemini CLI", files, NOTE)
