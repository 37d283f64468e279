"""What is searched for: words and phrases, which must all be in a passage.

Text is compared as it was typed, without regard to case; no character of it is an operator.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from unicodedata import category, normalize

from brimline.errors import InvalidRequest

MAX_TERMS = 16
MAX_QUERY_CHARS = 1_000

EXAMPLE = 'For example: brimline recall port 5432 "connection refused"'

# Languages without spaces between words: each character is a word of its own.
_JOINED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
_QUOTED_OR_WORD = re.compile(r'"([^"]*)"?|([^\s"]+)')


class Term:
    """A word or phrase; a plain word that `may_go_on` also finds longer words."""

    def __init__(self, text: str, may_go_on: bool = False) -> None:
        self.text = " ".join(text.split())
        self.may_go_on = may_go_on and self.text.isalpha() and not _JOINED.search(self.text)

    @property
    def index_query(self) -> str:
        """The term in the syntax of FTS5; empty if the index cannot find it.

        It finds every passage with the term, and others with the same letters and digits.
        """
        if not any(category(character)[0] in "LN" for character in self.text):
            return ""
        quoted = separate_joined(self.text).replace('"', '""')
        return f'"{quoted}"*' if self.may_go_on else f'"{quoted}"'

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the term as it was typed, from the start of a word to the end of one."""
        body = r"\s+".join(map(re.escape, self.text.split()))
        return re.compile(self._before + body + self._after, re.IGNORECASE)

    @cached_property
    def longest_word(self) -> str:
        """In lower case; a text without it need not be searched."""
        return max(self.text.lower().split(), key=len)

    @property
    def _before(self) -> str:
        first = self.text[0]
        if not first.isalnum() or _JOINED.match(first):
            return ""
        return r"(?<![^\W_])" + (r"(?<!\d[.,])" if first.isdigit() else "")

    @property
    def _after(self) -> str:
        last = self.text[-1]
        if self.may_go_on or not last.isalnum() or _JOINED.match(last):
            return ""
        return r"(?![^\W_])" + (r"(?![.,]\d)" if last.isdigit() else "")


class RecallQuery:
    """Terms that a passage must all contain."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self.terms = tuple({term.text.casefold(): term for term in terms if term.text}.values())

    @property
    def index_query(self) -> str:
        """The query in the syntax of FTS5; empty if the index cannot find any term."""
        return " ".join(filter(None, (term.index_query for term in self.terms)))

    @property
    def has_phrases(self) -> bool:
        return any(" " in term.text for term in self.terms)

    def split_phrases(self) -> "RecallQuery":
        """Return the query for the words of the phrases, wherever they stand."""
        words = (word for term in self.terms for word in term.text.split())
        return RecallQuery(Term(word, may_go_on=True) for word in words)

    def find_lines(self, text: str) -> tuple[str, ...] | None:
        """Return the line in which each term stands first; None if one is missing."""
        folded = text.lower()  # a pattern without regard to case takes ten times as long
        lines: list[str] = []
        for term in self.terms:
            place = folded.find(term.longest_word)
            if place < 0:
                return None
            start = place - len(term.text) if len(folded) == len(text) else 0
            match = term.pattern.search(text, max(0, start))
            if match is None:
                return None
            lines.append(_line_around(text, match.start()))
        return tuple(lines)


def parse_query(words: Iterable[str]) -> RecallQuery:
    """Return the query for words, each of which may have quotation marks; raises InvalidRequest.

    A word with spaces is a phrase, as a shell passes what was quoted.
    """
    given = [normalize("NFC", word) for word in words]
    if sum(map(len, given)) > MAX_QUERY_CHARS:
        raise InvalidRequest(f"expected at most {MAX_QUERY_CHARS:,} characters to search for")
    query = RecallQuery(term for word in given for term in _terms(word))
    if not query.terms:
        raise InvalidRequest("nothing to search for", EXAMPLE)
    if len(query.terms) > MAX_TERMS:
        raise InvalidRequest(f"expected at most {MAX_TERMS} words: got {len(query.terms)}")
    return query


def parse_text(text: str) -> RecallQuery:
    """Return the query for words in one text, phrases in quotation marks; raises InvalidRequest."""
    return parse_query(match[0] for match in _QUOTED_OR_WORD.finditer(text))


def _terms(word: str) -> Iterator[Term]:
    if '"' not in word:
        yield Term(word, may_go_on=True)
        return
    for match in _QUOTED_OR_WORD.finditer(word):
        yield Term(match[2], may_go_on=True) if match[1] is None else Term(match[1])


def _line_around(text: str, place: int) -> str:
    end = text.find("\n", place)
    return text[text.rfind("\n", 0, place) + 1 : len(text) if end < 0 else end]


def separate_joined(text: str) -> str:
    """Put spaces around each character that is a word of its own, for the index."""
    return text if text.isascii() else _JOINED.sub(r" \g<0> ", text)
