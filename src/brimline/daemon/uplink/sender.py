"""Posts batches to the fleet's server."""

import asyncio
import gzip
from pathlib import Path

import msgspec
from msgspec.structs import replace

from brimline.daemon.http_client import MAX_REPLY_BYTES, HttpClient, HttpFailed, HttpReply
from brimline.daemon.uplink.failure import UplinkFailed
from brimline.daemon.uplink.machine_token import MAX_RETRY_AFTER_S, NEW_TOKEN, MachineToken
from brimline.daemon.uplink.protocol import (
    MAX_MESSAGES_BYTES,
    PATH,
    ServerProblem,
    UplinkBatch,
    UplinkReply,
)
from brimline.errors import MalformedJson
from brimline.files.foreign_json import JsonDecoder, decode_json
from brimline.settings import UplinkSettings

EXCHANGE_TIMEOUT_S = 30.0
GZIP_LEVEL = 3  # 6 takes 3 times as long, for 10 % less
# What it means, and what to do.
REFUSALS = {
    401: ("the server does not accept the token", NEW_TOKEN),
    403: ("the token may not report sessions", NEW_TOKEN),
    404: ("the server has no uplink at this address", "check uplink.url"),
    429: ("the server limits this token's rate", None),
}
REFUSED_STATUSES = (400, 413, 422)  # a row is invalid, or the batch is too large

# A server sends no larger ones.
MAX_PART_BYTES = {
    "messages": MAX_MESSAGES_BYTES,
    "documents": 1 << 20,
    "cancelled": 1 << 16,
    "refused": 1 << 18,
}
_problems = JsonDecoder(ServerProblem)
_replies = JsonDecoder(UplinkReply)


class _RawReply(msgspec.Struct, frozen=True):
    """A reply whose parts are not decoded yet."""

    messages: msgspec.Raw = msgspec.Raw(b"[]")
    documents: msgspec.Raw = msgspec.Raw(b"[]")
    cancelled: msgspec.Raw = msgspec.Raw(b"[]")
    refused: msgspec.Raw = msgspec.Raw(b"{}")
    machine: str = ""
    stamp: int | None = None


class UplinkSender:
    """Posts to one server, one batch at a time; `sent_bytes` counts what was sent."""

    def __init__(
        self,
        settings: UplinkSettings,
        url: str,
        state: Path,
        timeout_s: float = EXCHANGE_TIMEOUT_S,
    ) -> None:
        """`state` is the folder that keeps a token of this machine's own."""
        self._timeout_s = timeout_s
        self._client = HttpClient(url)
        self._token = MachineToken(settings, url, self._client, state)
        self.sent_bytes = 0

    async def send(self, batch: UplinkBatch) -> UplinkReply:
        """Return the server's reply; raises UplinkFailed."""
        token = await self._token.find(batch)
        # In a thread: a batch takes some milliseconds, and hooks do not wait for it.
        body = await asyncio.to_thread(gzip.compress, msgspec.json.encode(batch), GZIP_LEVEL)
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
        }
        try:
            reply = await self._client.post(body, headers, PATH, self._timeout_s)
        except HttpFailed as error:
            raise UplinkFailed(f"the server cannot be reached: {error}") from error
        self.sent_bytes += len(body)
        if reply.status == 401:
            self._token.note_unknown()
        return read_reply(reply, batch.machine)

    def close(self) -> None:
        self._client.close()


def read_reply(reply: HttpReply, machine: str) -> UplinkReply:
    """Return a server's reply to a machine's batch; raises UplinkFailed.

    Only a fleet's server decides that a batch is stored, or never will be: a proxy that does not
    reach it may answer with 200 or 400 as well.
    """
    status = reply.status
    if not reply.is_success:
        problem = _problems.decode_or_none(reply.body)
        raise UplinkFailed(
            _describe_refusal(status, problem),
            reply.retry_after_s(MAX_RETRY_AFTER_S),
            is_refused=status in REFUSED_STATUSES and problem is not None,
            is_too_large=status == 413,
        )
    if len(reply.body) >= MAX_REPLY_BYTES:
        raise UplinkFailed(f"the server's reply has {MAX_REPLY_BYTES >> 20} MiB or more")
    try:
        decoded = _decode(reply.body)
    except MalformedJson as error:
        raise UplinkFailed(f"the server's reply cannot be read: {error}") from error
    if decoded.machine != machine:
        raise UplinkFailed("the reply is not that of a fleet's server: check uplink.url")
    return decoded


def _decode(body: bytes) -> UplinkReply:
    """Decode a reply without the parts that are too large: they would delay hooks."""
    raw = decode_json(body, _RawReply)
    parts: dict[str, msgspec.Raw] = {name: getattr(raw, name) for name in MAX_PART_BYTES}
    large = {name for name, part in parts.items() if len(part) > MAX_PART_BYTES[name]}
    small = {name: part for name, part in parts.items() if name not in large}
    rest = {"machine": raw.machine, "stamp": raw.stamp}
    reply = _replies.decode(msgspec.json.encode(small | rest))
    return replace(reply, dropped=sum(bytes(parts[name]).count(b'"session"') for name in large))


def _describe_refusal(status: int, problem: ServerProblem | None) -> str:
    unknown = f"the server answered with HTTP status {status}", None
    reason, advice = REFUSALS.get(status, unknown)
    if problem is not None:
        reason = f"{reason} ({problem.error})"
    return reason if advice is None else f"{reason}: {advice}"
