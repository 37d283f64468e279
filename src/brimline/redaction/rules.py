"""Rules that find credentials by their format, and the import of those of detect-secrets."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import ascii_letters, digits

import msgspec

DATA = Path(__file__).parent.parent / "data" / "secret_rules.json"

# A rule is tried on lines with one of its keywords, up to this distance from it.
WINDOW_CHARS = 1024

# A rule for several lines is tried on this much text after the line of its keyword.
MORE_LINES_CHARS = 2048

LONG_WORD_CHARS = 24  # rules without a rare keyword are tried on lines with a word of this length

# Shortest secret that contains its keyword: `sk-` and eight characters.
SECRET_WORD_CHARS = 11

_WORD_CHARACTERS = f"-_.={ascii_letters}{digits}".encode()
_SPACES_BETWEEN_WORDS = bytes(code if code in _WORD_CHARACTERS else 32 for code in range(256))
_DIGIT = re.compile(r"\d")
_REST_OF_WORD = re.compile(r"[\w+/=~-]*(?:\.[\w+/=~-]+)*")
_AROUND = " \t\r\n\"'`:"

MASK = "***"
Span = tuple[int, int]


class SearchedText:
    """A text with its lower case and its long words, which all rules need."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = _lower_in_place(text)
        # Cutting the text into words once spares a search of the whole text for most keywords.
        words = text.encode("utf-8", "replace").translate(_SPACES_BETWEEN_WORDS).split()
        long_words = b"\n".join(word for word in words if len(word) >= SECRET_WORD_CHARS)
        self._words = long_words.decode("ascii")

    def may_hold(self, keyword: str) -> bool:
        """Return whether a keyword is part of a word that is long enough for a secret."""
        return keyword in self._words

    def lines_with(self, keyword: str, *, ignore_case: bool) -> Iterator[Span]:
        """Yield the lines with a keyword, each once; of a long line the part near it."""
        where = self.lower if ignore_case else self.text
        place = where.find(keyword)
        while place >= 0:
            start, end = self.line_around(place)
            yield start, end
            place = where.find(keyword, max(place + 1, min(end, place + WINDOW_CHARS)))

    def lines_with_long_words(self) -> Iterator[Span]:
        """Yield the lines with a long word, each once; of a long line the part near it."""
        place = done = 0
        for word in self._words.split("\n"):
            if len(word) < LONG_WORD_CHARS:
                continue
            place = self.text.find(word, place)
            if place >= done:
                start, end = self.line_around(place)
                yield start, end
                done = min(end, place + WINDOW_CHARS)
            place += len(word)

    def line_around(self, place: int) -> Span:
        """Return the line at a place, of a long line the part near it.

        It begins with the preceding line break, which some patterns match.
        """
        first = max(0, place - WINDOW_CHARS)
        end = self.text.find("\n", place, place + 2 * WINDOW_CHARS)
        start = max(first, self.text.rfind("\n", first, place))
        return start, min(len(self.text), place + 2 * WINDOW_CHARS) if end < 0 else end


class SecretRule(msgspec.Struct, frozen=True):
    """A pattern, keywords of which every match contains one, and the group of the secret."""

    id: str
    keywords: tuple[str, ...]
    regex: str
    group: int = 0
    ignore_case: bool = False  # keywords are then in lower case
    # Whether the keyword is part of the secret, a word of at least SECRET_WORD_CHARS.
    in_word: bool = False
    long_word: bool = False  # keywords are frequent; the secret has LONG_WORD_CHARS
    more_lines: bool = False

    def find_spans(self, searched: SearchedText) -> Iterator[Span]:
        for start, end in self._lines(searched):
            more = MORE_LINES_CHARS if self.more_lines else 0
            yield from self._spans_between(searched.text, start, end + more)

    def _lines(self, searched: SearchedText) -> Iterator[Span]:
        if not self.long_word:
            for keyword in self.keywords:
                if self.in_word and not searched.may_hold(keyword):
                    continue
                yield from searched.lines_with(keyword, ignore_case=self.ignore_case)
            return
        where = searched.lower if self.ignore_case else searched.text
        for start, end in searched.lines_with_long_words():
            if any(where.find(keyword, start, end) >= 0 for keyword in self.keywords):
                yield start, end

    def _spans_between(self, text: str, place: int, end: int) -> Iterator[Span]:
        pattern = _compile_rule(self.regex, self.ignore_case)
        while match := pattern.search(text, place, end):
            span = _whole_word(text, *match.span(self.group), trim=not self.group)
            # Names in code are long words too; random ones of that length have digits.
            if not self.long_word or _DIGIT.search(text, *span):
                yield span
            place = max(span[1], match.end(), place + 1)


class RuleFile(msgspec.Struct, frozen=True):
    """The data file, as scripts/secret_rules.py writes it."""

    made_from: str
    rules: tuple[SecretRule, ...]


@cache
def load_imported_rules() -> tuple[SecretRule, ...]:
    """Read the data file, when a text is redacted for the first time."""
    return msgspec.json.decode(DATA.read_bytes(), type=RuleFile).rules


def merge_spans(spans: list[Span]) -> list[Span]:
    """Sort spans, and join those that touch or overlap."""
    whole: list[Span] = []
    for start, end in sorted(spans):
        if whole and start <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return whole


def _whole_word(text: str, start: int, end: int, *, trim: bool) -> Span:
    """Extend a match to the end of its word, beyond the pattern's length limit.

    Patterns without a group of their own for the secret can match the delimiters around it.
    """
    while trim and start < end and text[start] in "=" + _AROUND:
        start += 1
    while end > start and text[end - 1] in (_AROUND if trim else " \t\r\n"):
        end -= 1
    rest = _REST_OF_WORD.match(text, end)
    return start, rest.end() if rest else end


@cache
def _compile_rule(regex: str, ignore_case: bool) -> re.Pattern[str]:
    """Compile a rule when it is first needed: most texts need few."""
    return re.compile(regex, re.IGNORECASE if ignore_case else 0)


def _lower_in_place(text: str) -> str:
    """Return the text in lower case, with every character at its position."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
