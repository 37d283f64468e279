"""Asks Claude Code what a fresh session holds. Its API counts; no model call is made."""

import time
from contextlib import suppress

import msgspec

from brimline.baselines.answers import Answer, printed, requested
from brimline.baselines.client import AGENT, LOOK, Client, with_words
from brimline.baselines.process import Talk, TookTooLong
from brimline.baselines.wire import (
    Assistant,
    Begun,
    Control,
    Init,
    Response,
    Result,
    Servers,
    kind_of,
    pending,
)
from brimline.errors import BaselineFailed

STREAM = ("--output-format", "stream-json", "--verbose")
POLL = 0.1
"""Seconds between two looks at the MCP servers."""

LOGIN = "Run `claude` and log in with /login, or set ANTHROPIC_API_KEY."
REACH = "Is its API reachable, and are you logged in? " + LOOK


class Unanswered(Exception):
    """The client refused the question, or ended without an answer; the text says how."""


def ask(client: Client, configured: bool = False) -> Answer:
    """What a fresh session holds: by the request, else by the command; else BaselineFailed.

    `configured`: the user set an auto-compact window, which the command tells as the size.
    """
    try:
        answer = by_request(client)
    except Unanswered:
        try:
            answer = by_command(client, configured)
        except Unanswered as error:
            raise BaselineFailed(AGENT, str(error), LOOK) from error
    if not answer.counted:
        raise BaselineFailed(AGENT, "it could not count the tokens of its system prompt", REACH)
    return answer


def by_request(client: Client) -> Answer:
    """The answer to the control request that the Claude Agent SDK sends."""
    arguments = ("-p", "--input-format", "stream-json", *STREAM, *client.chosen)
    with client.talk(*arguments) as talk:
        dialogue = _Dialogue(talk)
        try:
            dialogue.begin()
            waiting = dialogue.settle(min(client.settling, talk.left / 2))
            return requested(dialogue.ask("get_context_usage"), waiting)
        except TookTooLong as error:
            raise client.too_long("get_context_usage", dialogue.strange) from error
        except msgspec.DecodeError as error:
            raise Unanswered(f"its answer has another shape: {error}") from error


class _Dialogue:
    """Requests and their answers; what else the client prints is passed over."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._lines = talk.lines()
        self._asked = 0
        self.strange = b""

    def ask(self, subtype: str) -> msgspec.Raw:
        """The answer to a request; Unanswered where it is refused or the client ends."""
        self._asked += 1
        name = f"brimline-{self._asked}"
        request = {"subtype": subtype}
        self._talk.say({"type": "control_request", "request_id": name, "request": request})
        for line in self._lines:
            response = self._response(line)
            if response is not None and response.request_id == name:
                if response.subtype != "success":
                    raise Unanswered(f"it refused {subtype}: {response.error}")
                return response.response
        raise Unanswered(with_words(self._talk.obituary(), self.strange))

    def _response(self, line: bytes) -> Response | None:
        kind = kind_of(line)
        if not kind:
            self.strange = self.strange or line
        if kind != "control_response":
            return None
        return msgspec.json.decode(line, type=Control).response

    def begin(self) -> None:
        """Say hello; a client that nobody is logged in to would only guess."""
        with suppress(Unanswered):
            begun = msgspec.json.decode(self.ask("initialize"), type=Begun)
            if begun.account.is_nobody:
                raise BaselineFailed(AGENT, "it is not logged in, and would only guess", LOGIN)

    def settle(self, patience: float) -> tuple[str, ...]:
        """Wait for the MCP servers, which the client does not; the names of those that are late."""
        end = time.monotonic() + patience
        while waiting := self._waiting():
            if time.monotonic() >= end:
                break
            time.sleep(POLL)
        return waiting

    def _waiting(self) -> tuple[str, ...]:
        with suppress(Unanswered):
            told = msgspec.json.decode(self.ask("mcp_status"), type=Servers)
            return pending(told.mcp_servers)
        return ()


def by_command(client: Client, configured: bool = False) -> Answer:
    """The structured part of what `/context` prints."""
    arguments = ("-p", "/context", *STREAM, "--no-session-persistence", *client.chosen)
    with client.talk(*arguments) as talk:
        talk.hush()
        heard = _Heard()
        try:
            for line in talk.lines():
                if usage := heard.line(line):
                    return printed(usage, heard.waiting, configured)
        except TookTooLong as error:
            raise client.too_long("/context", heard.said) from error
        except msgspec.DecodeError as error:
            raise Unanswered(f"its /context has another shape: {error}") from error
        raise Unanswered(with_words(talk.obituary(), heard.said))


class _Heard:
    """What the lines of a session said so far."""

    def __init__(self) -> None:
        self.waiting: tuple[str, ...] = ()
        self.said = b""

    def line(self, line: bytes) -> bytes:
        """The figures, where this line has them."""
        match kind_of(line):
            case "system":
                servers = msgspec.json.decode(line, type=Init).mcp_servers
                self.waiting = pending(servers) or self.waiting
            case "assistant":
                return bytes(msgspec.json.decode(line, type=Assistant).context_usage)
            case "result":
                self.said = msgspec.json.decode(line, type=Result).result.encode() or self.said
            case "":
                self.said = self.said or line
            case _:
                pass
        return b""
