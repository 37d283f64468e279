"""Requests to a fleet's server, with the token of a person or of the machine's uplink."""

import argparse
import http.client
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from brimline.cli.context import Context
from brimline.daemon.uplink.protocol import ServerProblem
from brimline.daemon.uplink.token_file import read_token_file
from brimline.errors import InvalidRequest, InvalidSettings, MalformedJson
from brimline.files.foreign_json import decode_json
from brimline.files.loopback import is_loopback

TIMEOUT_S = 30.0
READ_TOKEN = "`brimline token create --scope read` makes a token that may see the fleet."

AnswerT = TypeVar("AnswerT")


class _NoRedirects(HTTPRedirectHandler):
    """Urllib would send the token to the other address too."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


def get_from_server(context: Context, options: argparse.Namespace, path: str) -> bytes:
    """Return the body of the server's answer; raises InvalidSettings or InvalidRequest."""
    return _get(_server(context, options) + path, _token(context, options))


def decode_answer(body: bytes, kind: type[AnswerT]) -> AnswerT:
    """Decode an answer; raises InvalidRequest if another program than the server sent it."""
    try:
        return decode_json(body, kind)
    except MalformedJson as error:
        problem = "the answer is not that of a fleet's server"
        raise InvalidRequest(problem, "Check --url.") from error


def _server(context: Context, options: argparse.Namespace) -> str:
    address = options.url or context.settings.uplink.url
    if address is None:
        raise InvalidSettings("argument", "--url", "missing: pass it, or set uplink.url")
    parts = urlsplit(address)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        problem = "expected https: others could read the token on its way"
        raise InvalidSettings("argument", "--url", problem)
    return address.rstrip("/")


def _token(context: Context, options: argparse.Namespace) -> str:
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


def _get(url: str, token: str) -> bytes:
    """Return the body of an answer; raises InvalidRequest if the server refuses or is away."""
    try:
        request = Request(url, headers={"Authorization": f"Bearer {token}"})
        with build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S) as answer:
            return answer.read()
    except HTTPError as error:
        raise _refusal(error) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)  # of a URLError: why it could not connect
        problem = f"the server does not answer: {getattr(reason, 'strerror', None) or reason}"
        raise InvalidRequest(problem, "Check --url.") from error


def _refusal(error: HTTPError) -> InvalidRequest:
    try:
        problem = decode_json(error.read(), ServerProblem)
    except (OSError, MalformedJson):
        return InvalidRequest(f"the server answered {error.code}", "Check --url.")
    is_denied = error.code in (401, 403)
    return InvalidRequest(problem.error, problem.hint or (READ_TOKEN if is_denied else None))
