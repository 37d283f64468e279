"""The lines that Claude Code prints in its stream format, as far as a baseline needs them."""

from collections.abc import Sequence

import msgspec

EMPTY = msgspec.Raw(b"")


class LineType(msgspec.Struct, frozen=True):
    """What every line says of itself."""

    type: str = ""


class Response(msgspec.Struct, frozen=True):
    """The answer to one control request."""

    subtype: str = ""
    request_id: str = ""
    response: msgspec.Raw = msgspec.Raw(b"{}")
    error: str = "no reason given"


class ControlResponse(msgspec.Struct, frozen=True):
    """A line with an answer."""

    response: Response


class Account(msgspec.Struct, frozen=True, rename="camel"):
    """Who is logged in, as the client sees it."""

    token_source: str | None = None
    api_key_source: str | None = None
    api_provider: str | None = None
    email: str | None = None

    @property
    def is_logged_out(self) -> bool:
        """Whether it says that nobody is logged in; a cloud's own login it does not tell."""
        keyed = self.api_key_source not in (None, "none")
        ours = self.api_provider == "firstParty"
        return ours and self.token_source == "none" and not keyed and not self.email


class InitializeResponse(msgspec.Struct, frozen=True):
    """The answer to `initialize`."""

    account: Account = Account()


class McpServer(msgspec.Struct, frozen=True):
    """An MCP server: its name, and whether it is connected."""

    name: str = "?"
    status: str = ""


class McpStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `mcp_status`."""

    mcp_servers: list[McpServer] = []


class InitLine(msgspec.Struct, frozen=True):
    """The first line of a session."""

    mcp_servers: list[McpServer] = []


class AssistantLine(msgspec.Struct, frozen=True):
    """A line of the assistant; `/context` puts its figures there."""

    context_usage: msgspec.Raw = EMPTY


class ResultLine(msgspec.Struct, frozen=True):
    """The last line of a session."""

    result: str = ""


def line_type(line: bytes) -> str:
    """What kind of line this is; empty where it is none of the format."""
    try:
        return msgspec.json.decode(line, type=LineType).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def pending_servers(servers: Sequence[McpServer]) -> tuple[str, ...]:
    """The names of the servers that are not connected yet, and have not failed."""
    return tuple(server.name for server in servers if server.status == "pending")
