"""The client's side of the hook protocol, for tests and benchmarks: requests out, replies in."""

import re

from brimline.agents.hook_adapter import HookRequest
from brimline.hooks.client.exchange import MAX_LINE_BYTES, MAX_REPLY_BYTES, PREFIX, WANTS_RECEIPT
from brimline.hooks.protocol import InvalidFrame

_REPLY_LINE = re.compile(rb"BRIMLINE 1 ([0-9]{1,9})(?: ([0-9]{1,9}))?\n")


def encode_request(request: HookRequest) -> bytes:
    """Return a request as it goes over the socket and into the spool."""
    entries = [f"kind={request.kind}", f"agent={request.agent}", f"id={request.id}"]
    entries.append(f"pid={request.pid}")
    entries += [WANTS_RECEIPT.decode().rstrip("\0")] if request.wants_receipt else []
    entries += [f"env.{name}={value}" for name, value in request.env.items()]
    header = "".join(f"{entry}\0" for entry in entries).encode()
    return b"%b%d %d\n%b%b" % (PREFIX, len(header), len(request.body), header, request.body)


def parse_reply(data: bytes) -> bytes | None:
    """Return the text of a reply, None if it is incomplete; raises InvalidFrame."""
    parts = parse_reply_parts(data)
    return None if parts is None else parts[0]


def parse_reply_parts(data: bytes) -> tuple[bytes, bytes] | None:
    """Return the text and the receipt of a reply, None if it is incomplete; InvalidFrame."""
    line, newline, rest = data.partition(b"\n")
    if not newline and len(line) < MAX_LINE_BYTES:
        return None
    match = _REPLY_LINE.fullmatch(line + newline)
    if match is None or max(sizes := [int(size or 0) for size in match.groups()]) > MAX_REPLY_BYTES:
        raise InvalidFrame(f"expected `BRIMLINE 1 <bytes>`: got {line[:MAX_LINE_BYTES]!r}")
    text, receipt = sizes
    if len(rest) < text + receipt:
        return None
    return rest[:text], rest[text : text + receipt]
