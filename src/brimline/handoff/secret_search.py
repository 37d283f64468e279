"""Every credential that can be recognised in a text, by its place."""

import re
from collections.abc import Iterator

from brimline.handoff.assignments import (
    name_places,
    named_spans,
    option_spans,
    random_spans,
)
from brimline.handoff.secret_formats import OWN_RULES
from brimline.handoff.secret_prose import prose_spans
from brimline.handoff.secret_rules import SearchedText, Span, imported_rules, merged

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_FOLLOWS = re.compile(r"(?:\s|\\[rn]|[>|\"'+]){0,20}(?:[A-Za-z0-9+/=]{16}|[A-Z][\w-]{2,20}: )")
_KEY_LINE = re.compile(r"[>|\s]*(?:\d{1,6}[\t→:|]\s*)?[A-Za-z0-9+/=]+\Z")
_LINE_NUMBER = re.compile(r"\d{1,6}[\t→:|]?\Z")
_KEY_PART = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{16,}\Z")

MIN_KEY_LINE_CHARS = 32
"""Lines of text that are shorter are words, unless a longer one is among them."""


def find_secrets(text: str) -> list[Span]:
    """The places of the credentials in a text, in order and apart from each other."""
    return merged([span for span in _spans(text) if span[0] < span[1]])


def _spans(text: str) -> Iterator[Span]:
    searched = SearchedText(text)
    lower = searched.lower
    if "private key" in lower:
        yield from _private_keys(text)
    for rule in (*OWN_RULES, *imported_rules()):
        yield from rule.spans(searched)
    places = name_places(lower)
    yield from named_spans(text, lower, places)
    yield from option_spans(text, lower)
    yield from random_spans(text)
    yield from prose_spans(searched, places)


def _private_keys(text: str) -> Iterator[Span]:
    """Private keys in PEM, also if the beginning or the end was cut off."""
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
    """The start of the lines of a key before its last line; None if there are none."""
    first, longest = None, 0
    while place > limit:
        line_start = max(limit, text.rfind("\n", limit, place - 1) + 1)
        line = text[line_start:place].strip()
        if _LINE_NUMBER.match(line):
            line = ""
        if line and not _KEY_LINE.match(line):
            # The first line of what is left can stand behind other words.
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
