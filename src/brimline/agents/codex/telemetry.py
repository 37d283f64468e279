"""Codex's log records: the last event of each answer has its usage (0.166)."""

from collections.abc import Sequence

from brimline.agents.telemetry import (
    EVENT_NAME,
    TOKEN_MARK,
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
from brimline.context.events import Call
from brimline.context.usage import from_subset

SERVICE_PREFIX = "codex"  # codex_exec, codex_cli_rs, codex_vscode
ANSWER_EVENT = "codex.sse_event"
COMPLETED = "response.completed"
INPUT = "input_token_count"


class CodexTelemetry(TelemetryReader):
    def is_own(self, service: str, scope: str) -> bool:
        return service.startswith(SERVICE_PREFIX)

    def read_log(self, record: LogRecord) -> Sequence[TelemetryEvent]:
        """An answer has no id: its time in milliseconds stands for it.

        Of its two records of the kind `response.completed` only one has counts.
        """
        fields = record.attributes
        is_answer = fields.get(EVENT_NAME) == ANSWER_EVENT and fields.get("event.kind") == COMPLETED
        if not is_answer or INPUT not in fields:
            return ()
        session, id = get_id(fields, "conversation.id"), get_time(record)
        usage = from_subset(
            get_count(fields, INPUT),
            get_count(fields, "cached_token_count", 0),
            get_count(fields, "cache_write_token_count", 0),
            get_count(fields, "output_token_count"),
            get_count(fields, "reasoning_token_count", 0),
        )
        model = get_text(fields, "model") or None
        return [TelemetryEvent(id, session, Call(at=record.at, id=id, usage=usage, model=model))]


TELEMETRY = CodexTelemetry()

REQUIREMENTS = """\
[otel]
log_user_prompt = false

[otel.exporter.otlp-http]
endpoint = "{url}/v1/logs"
protocol = "json"
headers = {{ Authorization = "Bearer {token}" }}
"""
PLACE = "/etc/codex/requirements.toml"
NOTE = (
    "Users cannot override requirements. The same text in config.toml (~/.codex) is for one user."
)


def managed_settings(url: str) -> ManagedSettings:
    """Requirements, which take precedence over each user's config.toml (0.166).

    Codex does not replace variables in headers: the token is in the file.
    """
    file = ManagedSettingsFile(
        linux=PLACE, macos=PLACE, text=REQUIREMENTS.format(url=url, token=TOKEN_MARK)
    )
    return ManagedSettings("Codex", [file], NOTE)
