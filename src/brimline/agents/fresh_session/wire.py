"""The lines that Claude Code prints in its stream format, as far as a baseline needs them."""

from collections.abc import Sequence

import msgspec

from brimline.files.foreign_json import JsonDecoder

EMPTY = msgspec.Raw(b"")


class LineType(msgspec.Struct, frozen=True):
    type: str = ""


class Response(msgspec.Struct, frozen=True):
    subtype: str = ""
    request_id: str = ""
    response: msgspec.Raw = msgspec.Raw(b"{}")
    error: str = "no reason given"


class ControlResponse(msgspec.Struct, frozen=True):
    response: Response


class Account(msgspec.Struct, frozen=True, rename="camel"):
    token_source: str | None = None
    api_key_source: str | None = None
    api_provider: str | None = None
    email: str | None = None

    @property
    def is_logged_out(self) -> bool:
        """Whether it says that the user is logged out; it does not report a cloud's own login."""
        keyed = self.api_key_source not in (None, "none")
        ours = self.api_provider == "firstParty"
        return ours and self.token_source == "none" and not keyed and not self.email


class InitializeResponse(msgspec.Struct, frozen=True):
    account: Account = Account()


class McpServer(msgspec.Struct, frozen=True):
    name: str = "?"
    status: str = ""


class McpStatus(msgspec.Struct, frozen=True, rename="camel"):
    mcp_servers: list[McpServer] = []


class InitLine(msgspec.Struct, frozen=True):
    mcp_servers: list[McpServer] = []


class AssistantLine(msgspec.Struct, frozen=True):
    """A line of the assistant; `/context` puts its figures there."""

    context_usage: msgspec.Raw = EMPTY


class ResultLine(msgspec.Struct, frozen=True):
    result: str = ""


def line_type(line: bytes) -> str:
    """Return the kind of a line; empty if it is not of the format."""
    decoded = JsonDecoder(LineType).decode_or_none(line)
    return decoded.type if decoded else ""


def pending_servers(servers: Sequence[McpServer]) -> tuple[str, ...]:
    """Return the servers that are neither connected nor failed."""
    return tuple(server.name for server in servers if server.status == "pending")
