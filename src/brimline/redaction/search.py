"""Find all recognisable credentials in a text."""

import re
from collections.abc import Iterator

from brimline.redaction.assignments import (
    find_named_values,
    find_names,
    find_option_values,
    find_random_values,
)
from brimline.redaction.formats import OWN_RULES
from brimline.redaction.prose import find_prose_secrets
from brimline.redaction.rules import (
    MASK,
    SearchedText,
    Span,
    load_imported_rules,
    merge_spans,
)

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_FOLLOWS = re.compile(r"(?:\s|\\[rn]|[>|\"'+]){0,20}(?:[A-Za-z0-9+/=]{16}|[A-Z][\w-]{2,20}: )")
_KEY_LINE = re.compile(r"[>|\s]*(?:\d{1,6}[\t→:|]\s*)?[A-Za-z0-9+/=]+\Z")
_LINE_NUMBER = re.compile(r"\d{1,6}[\t→:|]?\Z")
_KEY_PART = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{16,}\Z")

# Blocks of shorter lines are words, not keys.
MIN_KEY_LINE_CHARS = 32


def mask_secrets(text: str) -> str:
    """Replace the credentials in a text by a mask."""
    parts: list[str] = []
    place = 0
    for start, end in find_secrets(text):
        parts += (text[place:start], MASK)
        place = end
    return "".join((*parts, text[place:]))


def find_secrets(text: str) -> list[Span]:
    """Return the spans of credentials in a text, sorted and disjoint."""
    return merge_spans([span for span in _find_spans(text) if span[0] < span[1]])


def _find_spans(text: str) -> Iterator[Span]:
    searched = SearchedText(text)
    lower = searched.lower
    if "private key" in lower:
        yield from _find_private_keys(text)
    for rule in (*OWN_RULES, *load_imported_rules()):
        yield from rule.find_spans(searched)
    places = find_names(lower)
    yield from find_named_values(text, lower, places)
    yield from find_option_values(text, lower)
    yield from find_random_values(text)
    yield from find_prose_secrets(searched, places)


def _find_private_keys(text: str) -> Iterator[Span]:
    """Yield private keys in PEM, also if the beginning or the end was cut off."""
    place = 0
    while begin := _BEGIN.search(text, place):
        place = begin.end()
        if _KEY_FOLLOWS.match(text, place):
            end = _END.search(text, place)
            place = end.end() if end else len(text)
            yield begin.start(), place
    before = 0
    for end in _END.finditer(text):
        start = _first_key_line(text, before, end.start())
        before = end.end()
        if start is not None:
            yield start, end.end()


def _first_key_line(text: str, limit: int, place: int) -> int | None:
    """Return the start of a key's lines before its last line; None if there are none."""
    first, longest = None, 0
    while place > limit:
        line_start = max(limit, text.rfind("\n", limit, place - 1) + 1)
        line = text[line_start:place].strip()
        if _LINE_NUMBER.match(line):
            line = ""
        if line and not _KEY_LINE.match(line):
            # The first remaining line may follow other words.
            part = _KEY_PART.search(line)
            if part:
                return line_start + text[line_start:place].index(part[0])
            break
        if not line and first is not None:
            break
        if line:
            first, longest = line_start, max(longest, len(line))
        place = line_start
    return first if longest >= MIN_KEY_LINE_CHARS else None
