"""The body of an OTLP request: its encoding, and its decompression up to a size."""

import zlib

from starlette.requests import Request

from brimline.api.responses import RequestRefused
from brimline.api.telemetry import otlp_json
from brimline.api.telemetry.records import OtlpEncoding

MAX_DECOMPRESSED_BYTES = 16 << 20
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
        from brimline.api.telemetry import otlp_protobuf
    except ImportError as error:
        raise RequestRefused(415, NO_PROTOBUF, JSON_HINT) from error
    return otlp_protobuf


async def read_decompressed(request: Request) -> bytes:
    """Return the body, decompressed if it is gzip, up to a size; raises RequestRefused."""
    body = await request.body()
    coding = request.headers.get("content-encoding", "identity")
    if coding == "identity":
        return body
    if coding != "gzip":
        raise RequestRefused(415, f"expected Content-Encoding gzip, or none: got {coding!r}")
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        decompressed = decompressor.decompress(body, MAX_DECOMPRESSED_BYTES)
    except zlib.error as error:
        raise RequestRefused(400, f"the body is not gzip: {error}") from error
    if decompressor.unconsumed_tail:
        limit = f"{MAX_DECOMPRESSED_BYTES >> 20} MiB"
        raise RequestRefused(413, f"the decompressed body is larger than {limit}")
    if not decompressor.eof:
        raise RequestRefused(400, "the body is not gzip: it ends too early")
    return decompressed
