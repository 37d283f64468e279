"""Estimate the tokens of texts and messages without a tokenizer, rather too high than too low.

bench/estimate.py compares it with three tokenizers on 40 kinds of content.
"""

import base64
import binascii
import json
import re
from collections import Counter as Occurrences
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from math import ceil
from typing import TypeAlias, cast

import msgspec

from brimline.context.usage import IMAGE_TOKENS

Counter: TypeAlias = Callable[[str], int]

# Tokens by class of characters, fitted on the kinds of bench/content_kinds.py: no kind is below the
# highest of the tokenizers, with the least excess on prose and code.
WORD_TOKENS = 1.36  # a word, or a part of a camelCase name
LONG_WORD_TOKENS = 0.7  # each letter of a word behind the first SHORT_WORD
CAPITAL_TOKENS = (
    0.25  # each letter of a word in capitals; longer runs than LONGEST_CAPITALS are no words
)
NUMBER_TOKENS, DIGIT_TOKENS = 0.86, 0.42  # a number, and each of its digits
MIXED_TOKENS = 0.75  # each character of base64, hex and ids: letters and digits, or random capitals
PUNCTUATION_TOKENS = 0.68
LINE_TOKENS = 0.36  # a line break with its indentation
SPACES_TOKENS = 0.1  # a run of two or more spaces, and a space before a number
SHORT_WORD, LONGEST_CAPITALS = 6, 16

# Of text without ASCII letters, each character by its script.
SCRIPTS = (
    ("[\u0080-\u02ff]", 0.4),  # Latin with accents: the words around them are shorter
    ("[\u0300-\u058f]", 0.64),  # Greek, Cyrillic, Armenian
    ("[\u0590-\u07ff]", 1.15),  # Hebrew, Arabic
    ("[\u2000-\u2bff]", 0.5),  # typographic signs, boxes and arrows
    ("[\u2e80-\ua4cf\uff00-\uffef]", 1.14),  # Chinese, Japanese
    ("[\u0800-\u1fff\u2c00-\u2e7f\ua4d0-\ufeff]", 1.43),  # Indic and South-East Asian, Hangul
    ("[\U00010000-\U0010ffff]", 3.4),  # emoji
)

_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]+")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_LINE = re.compile(r"\n[ \t]*")
_SPACES = re.compile(r"(?<![\n \t])[ \t]{2,}| (?=[0-9])")
_SCRIPTS = [(re.compile(characters), tokens) for characters, tokens in SCRIPTS]

MIXED_PIECE_CHARS = 3.2  # letters and digits change more often than this in an id, not in a name
LEAST_MIXED = 4

PDF_PAGE_TOKENS = 3_000  # the text of a full page, and its picture
PDF_PAGE_BYTES = 50_000  # of a file that does not show its pages
_PDF_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PDF_COUNT = re.compile(rb"/(?:Count|N)\s+(\d{1,6})\b")

# Fields whose value is sent as JSON, with its keys.
JSON_FIELDS = frozenset(
    {"args", "arguments", "input", "input_schema", "inputSchema", "parameters", "response"}
)
# Encrypted fields, which are not sent as text.
ENCRYPTED_FIELDS = frozenset(
    {"encrypted_content", "signature", "thoughtSignature", "thought_signature"}
)
ENCRYPTED_TOKENS = 0.3  # for each character
MEDIA_TYPES = ("media_type", "mime_type", "mimeType")


def estimate(text: str) -> int:
    """Estimate the tokens of a text by its classes of characters."""
    runs = Occurrences[str](_ALPHANUMERIC.findall(text))  # words are frequent: each counts once
    tokens = sum(_estimate_run(run) * times for run, times in runs.items())
    tokens += PUNCTUATION_TOKENS * len(_PUNCTUATION.findall(text))
    tokens += LINE_TOKENS * len(_LINE.findall(text)) + SPACES_TOKENS * len(_SPACES.findall(text))
    if not text.isascii():
        tokens += sum(each * len(characters.findall(text)) for characters, each in _SCRIPTS)
    return ceil(tokens)


def _estimate_run(run: str) -> float:
    pieces: list[str] = _PIECE.findall(run)
    if len(pieces) > 1 and LEAST_MIXED <= len(run) < MIXED_PIECE_CHARS * len(pieces):
        return MIXED_TOKENS * len(run)
    return sum(map(_estimate_piece, pieces))


def _estimate_piece(piece: str) -> float:
    size = len(piece)
    if piece[0].isdigit():
        return NUMBER_TOKENS + DIGIT_TOKENS * size
    if size > LONGEST_CAPITALS and piece.isupper():
        return MIXED_TOKENS * size
    if size > 1 and piece.isupper():
        return max(1.0, CAPITAL_TOKENS * size)
    return WORD_TOKENS + LONG_WORD_TOKENS * max(0, size - SHORT_WORD)


def estimate_messages(content: object, count: Counter = estimate) -> int:
    """Estimate the tokens of messages, as dicts or objects of an SDK, by all that is in them.

    `count` returns the tokens of a text. Images count IMAGE_TOKENS, PDFs by their pages.
    """
    match content:
        case str():
            is_media = content.startswith("data:") and ";base64," in content[:100]
            return _media_tokens(content[5:100], content) if is_media else count(content)
        case None | bool():
            return 0
        case int() | float():
            return count(repr(content))
        case bytes():
            return _media_tokens("", content)
        case Mapping():
            return _estimate_fields(cast("Mapping[object, object]", content), count)
        case list() | tuple() | Set():
            return sum(estimate_messages(item, count) for item in cast("Sequence[object]", content))
        case _:
            return _estimate_fields(_fields_of(content), count)


def _estimate_fields(values: Mapping[object, object], count: Counter) -> int:
    media = next((kind for name in MEDIA_TYPES if isinstance(kind := values.get(name), str)), "")
    data = values.get("data")
    is_base64 = values.get("type") == "base64" or (media and not media.startswith("text/"))
    if is_base64 and isinstance(data, (str, bytes)):
        return _media_tokens(media, data)
    if values.get("type") == "base64":
        return IMAGE_TOKENS
    return sum(_estimate_field(name, value, count) for name, value in values.items())


def _estimate_field(name: object, value: object, count: Counter) -> int:
    if name in ENCRYPTED_FIELDS and isinstance(value, (str, bytes)):
        return ceil(len(value) * ENCRYPTED_TOKENS)
    if name in JSON_FIELDS and isinstance(value, (Mapping, list, tuple)):
        return count(_to_json(cast("object", value)))
    return estimate_messages(value, count)


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda each: _fields_of(each) or str(each))


def _fields_of(value: object) -> dict[object, object]:
    """The public fields of an object: of a dataclass, a struct, or a class with slots, too."""
    if isinstance(value, msgspec.Struct):
        names: Sequence[str] = value.__struct_fields__
    elif is_dataclass(value):
        names = [field.name for field in fields(value)]
    else:
        slots = (getattr(kind, "__slots__", ()) for kind in type(value).__mro__)
        listed = [(each,) if isinstance(each, str) else each for each in slots]
        names = [*getattr(value, "__dict__", ()), *(name for each in listed for name in each)]
    return {name: getattr(value, name, None) for name in names if not name.startswith("_")}


def _media_tokens(kind: str, data: str | bytes) -> int:
    """The tokens of an image or a file, whatever its size in bytes; of a PDF by its pages."""
    if "pdf" not in kind and not _is_pdf(data):
        return IMAGE_TOKENS
    file = _decode(data)
    shown = (int(number) for number in _PDF_COUNT.findall(file))
    pages = max((len(_PDF_PAGE.findall(file)), *shown))
    return PDF_PAGE_TOKENS * (pages or ceil(len(file) / PDF_PAGE_BYTES))


def _is_pdf(data: str | bytes) -> bool:
    return isinstance(data, bytes) and data.startswith(b"%PDF")


def _decode(data: str | bytes) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        return base64.b64decode(data.rpartition(",")[2])
    except binascii.Error:
        return data.encode()
