"""`brimline mcp`: the tools with which an agent asks for its context, over stdio.

A server of the Model Context Protocol in plain JSON-RPC: the official SDK takes 1.1 s and 62 MB to
import, and a client starts this process for each session.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, TypeAlias

import msgspec

from brimline._version import __version__
from brimline.cli.arguments import add_flag
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.mcp_tools import DEFINITIONS, AgentTools
from brimline.errors import BrimlineError, MalformedJson, UnexpectedJson
from brimline.files.foreign_json import JsonDecoder

# A client that asks for another version gets the newest of these, and may then disconnect.
PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602

Json: TypeAlias = dict[str, Any]


class RpcMessage(msgspec.Struct, frozen=True):
    """A message of a client: a request, or a notification, which has no id."""

    method: str = ""
    id: int | str | None = None
    params: Json | None = None


class ClientInfo(msgspec.Struct, frozen=True):
    """How a client introduces itself."""

    name: str = ""


class Initialize(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of `initialize`."""

    protocol_version: str = ""
    client_info: ClientInfo = ClientInfo()


class ToolRequest(msgspec.Struct, frozen=True):
    """The parameters of `tools/call`."""

    name: str
    arguments: Json | None = None


class RpcError(BrimlineError):
    """A request that gets an error response of JSON-RPC."""

    def __init__(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(reason)


_messages = JsonDecoder(RpcMessage)


class ToolServer:
    """Answers one client; requests are answered in order."""

    def __init__(self, tools: AgentTools) -> None:
        self._tools = tools
        self._methods: dict[str, Callable[[Json], Json]] = {
            "initialize": self._initialize,
            "ping": lambda params: {},
            "tools/list": lambda params: {"tools": DEFINITIONS},
            "tools/call": self._call,
        }

    def answer(self, line: bytes) -> Json | None:
        """Return the response to a message; None for a notification or a response."""
        try:
            message = _messages.decode(line)
        except UnexpectedJson as error:
            return _error(None, RpcError(INVALID_REQUEST, str(error)))
        except MalformedJson as error:
            return _error(None, RpcError(PARSE_ERROR, str(error)))
        if message.id is None or not message.method:
            return None
        try:
            handle = self._methods.get(message.method)
            if handle is None:
                raise RpcError(UNKNOWN_METHOD, f"unknown method {message.method!r}")
            return {"jsonrpc": "2.0", "id": message.id, "result": handle(message.params or {})}
        except msgspec.ValidationError as error:
            return _error(message.id, RpcError(INVALID_PARAMS, str(error)))
        except RpcError as error:
            return _error(message.id, error)

    def _initialize(self, params: Json) -> Json:
        asked = msgspec.convert(params, Initialize)
        self._tools.set_client(asked.client_info.name)
        is_known = asked.protocol_version in PROTOCOL_VERSIONS
        return {
            "protocolVersion": asked.protocol_version if is_known else PROTOCOL_VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "brimline", "version": __version__},
        }

    def _call(self, params: Json) -> Json:
        """Call a tool; what it refuses is a result, which the agent reads."""
        call = msgspec.convert(params, ToolRequest)
        tool = self._tools.by_name.get(call.name)
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"unknown tool {call.name!r}")
        try:
            text, is_error = tool(call.arguments or {}), False
        except BrimlineError as error:
            text, is_error = str(error), True
        return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _error(id: object, error: RpcError) -> Json:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": error.code, "message": error.reason}}


def serve(tools: AgentTools, lines: BinaryIO, out: BinaryIO) -> None:
    """Answer each line until the client closes its end."""
    server = ToolServer(tools)
    for line in lines:
        response = server.answer(line) if line.strip() else None
        if response is not None:
            out.write(msgspec.json.encode(response) + b"\n")
            out.flush()


def add_arguments(to: argparse.ArgumentParser) -> None:
    add_flag(to, "--list", "print the tools' definitions instead, which are a part of every call")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    if options.list:
        emit_json(DEFINITIONS)
        return 0
    with suppress(KeyboardInterrupt, BrokenPipeError):  # the client ends it
        serve(AgentTools(context), sys.stdin.buffer, sys.stdout.buffer)
    return 0
