"""Asks Claude Code what a fresh session holds; its API counts tokens without a model call.

For `/context` 2.1.325 sends about 24 requests to count_tokens, and none to a model.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from brimline.agents.fresh_session.answers import (
    ClientAnswer,
    parse_command_answer,
    parse_request_answer,
)
from brimline.agents.fresh_session.client import (
    AGENT,
    CONTEXT_HINT,
    ClaudeCommand,
    ClientProcess,
    ClientTimeout,
    with_output,
)
from brimline.errors import BaselineFailed, BrimlineError, MalformedJson
from brimline.files.foreign_json import ABSENT, JsonDecoder, decode_json

STREAM_OPTIONS = ("--output-format", "stream-json", "--verbose")
SERVER_POLL_S = 0.1

LOGIN_HINT = "Run `claude` and log in with /login, or set ANTHROPIC_API_KEY."
REACHABLE_HINT = "Is its API reachable, and are you logged in? " + CONTEXT_HINT


class LineType(msgspec.Struct, frozen=True):
    type: str = ""


class Response(msgspec.Struct, frozen=True):
    subtype: str = ""
    request_id: str = ""
    response: msgspec.Raw = msgspec.Raw(b"{}")
    error: str = "no reason given"


class ControlResponse(msgspec.Struct, frozen=True):
    response: Response


class ClaudeAccount(msgspec.Struct, frozen=True, rename="camel"):
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
    account: ClaudeAccount = ClaudeAccount()


class McpServer(msgspec.Struct, frozen=True):
    name: str = "?"
    status: str = ""


class McpStatus(msgspec.Struct, frozen=True, rename="camel"):
    mcp_servers: list[McpServer] = []


class InitLine(msgspec.Struct, frozen=True):
    mcp_servers: list[McpServer] = []


class AssistantLine(msgspec.Struct, frozen=True):
    """A line of the assistant; `/context` puts its figures there."""

    context_usage: msgspec.Raw = ABSENT


class ResultLine(msgspec.Struct, frozen=True):
    result: str = ""


def line_type(line: bytes) -> str:
    """Return the kind of a line; empty if it is not of the format."""
    decoded = JsonDecoder(LineType).decode_or_none(line)
    return decoded.type if decoded else ""


def pending_servers(servers: Sequence[McpServer]) -> tuple[str, ...]:
    """Return the servers that are neither connected nor failed."""
    return tuple(server.name for server in servers if server.status == "pending")


class Unanswered(BrimlineError):
    """The client rejected the request, or ended without an answer."""


def measure_fresh_session(client: ClaudeCommand, configured: bool = False) -> ClientAnswer:
    """Return what a fresh session holds, by control request or command; raises BaselineFailed.

    `configured`: the user set an auto-compact window, which the command reports as window size.
    """
    try:
        answer = ask_by_control_request(client)
    except Unanswered:
        try:
            answer = ask_by_command(client, configured)
        except Unanswered as error:
            raise BaselineFailed(AGENT, str(error), CONTEXT_HINT) from error
    if not answer.has_system_prompt:
        raise BaselineFailed(
            AGENT, "it could not count the tokens of its system prompt", REACHABLE_HINT
        )
    return answer


def ask_by_control_request(client: ClaudeCommand) -> ClientAnswer:
    """Send the control request that the Claude Agent SDK sends too."""
    arguments = ("-p", "--input-format", "stream-json", *STREAM_OPTIONS, *client.model_options)
    with client.start(*arguments) as process:
        requests = _ControlRequests(process)
        try:
            requests.initialize()
            waiting = requests.wait_for_servers(min(client.server_wait_s, process.seconds_left / 2))
            return parse_request_answer(requests.send("get_context_usage"), waiting)
        except ClientTimeout as error:
            raise client.timeout_error("get_context_usage", requests.unexpected_line) from error
        except MalformedJson as error:
            raise Unanswered(f"its answer has another shape: {error}") from error


class _ControlRequests:
    """Control requests and their answers; other lines are skipped."""

    def __init__(self, process: ClientProcess) -> None:
        self._process = process
        self._lines = process.lines()
        self._count = 0
        self.unexpected_line = b""

    def send(self, subtype: str) -> msgspec.Raw:
        """Return the answer to a request; raises Unanswered."""
        self._count += 1
        name = f"brimline-{self._count}"
        request = {"subtype": subtype}
        self._process.send({"type": "control_request", "request_id": name, "request": request})
        for line in self._lines:
            response = self._response(line)
            if response is not None and response.request_id == name:
                if response.subtype != "success":
                    raise Unanswered(f"it rejected {subtype}: {response.error}")
                return response.response
        raise Unanswered(with_output(self._process.describe_exit(), self.unexpected_line))

    def _response(self, line: bytes) -> Response | None:
        kind = line_type(line)
        if not kind:
            self.unexpected_line = self.unexpected_line or line
        if kind != "control_response":
            return None
        return decode_json(line, ControlResponse).response

    def initialize(self) -> None:
        """Send `initialize`; raises BaselineFailed if the user is logged out."""
        with suppress(Unanswered):
            response = decode_json(self.send("initialize"), InitializeResponse)
            if response.account.is_logged_out:
                raise BaselineFailed(
                    AGENT, "it is not logged in, and would only estimate", LOGIN_HINT
                )

    def wait_for_servers(self, wait_s: float) -> tuple[str, ...]:
        """Wait for the MCP servers, and return the names of those that are still pending."""
        end = time.monotonic() + wait_s
        while waiting := self._pending_servers():
            if time.monotonic() >= end:
                break
            time.sleep(SERVER_POLL_S)
        return waiting

    def _pending_servers(self) -> tuple[str, ...]:
        with suppress(Unanswered):
            status = decode_json(self.send("mcp_status"), McpStatus)
            return pending_servers(status.mcp_servers)
        return ()


def ask_by_command(client: ClaudeCommand, configured: bool = False) -> ClientAnswer:
    """Run `/context` and read the structured part of its output."""
    arguments = (
        "-p",
        "/context",
        *STREAM_OPTIONS,
        "--no-session-persistence",
        *client.model_options,
    )
    with client.start(*arguments) as process:
        process.close_input()
        output = _CommandOutput()
        try:
            for line in process.lines():
                if usage := output.read_line(line):
                    return parse_command_answer(usage, output.pending_servers, configured)
        except ClientTimeout as error:
            raise client.timeout_error("/context", output.text) from error
        except MalformedJson as error:
            raise Unanswered(f"its /context has another shape: {error}") from error
        raise Unanswered(with_output(process.describe_exit(), output.text))


class _CommandOutput:
    """What the lines of `/context` contained so far."""

    def __init__(self) -> None:
        self.pending_servers: tuple[str, ...] = ()
        self.text = b""

    def read_line(self, line: bytes) -> bytes:
        """Read a line, and return the usage if it has that."""
        match line_type(line):
            case "system":
                servers = decode_json(line, InitLine).mcp_servers
                self.pending_servers = pending_servers(servers) or self.pending_servers
            case "assistant":
                return bytes(decode_json(line, AssistantLine).context_usage)
            case "result":
                self.text = decode_json(line, ResultLine).result.encode() or self.text
            case "":
                self.text = self.text or line
            case _:
                pass
        return b""
