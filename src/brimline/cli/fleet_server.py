"""Asks a fleet's server, with the token of a person or of the machine's uplink."""

import argparse
from typing import TypeVar
from urllib.parse import urlsplit

from brimline.cli.context import CommandContext
from brimline.daemon.secret import read_token_file
from brimline.daemon.uplink.protocol import ServerProblem
from brimline.errors import InvalidRequest, InvalidSettings, MalformedJson
from brimline.files.foreign_json import JsonDecoder, decode_json
from brimline.files.loopback import is_loopback
from brimline.terminal.text import format_age

TIMEOUT_S = 30.0
READ_TOKEN = "`brimline token create --scope read` makes a token that may see the fleet."
NOT_A_SERVER = "the answer is not that of a fleet's server"
CHECK_URL = "Check --url."

AnswerT = TypeVar("AnswerT")


def get_from_server(context: CommandContext, options: argparse.Namespace, path: str) -> bytes:
    """Return the body of the server's answer; raises InvalidSettings or InvalidRequest."""
    # Imported here: they take long, and `fleet snippet` and `--help` do not need them.
    import asyncio

    from brimline.daemon.http_client import MAX_REPLY_BYTES, HttpFailed, request_once

    address = _server(context, options) + path
    headers = {"Authorization": f"Bearer {_token(context, options)}"}
    try:
        reply = asyncio.run(request_once("GET", address, headers, timeout_s=TIMEOUT_S))
    except HttpFailed as error:
        raise InvalidRequest(f"the server does not answer: {error}", CHECK_URL) from error
    if len(reply.body) >= MAX_REPLY_BYTES:  # it was cut off
        raise InvalidRequest(NOT_A_SERVER, CHECK_URL)
    if reply.is_success:
        return reply.body
    problem = JsonDecoder(ServerProblem).decode_or_none(reply.body)
    if problem is None:
        raise InvalidRequest(f"the server answered {reply.status}", CHECK_URL)
    is_denied = reply.status in (401, 403)
    raise InvalidRequest(problem.error, problem.hint or (READ_TOKEN if is_denied else None))


def decode_answer(body: bytes, kind: type[AnswerT]) -> AnswerT:
    """Decode an answer; raises InvalidRequest if another program than the server sent it."""
    try:
        return decode_json(body, kind)
    except MalformedJson as error:
        raise InvalidRequest(NOT_A_SERVER, CHECK_URL) from error


def format_end(ends_at: float | None, now: float) -> str:
    """Return how long a token is still valid; nothing if it does not end."""
    if ends_at is None:
        return ""
    return "ended" if ends_at <= now else f"{format_age(ends_at - now)} left"


def _server(context: CommandContext, options: argparse.Namespace) -> str:
    address = options.url or context.settings.uplink.url
    if address is None:
        raise InvalidSettings("argument", "--url", "missing: pass it, or set uplink.url")
    parts = urlsplit(address)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        reason = "expected https: others could read the token on its way"
        raise InvalidSettings("argument", "--url", reason)
    return address.rstrip("/")


def _token(context: CommandContext, options: argparse.Namespace) -> str:
    settings = context.settings.uplink
    path = options.token_file or (settings.token_file if settings.token is None else None)
    if path is None:
        if settings.token is None:
            raise InvalidSettings("argument", "--token-file", f"missing: {READ_TOKEN}")
        return settings.token
    try:
        return read_token_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings("argument", "--token-file", f"cannot be read: {error}") from error
