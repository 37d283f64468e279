"""GitHub Copilot CLI's spans: `chat` for each call, `invoke_agent` around a turn (1.0.102).

The call that writes a compaction's summary has no span.
"""

from collections.abc import Sequence

from brimline.agents.telemetry import (
    CONVERSATION,
    OTLP_HEADERS,
    OTLP_HEADERS_VARIABLE,
    ManagedSettings,
    ManagedSettingsFile,
    SpanRecord,
    TelemetryEvent,
    TelemetryReader,
    get_count,
    get_text,
    is_call_span,
    read_call_span,
)
from brimline.context.events import MAIN, AnyEvent, Compacted, WindowReported

SERVICES, SCOPE = ("github-copilot", "copilot-chat"), "github.copilot"
INITIATOR, SUBAGENT = "github.copilot.initiator", "sub-agent"
USAGE_INFO = "github.copilot.session.usage_info"
COMPACTION_COMPLETE = "github.copilot.session.compaction_complete"
TOKEN_LIMIT = "github.copilot.token_limit"


class CopilotTelemetry(TelemetryReader):
    def is_own(self, service: str, scope: str) -> bool:
        return service in SERVICES or scope == SCOPE

    def read_span(self, span: SpanRecord) -> Sequence[TelemetryEvent]:
        """A subagent's calls are below its own `invoke_agent`, whose id names its thread."""
        if is_call_span(span.attributes):
            is_subagent = span.attributes.get(INITIATOR) == SUBAGENT
            return [read_call_span(span, span.parent if is_subagent else MAIN)]
        session, thread = get_text(span.attributes, CONVERSATION), span.id if span.parent else MAIN
        return [
            TelemetryEvent(f"{span.id} {place}", session, event)
            for place, event in enumerate(_read_events(span, thread))
            if session
        ]


def _read_events(span: SpanRecord, thread: str) -> list[AnyEvent]:
    """The window, as it was last reported, and the compactions, which come after later calls."""
    events: list[AnyEvent] = []
    windows = [each for each in span.events if each.name == USAGE_INFO]
    for each in windows[-1:]:  # without its time: later calls may be known
        tokens = get_count(each.attributes, TOKEN_LIMIT)
        events.append(WindowReported(tokens=tokens, thread=thread))
    for each in span.events:
        if each.name == COMPACTION_COMPLETE and each.attributes.get("github.copilot.success"):
            # `pre_tokens` is an estimate: 11,986 when 182,410 were sent.
            events.append(Compacted(at=each.at, thread=thread, is_late=True))
    return events


TELEMETRY = CopilotTelemetry()

NOTE = (
    "Every program with an OpenTelemetry SDK reads the OTEL_ variables: on machines that run such "
    "programs, set them for Copilot alone, in a script that starts it."
)


def managed_settings(url: str) -> ManagedSettings:
    """Variables (1.0.102): Copilot's managed settings have headers only for the editor."""
    variables = {
        "COPILOT_OTEL_ENABLED": "true",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        OTLP_HEADERS_VARIABLE: OTLP_HEADERS,
    }
    file = ManagedSettingsFile(
        linux="/etc/profile.d/copilot-telemetry.sh",
        macos="/etc/zprofile",
        text="".join(f'export {name}="{value}"\n' for name, value in variables.items()),
    )
    return ManagedSettings("Copilot", [file], NOTE)
