"""What both encodings of OTLP share: signals, times, and records that were rejected."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from brimline.agents.telemetry import ScopeTelemetry

OtlpSignal: TypeAlias = Literal["logs", "traces"]

NANOSECONDS = 1_000_000_000
MAX_TIME = 1 << 64  # as long as protobuf's


class Rejected:
    """How many records of a request could not be used, and why the first of them could not."""

    def __init__(self) -> None:
        self.count, self.reason = 0, ""

    def add(self, reason: str) -> None:
        self.count += 1
        self.reason = self.reason or reason


def read_time(nanoseconds: int | str) -> float | None:
    """Return a time in seconds, None if it is 0; JSON has it as text. Raises ValueError."""
    value = int(nanoseconds)
    if not 0 <= value < MAX_TIME:
        raise ValueError("a time is not in nanoseconds since 1970")
    return value / NANOSECONDS if value else None


class OtlpEncoding(Protocol):
    """A module that decodes requests and encodes the answers to them."""

    MEDIA: str

    def decode_request(self, signal: OtlpSignal, body: bytes) -> Sequence[ScopeTelemetry]:
        """Return the records in a request; raises ValueError."""
        ...

    def encode_result(self, signal: OtlpSignal, rejected: Rejected) -> bytes: ...

    def encode_error(self, error: str, hint: str | None) -> bytes: ...
