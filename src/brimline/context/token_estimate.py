"""Estimate the tokens of texts and messages without a tokenizer, rather too high than too low.

bench/estimate.py compares it with three tokenizers on 76 kinds of content.
"""

import base64
import binascii
import json
import re
from bisect import bisect
from collections import Counter as Occurrences
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from math import ceil
from typing import TypeAlias, cast

import msgspec

from brimline.context.usage import IMAGE_TOKENS

Counter: TypeAlias = Callable[[str], int]

# Tokens by class of characters, fitted on about 270 kinds of content, of which the bench has some:
# at least what the highest of three tokenizers counts, with the least excess on prose and code.
WORD_TOKENS = 1.38  # a word, or a part of a camelCase name
LONG_WORD_TOKENS = 0.55  # each letter of a word behind the first SHORT_WORD
VOWEL_TOKENS = 1.5  # added for a word that ends in a, i, o or u: few English ones do
ENGLISH_TOKENS = 1.05  # a frequent word, and a long one with an English ending
CAPITAL_TOKENS = (
    0.4  # each letter of a word in capitals; runs of more than LONGEST_CAPITALS are ids
)
NUMBER_TOKENS, DIGIT_TOKENS = 1.1, 0.42  # a number, and each of its digits
MIXED_TOKENS = 0.85  # each character of base64, hex and ids: letters and digits, or random capitals
PUNCTUATION_TOKENS = 0.74
LINE_TOKENS = 0.5  # a line break with its indentation
SPACES_TOKENS = 0.7  # a run of two or more spaces
CONTROL_TOKENS = 0.7  # a tab, and a control character
SHORT_WORD, LONGEST_CAPITALS = 5, 16

_FREQUENT = (
    "a all an and are as at be been but by can class def do does each else first for from get "
    "had has have if import in is it its may more must new no not of on one only or other our "
    "return self set so than that the their there they this time to up use used was we were "
    "what when which who will with would you your"
)
FREQUENT_WORDS = frozenset(_FREQUENT.split())

# Characters that are not ASCII: each block's first code point, and the tokens of a character.
# Rare scripts take one token for each byte. Letters that few languages have stand for words that
# are many tokens.
BLOCKS = (
    (0x80, 1.7),  # signs of Latin-1
    (0xC0, 0.85),  # letters of Latin-1
    (0x100, 3.6),  # other Latin letters
    (0x300, 1.5),  # combining marks
    (0x370, 1.27),  # Greek
    (0x400, 4.0),  # Cyrillic that is not Russian
    (0x410, 0.67),  # Russian
    (0x450, 4.0),
    (0x530, 2.25),  # Armenian
    (0x590, 1.27),  # Hebrew
    (0x600, 1.15),  # Arabic
    (0x670, 2.2),  # its letters of other languages, and Syriac
    (0x780, 3.2),
    (0x900, 1.3),  # Devanagari
    (0x980, 2.3),  # Bengali
    (0xA00, 3.2),
    (0xB80, 2.12),  # Tamil
    (0xC00, 3.2),
    (0xE00, 1.88),  # Thai
    (0xE80, 3.2),
    (0x1000, 2.3),  # Burmese, Georgian
    (0x1100, 3.2),
    (0x1E00, 1.0),  # Vietnamese
    (0x1F00, 3.2),
    (0x2000, 0.8),  # typographic signs
    (0x2190, 2.3),  # arrows, mathematical signs
    (0x2500, 0.95),  # boxes
    (0x2580, 2.0),  # blocks, shapes, signs
    (0x2800, 3.2),  # Braille
    (0x2E80, 1.6),  # Chinese
    (0x3040, 1.25),  # Japanese
    (0x3100, 1.6),
    (0xA000, 3.2),
    (0xAC00, 1.42),  # Hangul
    (0xD7B0, 3.2),
    (0xFF00, 1.42),  # full-width forms
    (0x10000, 3.4),  # emoji
)

_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]+")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ENGLISH = re.compile(r"(?:tion|ing|ment|ed|able|ity|ance|ence|ive|ate|ly|er|al)s?$")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_LINE = re.compile(r"\n[ \t]*")
_SPACES = re.compile(r"(?<![\n \t])[ \t]{2,}")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_FIRSTS = [first for first, _ in BLOCKS]

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
    tokens += CONTROL_TOKENS * len(_CONTROL.findall(text))
    if not text.isascii():
        characters = Occurrences[str](_NOT_ASCII.findall(text))
        tokens += sum(_character_tokens(each) * times for each, times in characters.items())
    return ceil(tokens)


def _character_tokens(character: str) -> float:
    return BLOCKS[bisect(_FIRSTS, ord(character)) - 1][1]


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
        return CAPITAL_TOKENS * size
    if piece.lower() in FREQUENT_WORDS or (size > SHORT_WORD and _ENGLISH.search(piece)):
        return ENGLISH_TOKENS
    ends_in_vowel = size > 3 and piece[-1] in "aiou"
    word = WORD_TOKENS + VOWEL_TOKENS * ends_in_vowel
    return word + LONG_WORD_TOKENS * max(0, size - SHORT_WORD)


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
