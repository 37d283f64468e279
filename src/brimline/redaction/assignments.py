"""Find secrets by their names (`NAME_KEY=value`), and random values under any name."""

import math
import re
from collections import Counter
from collections.abc import Iterator

from brimline.redaction.names import JOINED_NAMES, NAME_WORDS, SPACED_NAMES
from brimline.redaction.rules import MASK, Span

MAX_VALUE_CHARS = 8192  # limit of the search for a closing quote

MAX_WORD_CHARS = 256  # longer words are judged by their beginning

MIN_RANDOM_CHARS = 20
MIN_PART_CHARS = 14
MIN_ENTROPY_BITS = 3.5  # per character. Random values of 20 characters or more have at least 3.6.

# The mean length of what looks like words in a random value; names in code have longer ones.
MAX_RUN_CHARS = 3.6

_KEY_KIND = re.compile(
    r"(?:api|access|account|private|secret|signing|encryption|master|deploy|client|service|auth|app"
    r"|license|storage|subscription|shared|ssh|hmac|priv)[ _-]?\Z"
)
_NAMED = re.compile(
    r"(?P<name>pass(?:word|wd|phrase|code)?|pwd?|secret(?:[ _-]?key(?:[ _-]?base)?)?|token"
    rf"|credentials?|key|{SPACED_NAMES}|{JOINED_NAMES})(?:[_-]?\d{{1,3}})?"
    r"(?P<close>(?:\\?['\"`])?\]?)(?P<before>[ \t\xa0\u202f]{0,9})"
    r"(?P<sign>:=|=>|:[ ]?[a-z_&][\w<>\[\].|?&]{0,40}[ ]=(?=[ ]?['\"`])|[:=：＝])(?![:=])"
    r"(?P<after>[ \t\xa0\u202f\u3000]{0,9}(?:\r?\n[ \t]{0,80}(?=['\"]))?)"
)
_OPTION = re.compile(
    r"--(?:[a-z0-9]{1,20}-){0,3}(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?"
    r"|(?:api|access|account|private|secret|auth)-?key)[ \t]{1,9}(?=[^\s-])"
)
_QUOTE = re.compile(r"[bruf@]{0,2}(\\?['\"`])")
_SHELL_WORD = re.compile(r"(?:'[^'\n]{0,1024}'|\"[^\"\n]{0,1024}\"|[^\s'\"&,;)]{1,1024}){1,8}")
_WORD = re.compile(r"[^\s:=(\[{<>|&'\"`]\S{0,256}")
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"\w")
_REST = re.compile(r"[^\s'\"`]*")
# What follows a value in languages without spaces between words.
_JOINED_LETTERS = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff01-\uff65]")
_LINE_END = re.compile(r"[ \t\r]{0,9}(?:[#\n]|\Z)")
_BLOCK = re.compile(r"[|>][+-]?[ \t]{0,9}\r?\n((?:[ \t]{1,80}\S[^\n]{0,4096}(?:\n|\Z)){1,100})")

_TYPES = frozenset(
    ("any", "bool", "boolean", "bytes", "false", "int", "integer", "nil", "none", "null", "number",
     "object", "optional", "read", "required", "str", "string", "true", "undefined", "unknown",
     "write")
)  # fmt: skip
_CODE = re.compile(r"[A-Za-z_][\w.:]*[(\[<]|[A-Za-z_]+(?:\.[A-Za-z_]+)+$")
# A variable, or a placeholder.
_REFERENCE = re.compile(
    r"\$(?:[({]|[A-Z_][A-Z0-9_]*\b|\d\b)|%[A-Z_]+%$|%[a-z]\b|\{[\w.{]*\}|<[\w -]{1,60}>"
    r"|\S{0,40}\.{3}|x{3,}$|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|(?i:your)[_-]"
)

# Words that follow an option in prose: no values.
_NO_VALUES = frozenset(("and", "argument", "flag", "for", "from", "if", "in", "is", "on", "option",
                        "or", "parameter", "should", "to", "when", "with"))  # fmt: skip


def find_names(lower: str) -> list[int]:
    """Return the positions of NAME_WORDS in a text in lower case, in order."""
    places: list[int] = []
    for word in NAME_WORDS:
        place = lower.find(word)
        while place >= 0:
            places.append(place)
            place = lower.find(word, place + 1)
    return sorted(places)


def find_named_values(text: str, lower: str, places: list[int]) -> Iterator[Span]:
    """Yield the values of names such as `password` and `API_KEY` at the given places."""
    done = 0
    for place in places:
        # A value can hold names of its own; it is masked whole, and not read again for each.
        match = _NAMED.match(lower, place) if place >= done else None
        span = _value_span(text, lower, match) if match else None
        if match and span and not _repeats_name(text, match, span):
            yield span
            done = span[1]


def find_option_values(text: str, lower: str) -> Iterator[Span]:
    """Yield the values of options such as `--token`."""
    place = lower.find("--")
    while place >= 0:
        end = place + 2
        if match := _OPTION.match(lower, place):
            start, end = _option_value(text, match.end())
            word = text[start:end].lower()
            if word not in _NO_VALUES and _unless_harmless(text, "password", start, end):
                yield start, end
        place = lower.find("--", max(end, place + 2))


def _value_span(text: str, lower: str, match: re.Match[str]) -> Span | None:
    name, place = match["name"], match.end()
    if name == "key" and not is_key_of_secret(text, lower, match.start()):
        return None
    if name == "pw" and lower[match.start() - 1 : match.start()].isalnum():
        return None
    direct = match["sign"] == "=" and not match["before"] and not match["after"]
    if direct and (word := _SHELL_WORD.match(text, place)):
        return _unless_harmless(text, name, place, _shell_end(text, match, word.end()))
    if quote := _QUOTE.match(text, place):
        end = text.find(quote[1], quote.end(), quote.end() + MAX_VALUE_CHARS)
        line_end = text.find("\n", quote.end(), quote.end() + MAX_VALUE_CHARS)
        if end > quote.end() and not 0 <= line_end < end:
            return _unless_harmless(text, name, quote.end(), end)
        return _single_word(text, name, quote.end(), match)
    if block := _BLOCK.match(text, place):
        return block.start(1), block.end(1) - block[1].endswith("\n")
    if name == "pass" and not text.startswith("_PASS", match.start() - 1):
        return None
    return _single_word(text, name, place, match)


def is_key_of_secret(text: str, lower: str, place: int) -> bool:
    """Return whether `key` is part of `API_KEY` or `private key`, not of `sort_key`."""
    is_constant = text.startswith("_KEY", place - 1)
    return is_constant or _KEY_KIND.search(lower, max(0, place - 14), place) is not None


def _shell_end(text: str, match: re.Match[str], end: int) -> int:
    """Return the end of a value in a command's environment, with `&`, `,` and `;`."""
    if text[match.start("name") : match.end("name")].isupper():
        rest = _REST.match(text, end)
        return rest.end() if rest else end
    return end


def _single_word(text: str, name: str, place: int, match: re.Match[str]) -> Span | None:
    """Return a word that is the last of its line or has a digit: sentences are skipped."""
    word = _WORD.match(text, place)
    if not word:
        return None
    joined = None if name.isascii() else _JOINED_LETTERS.search(word[0])
    whole = word[0][: joined.start()] if joined else word[0]
    value = whole.rstrip(",;)'\"" if "=" in match["sign"] else ",;:)]}'\"`")
    last = joined or _LINE_END.match(text, word.end()) is not None
    if not last and not _DIGIT.search(value):
        return None
    span = _unless_harmless(text, name, place, place + len(value))
    # The word was read up to a bound only; a secret is masked to its end.
    rest = _REST.match(text, word.end()) if span and len(word[0]) > MAX_WORD_CHARS else None
    return (place, rest.end()) if rest else span


def _unless_harmless(text: str, name: str, start: int, end: int) -> Span | None:
    """Return the span, unless the value is a type, a number, a variable, a path, or code."""
    value = text[start:end].strip("'\"`")
    plain = value.partition("|")[0].lower()
    if value.startswith(MASK) or plain == name or plain in _TYPES or not _LETTERS.search(value):
        return None
    is_harmless = (
        (value.isdigit() and len(value) < 6 and not name.startswith("pass"))
        or (name in ("pw", "pwd") and value.startswith(("/", "~", "$")))
        or (name == "pass" and " " in value)
        or _CODE.match(value)
        or _REFERENCE.match(value)
    )
    return None if is_harmless else (start, end)


def _repeats_name(text: str, match: re.Match[str], span: Span) -> bool:
    """Return whether a value repeats its name, as in `client.apiKey = api_key`."""
    before = _NAME_BEFORE.search(text, max(0, match.start() - 80), match.end("name"))
    name = before[1].rpartition(".")[2] if before else ""
    return name.replace("_", "").lower() == text[slice(*span)].replace("_", "").lower().rstrip(";,")


def _option_value(text: str, place: int) -> Span:
    if (quote := _QUOTE.match(text, place)) and quote.start(1) == place:
        end = text.find(quote[1], quote.end(), quote.end() + MAX_VALUE_CHARS)
        if end >= 0:
            return place, end + len(quote[1])
    word = _REST.match(text, place)
    return place, word.end() if word else place


_ASSIGNED = re.compile(
    r"[=:][>=]?[ \t]{0,4}(?:\\?['\"`])?([A-Za-z0-9+/_-]{16,}={0,2})(?![\w.(\[:/@])"
)
_NAME_BEFORE = re.compile(r"([\w.-]{1,80})(?:\\?['\"`])?\]?[ \t]{0,4}:?\Z")
# Last part of names whose values are random, but no secrets.
_PUBLIC_NAMES = re.compile(
    r"(?i)(?:id|ids|uuid|guid|sha\d*|hash|md5|digest|checksum|crc|h\d|integrity|commit|rev|revision|etag"
    r"|fingerprint|version|tag|path|file|dir|url|uri|href|src|name|class|cursor|session|request"
    r"|trace|span|head|base|parent|tree|blob|ref|branch|image|model|resolved|thread|call|message"
    r"|public_?key|signature|thumbprint)s?\Z"
)

_NAME_PARTS = re.compile(r"[_.-]|(?<=[a-z0-9])(?=[A-Z])")
_PARTS = re.compile(r"[-_/+=]")
_KEY_CHARACTERS = re.compile(r"[A-Za-z0-9+/_-]+={0,2}\Z")
_PATH = re.compile(r"/[A-Za-z]{1,12}/")
_RUNS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HEX = re.compile(r"(?:[0-9a-f-]+|[0-9A-F-]+)\Z")
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]{2,}\Z")


def find_random_values(text: str) -> Iterator[Span]:
    """Yield random-looking values of any name, except those of ids and checksums."""
    for match in _ASSIGNED.finditer(text):
        value = match[1]
        if not is_random(value) and not _HEX.match(value):
            continue
        before = _NAME_BEFORE.search(text, max(0, match.start() - 100), match.start())
        name = before[1] if before else ""
        if not name or _PUBLIC_NAMES.match(_NAME_PARTS.split(name)[-1]):
            continue
        # Commits and checksums are hexadecimal too: only a variable of the environment is certain.
        if is_random(value) or (_ENVIRONMENT.match(name) and _is_hex_key(value)):
            yield match.span(1)


def is_random(value: str) -> bool:
    """Return whether a value looks like a key: no hexadecimal number, path or name."""
    if _PATH.match(value) or not _KEY_CHARACTERS.match(value):
        return False
    # Paths, UUIDs and names of branches have short parts; signs are rare in a key.
    part = max(_PARTS.split(value), key=len)
    if len(value) < MIN_RANDOM_CHARS or len(part) < MIN_PART_CHARS or _HEX.match(part):
        return False
    runs = _RUNS.findall(part)
    if len(part) > MAX_RUN_CHARS * len(runs):
        return False
    digits = sum(run.isdigit() for run in runs)
    mixed = not part.islower() and not part.isupper()
    return digits >= (1 if mixed else 4) and entropy_bits(value) >= MIN_ENTROPY_BITS


def _is_hex_key(value: str) -> bool:
    return len(value) >= 32 and "-" not in value and any(map(str.isdigit, value))


def entropy_bits(value: str) -> float:
    """Shannon entropy of a value, in bits per character."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())
