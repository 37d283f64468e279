"""The body of an OTLP request: its encoding, and unpacking it up to a size."""

import zlib

from starlette.requests import Request

from brimline.server.api.responses import RequestRefused
from brimline.server.telemetry import otlp_json
from brimline.server.telemetry.encoding import OtlpEncoding

MAX_UNPACKED_BYTES = 16 << 20
PROTOBUF_MEDIA = "application/x-protobuf"
UNKNOWN_MEDIA = "expected OTLP as JSON or protobuf"
PROTOCOL_HINT = "Set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf or http/json."
NO_PROTOBUF = "protobuf cannot be read: the package opentelemetry-proto is not installed"
JSON_HINT = "Install brimline[fleet], or set OTEL_EXPORTER_OTLP_PROTOCOL=http/json."


def find_encoding(request: Request) -> OtlpEncoding:
    """Return the encoding of a request's content type; raises RequestRefused."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == otlp_json.MEDIA:
        return otlp_json
    if media != PROTOBUF_MEDIA:
        raise RequestRefused(415, UNKNOWN_MEDIA, PROTOCOL_HINT)
    try:
        from brimline.server.telemetry import otlp_protobuf
    except ImportError as error:
        raise RequestRefused(415, NO_PROTOBUF, JSON_HINT) from error
    return otlp_protobuf


async def read_unpacked(request: Request) -> bytes:
    """Return the body, unpacked if it is gzip, up to a size; raises RequestRefused."""
    body = await request.body()
    packing = request.headers.get("content-encoding", "identity")
    if packing == "identity":
        return body
    if packing != "gzip":
        raise RequestRefused(415, f"expected gzip or no packing: got {packing!r}")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        unpacked = unpacker.decompress(body, MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise RequestRefused(400, f"the body is not gzip: {error}") from error
    if unpacker.unconsumed_tail:
        limit = f"{MAX_UNPACKED_BYTES >> 20} MiB"
        raise RequestRefused(413, f"the unpacked body is larger than {limit}")
    if not unpacker.eof:
        raise RequestRefused(400, "the body is not gzip: it ends too early")
    return unpacked
