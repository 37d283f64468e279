"""Gemini CLI's log records: one `api_response` for each call (0.61)."""

from brimline.agents.telemetry import EVENT_NAME, Attributes, TelemetryEvent, get_count, get_text
from brimline.events import AnyEvent, Call, Spent
from brimline.usage import from_subset

SERVICE = "gemini-cli"
API_RESPONSE = "gemini_cli.api_response"
MAIN_ROLES = ("", "main")  # older versions report no role


class GeminiTelemetry:
    def is_own(self, service: str) -> bool:
        return service == SERVICE

    def read_log(self, fields: Attributes, at: float | None) -> TelemetryEvent | None:
        """A response has no id: its time in milliseconds stands for it. Thoughts stand apart."""
        session, id = get_text(fields, "session.id"), get_text(fields, "event.timestamp")
        if fields.get(EVENT_NAME) != API_RESPONSE or not session or not id:
            return None
        thoughts = get_count(fields, "thoughts_token_count", 0)
        usage = from_subset(
            get_count(fields, "input_token_count"),
            get_count(fields, "cached_content_token_count", 0),
            0,
            get_count(fields, "output_token_count") + thoughts,
            thoughts,
        )
        model = get_text(fields, "model") or None
        event: AnyEvent = Spent(at=at, id=id, usage=usage, model=model)
        if get_text(fields, "role") in MAIN_ROLES:
            event = Call(at=at, id=id, usage=usage, model=model)
        return TelemetryEvent(id, session, event)


TELEMETRY = GeminiTelemetry()
