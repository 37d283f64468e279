"""A parser and editor of JSON with comments, which keeps everything that it does not change."""

from brimline.files.jsonc.edit import insert, remove, replace, to_json
from brimline.files.jsonc.parse import (
    BYTE_ORDER_MARK,
    MAX_DEPTH,
    WHITESPACE,
    Dialect,
    Document,
    Json,
    JsonPath,
    Value,
    parse,
)

__all__ = [
    "BYTE_ORDER_MARK",
    "MAX_DEPTH",
    "WHITESPACE",
    "Dialect",
    "Document",
    "Json",
    "JsonPath",
    "Value",
    "insert",
    "parse",
    "remove",
    "replace",
    "to_json",
]
