"""Settings that point a client's telemetry at the fleet's server.

An administrator rolls them out to every machine; nothing of Brimline is installed there. Each
client's are in `agents/<name>/managed_settings.py`.
"""

import msgspec

TOKEN_MARK = "TOKEN"  # stands for the token in every text
OTLP_HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
# With a space: Claude Code 2.1.325 does not decode %20, Gemini CLI 0.61 takes both.
OTLP_HEADERS = f"Authorization=Bearer {TOKEN_MARK}"


class ManagedFile(msgspec.Struct, frozen=True):
    """The text of a file, and its place; `~` is each user's home."""

    linux: str
    macos: str
    text: str


class ManagedSettings(msgspec.Struct, frozen=True):
    """The files of one client, and what an administrator must know about them."""

    client: str
    files: list[ManagedFile]
    note: str
