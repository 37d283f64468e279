"""Asks Claude Code what a fresh session holds; its API counts tokens without a model call."""

import time
from contextlib import suppress

import msgspec

from brimline.agents.fresh_session.answers import Answer, parse_command_answer, parse_request_answer
from brimline.agents.fresh_session.client import AGENT, CONTEXT_HINT, ClaudeCommand, with_output
from brimline.agents.fresh_session.process import ClientProcess, ClientTimeout
from brimline.agents.fresh_session.wire import (
    AssistantLine,
    ControlResponse,
    InitializeResponse,
    InitLine,
    McpStatus,
    Response,
    ResultLine,
    line_type,
    pending_servers,
)
from brimline.errors import BaselineFailed, BrimlineError, MalformedJson
from brimline.files.foreign_json import decode_json

STREAM_OPTIONS = ("--output-format", "stream-json", "--verbose")
SERVER_POLL_S = 0.1

LOGIN_HINT = "Run `claude` and log in with /login, or set ANTHROPIC_API_KEY."
REACHABLE_HINT = "Is its API reachable, and are you logged in? " + CONTEXT_HINT


class Unanswered(BrimlineError):
    """The client rejected the request, or ended without an answer."""


def measure_fresh_session(client: ClaudeCommand, configured: bool = False) -> Answer:
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


def ask_by_control_request(client: ClaudeCommand) -> Answer:
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


def ask_by_command(client: ClaudeCommand, configured: bool = False) -> Answer:
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
