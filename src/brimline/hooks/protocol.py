"""What goes over the hook socket, and into the spool: one request, one reply, one byte.

    request  `BRIMLINE 1 <header bytes> <body bytes>\\n`, the header, the body
    reply    `BRIMLINE 1 <bytes>\\n`, the bytes, which go to the agent as they are; or
             `BRIMLINE 1 <bytes> <receipt bytes>\\n`, the bytes, the receipt
    then     0x06 from the client, when the agent has them; the daemon waits for it where it
             matters, and else hangs up behind the reply
    then     0x06 from the daemon, when it has stored that they were delivered

A receipt comes only with an answer that has to be delivered once, and only to a client whose header
has `receipt=1`; clients and daemons of earlier versions know nothing of it. A client that does not
get the last byte appends a record of kind `delivered` to the spool, with the receipt as its body:
the daemon may have died before it stored the delivery.

The header is `key=value` entries, each ended by a NUL: kind, agent, id (`<unix ns>-<pid>`) and pid,
the process that ran the client, the agent's mostly; then `env.NAME` for the variables that are set
of those that matter. The body is stdin, as far as it came in time, up to MAX_EVENT_BYTES;
in the spool it has only the fields that the daemon reads (payload.py).
exchange.py, client.c and the extensions' code (setup/extension.js) write requests and read replies.
"""

import re
from typing import NamedTuple, get_args

from brimline.agents.hook_adapter import HookRequest, RequestKind
from brimline.errors import BrimlineError
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
_REPLY_LINE = re.compile(rb"BRIMLINE 1 ([0-9]{1,9})(?: ([0-9]{1,9}))?\n")
_HEADER = re.compile(
    rb"kind=(hook|statusline|delivered)\0agent=([^\0]+)\0id=([0-9]{1,20}-[0-9]{1,10})\0pid=([0-9]{1,10})\0"
    rb"((?:[^\0]*\0)*)"
)
_NEEDED = "kind=hook, statusline or delivered, agent=, id=<unix ns>-<pid> and pid= in this order"
_LINE = "expected `BRIMLINE 1 <header> <body>`"
_ENV = "env."
_RECEIPT = WANTS_RECEIPT.decode()


class InvalidFrame(BrimlineError):
    """Bytes that are no request or reply; `problem` says what was expected and what came."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"not a frame of the hook socket: {problem}")


class Sizes(NamedTuple):
    """How many bytes follow a request's first line."""

    header: int
    body: int


def parse_line(line: bytes) -> Sizes:
    """The sizes that a request's first line announces; raises InvalidFrame."""
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise InvalidFrame(f"{_LINE}: got {line[:MAX_LINE_BYTES]!r}")
    return _sizes(found)


def _sizes(line: re.Match[bytes]) -> Sizes:
    sizes = Sizes(int(line[1]), int(line[2]))
    if sizes.header > MAX_HEADER_BYTES or sizes.body > MAX_EVENT_BYTES:
        raise InvalidFrame(
            f"expected at most {MAX_HEADER_BYTES} and {MAX_EVENT_BYTES}: got {sizes}"
        )
    return sizes


def read_request(data: bytes | bytearray) -> HookRequest | None:
    """The request that begins here, None while it is not all there; raises InvalidFrame."""
    line = _REQUEST_LINE.match(data)
    if line is None:
        if len(data) < MAX_LINE_BYTES and b"\n" not in data:
            return None
        raise InvalidFrame(f"{_LINE}: got {bytes(data[:MAX_LINE_BYTES])!r}")
    sizes, begin = _sizes(line), line.end()
    body = begin + sizes.header
    end = body + sizes.body
    return None if len(data) < end else _request(data, begin, body, bytes(data[body:end]))


def parse_request(header: bytes | bytearray, body: bytes) -> HookRequest:
    """A request of its parts; raises InvalidFrame. An entry that is not known is passed over."""
    return _request(header, 0, len(header), body)


def _request(data: bytes | bytearray, begin: int, end: int, body: bytes) -> HookRequest:
    """A request whose header stands between two places."""
    found = _HEADER.fullmatch(data, begin, end)
    if found is None:
        header = bytes(data[begin:end])
        raise InvalidFrame(f"expected {_NEEDED}, each ended by a NUL: got {header!r}")
    kind, agent, id, pid, others = found.groups()
    env = _env(others) if others else {}
    name = agent.decode("utf-8", "replace")
    wants_receipt = others.startswith(WANTS_RECEIPT)
    return HookRequest(_KINDS[kind], name, id.decode(), int(pid), env, body, wants_receipt)


def _env(entries: bytes | bytearray) -> dict[str, str]:
    pairs = [entry.partition("=") for entry in entries.decode("utf-8", "replace").split("\0")]
    return {name[len(_ENV) :]: value for name, _, value in pairs if name.startswith(_ENV)}


def encode_request(request: HookRequest) -> bytes:
    """A request as it goes over the socket and into the spool."""
    told = [f"kind={request.kind}", f"agent={request.agent}", f"id={request.id}"]
    told += [f"pid={request.pid}", *(f"{_ENV}{k}={v}" for k, v in request.env.items())]
    if request.wants_receipt:
        told.insert(4, _RECEIPT.rstrip("\0"))
    header = "".join(f"{entry}\0" for entry in told).encode()
    return b"%b%d %d\n%b%b" % (PREFIX, len(header), len(request.body), header, request.body)


def encode_reply(text: bytes, receipt: bytes = b"") -> bytes:
    """A reply as it goes over the socket; raises InvalidFrame where no client would take it."""
    size = max(len(text), len(receipt))
    if size > MAX_REPLY_BYTES:
        raise InvalidFrame(f"expected a reply of at most {MAX_REPLY_BYTES} bytes: got {size}")
    if not receipt:
        return b"%b%d\n%b" % (PREFIX, len(text), text)
    return b"%b%d %d\n%b%b" % (PREFIX, len(text), len(receipt), text, receipt)


def parse_reply(data: bytes) -> bytes | None:
    """What a reply tells, None while it is not all there; raises InvalidFrame."""
    parts = parse_reply_parts(data)
    return None if parts is None else parts[0]


def parse_reply_parts(data: bytes) -> tuple[bytes, bytes] | None:
    """The text and the receipt of a reply, None while they are not all there; InvalidFrame."""
    line, ended, rest = data.partition(b"\n")
    if not ended and len(line) < MAX_LINE_BYTES:
        return None
    found = _REPLY_LINE.fullmatch(line + ended)
    if found is None or max(sizes := [int(size or 0) for size in found.groups()]) > MAX_REPLY_BYTES:
        raise InvalidFrame(f"expected `BRIMLINE 1 <bytes>`: got {line[:MAX_LINE_BYTES]!r}")
    text, receipt = sizes
    if len(rest) < text + receipt:
        return None
    return rest[:text], rest[text : text + receipt]
