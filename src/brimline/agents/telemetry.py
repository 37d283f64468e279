"""What an agent's client reports by OpenTelemetry logs: `agents/<name>/telemetry.py`."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import msgspec

from brimline.errors import InvalidUsage
from brimline.events import AnyEvent

Attributes: TypeAlias = Mapping[str, str | int | float | bool]

EVENT_NAME = "event.name"


class TelemetryEvent(msgspec.Struct, frozen=True):
    """An event of a session; the `id` is equal if the same record is sent again."""

    id: str
    session: str
    event: AnyEvent


class TelemetryReader(Protocol):
    """Reads the log records of one agent's client; only figures and names are taken."""

    def is_own(self, service: str) -> bool:
        """Whether the client names itself so, in the resource's `service.name`."""
        ...

    def read_log(self, fields: Attributes, at: float | None) -> TelemetryEvent | None:
        """Return the event of a log record, None if it is of another kind.

        Raises InvalidUsage if a count is missing or no number.
        """
        ...


def get_text(fields: Attributes, name: str) -> str:
    """Return an attribute as text, empty if it is missing."""
    return str(fields.get(name, ""))


def get_count(fields: Attributes, name: str, default: int | None = None) -> int:
    """Return a token count, which some clients send as text; raises InvalidUsage."""
    value = fields.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidUsage(name, value)
