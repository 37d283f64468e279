r"""The frames of the hook socket and the spool: one request, one reply, one byte in each direction.

    request  `BRIMLINE 1 <header bytes> <body bytes>\n`, the header, the body
    reply    `BRIMLINE 1 <bytes>\n`, the text, which goes to the agent unchanged; or
             `BRIMLINE 1 <bytes> <receipt bytes>\n`, the text, the receipt
    then     0x06 from the client, when the agent has the text; the daemon waits for it if the reply
             must be delivered once, and otherwise closes the connection after the reply
    then     0x06 from the daemon, when it has stored that the text was delivered

A receipt comes only with a reply that must be delivered once, and only to a client whose header has
`receipt=1`; older clients and daemons ignore it. A client that does not get the last byte appends a
record of kind `delivered` to the spool, with the receipt as its body: the daemon may have died
before it stored the delivery.

A request of kind `here` asks for the status of the session that its process belongs to: its agent
is the template of the answer, its body is empty.

The header has `key=value` entries, each ended by a NUL: kind, agent, id (`<unix ns>-<pid>`), pid
(of the process that ran the client, mostly the agent), then `env.NAME` for each variable that is
set of those that the daemon needs. The body is what the client read from stdin, up to
MAX_EVENT_BYTES, if it came in time; in the spool it has only the fields that the daemon reads
(payload.py). exchange.py, client.c and install/extension.js write requests and read replies.
"""

import re
from typing import NamedTuple, get_args

import msgspec

from brimline.agents.hook_adapter import HookRequest, RequestKind
from brimline.agents.observations import Reply
from brimline.errors import BrimlineError
from brimline.files.foreign_json import JsonDecoder
from brimline.hooks.client.exchange import (
    MAX_EVENT_BYTES,
    MAX_LINE_BYTES,
    MAX_REPLY_BYTES,
    PREFIX,
    WANTS_RECEIPT,
)

MAX_HEADER_BYTES = 24 << 10

_KINDS: dict[bytes, RequestKind] = {kind.encode(): kind for kind in get_args(RequestKind)}

_REQUEST_LINE = re.compile(rb"BRIMLINE 1 ([0-9]{1,9}) ([0-9]{1,9})\n")
_HEADER = re.compile(
    rb"kind=(hook|statusline|delivered|here)\0agent=([^\0]+)\0id=([0-9]{1,20}-[0-9]{1,10})\0pid=([0-9]{1,10})\0"
    rb"((?:[^\0]*\0)*)"
)
_EXPECTED_HEADER = (
    "kind=hook, statusline, delivered or here, agent=, id=<unix ns>-<pid> and pid= in this order"
)
_ENV = "env."


class InvalidFrame(BrimlineError):
    """Bytes that are no request or reply; `reason` says what was expected and what came."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"not a frame of the hook socket: {reason}")


class Sizes(NamedTuple):
    """How many bytes follow a request's first line."""

    header: int
    body: int


def parse_line(line: bytes) -> Sizes:
    """Return the sizes in a request's first line; raises InvalidFrame."""
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise InvalidFrame(f"expected `BRIMLINE 1 <header> <body>`: got {line[:MAX_LINE_BYTES]!r}")
    sizes = Sizes(int(match[1]), int(match[2]))
    if sizes.header > MAX_HEADER_BYTES or sizes.body > MAX_EVENT_BYTES:
        limits = f"{MAX_HEADER_BYTES} and {MAX_EVENT_BYTES}"
        raise InvalidFrame(f"expected at most {limits}: got {sizes}")
    return sizes


def read_request(data: bytes) -> HookRequest | None:
    """Return the request at the start of the data, None if it is incomplete; InvalidFrame."""
    line_end = data.find(b"\n", 0, MAX_LINE_BYTES) + 1
    if not line_end and len(data) < MAX_LINE_BYTES:
        return None
    sizes = parse_line(data[: line_end or MAX_LINE_BYTES])
    body_at = line_end + sizes.header
    end = body_at + sizes.body
    return None if len(data) < end else parse_request(data[line_end:body_at], data[body_at:end])


def parse_request(header: bytes, body: bytes) -> HookRequest:
    """Return the request of a header and a body; unknown entries are ignored. InvalidFrame."""
    match = _HEADER.fullmatch(header)
    if match is None:
        raise InvalidFrame(f"expected {_EXPECTED_HEADER}, each ended by a NUL: got {header!r}")
    kind, agent, id, pid, entries = match.groups()
    name = agent.decode("utf-8", "replace")
    wants_receipt = entries.startswith(WANTS_RECEIPT)
    env = _parse_env(entries)
    return HookRequest(_KINDS[kind], name, id.decode(), int(pid), env, body, wants_receipt)


def _parse_env(entries: bytes) -> dict[str, str]:
    pairs = [entry.partition("=") for entry in entries.decode("utf-8", "replace").split("\0")]
    return {name[len(_ENV) :]: value for name, _, value in pairs if name.startswith(_ENV)}


def encode_reply(text: bytes, receipt: bytes = b"") -> bytes:
    """Return a reply as it goes over the socket; raises InvalidFrame if it is too large."""
    size = max(len(text), len(receipt))
    if size > MAX_REPLY_BYTES:
        raise InvalidFrame(f"expected a reply of at most {MAX_REPLY_BYTES} bytes: got {size}")
    receipt_size = b" %d" % len(receipt) if receipt else b""
    return b"%b%d%b\n%b%b" % (PREFIX, len(text), receipt_size, text, receipt)


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """The messages and the handoff document in one answer; `session` is the document's."""

    messages: tuple[str, ...] = ()
    handoff: str | None = None
    session: str = ""


_decoder = JsonDecoder(Receipt)


def encode_receipt(reply: Reply) -> bytes:
    """Return the receipt of an answer."""
    return msgspec.json.encode(Receipt(reply.message_ids, reply.handoff_id, reply.session))


def decode_receipt(data: bytes) -> Reply:
    """Return what was delivered, as the answer had it; raises MalformedJson."""
    receipt = _decoder.decode(data)
    return Reply(message_ids=receipt.messages, handoff_id=receipt.handoff, session=receipt.session)
