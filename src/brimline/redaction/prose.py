"""Find passwords in sentences: "the password is hunter2", "la contraseña es hunter2"."""

import re
from collections.abc import Iterator

from brimline.redaction.assignments import is_key_of_secret, is_random
from brimline.redaction.names import JOINED_NAMES, SPACED_NAMES
from brimline.redaction.rules import SearchedText, Span

_ENGLISH = r"password|passwd|passphrase|passcode|pwd?|token|secret(?: key)?|credentials?|key"
_NAME = rf"(?:{_ENGLISH}|{SPACED_NAMES}|clave)"
_WHOSE = (
    r"(?:\s(?:for|of|on|to|in|del?|d[aou]s?|des|pour|para|für|vo[mn]|van|voor|от|для|к)"
    r"\s[^\n.,;:!?]{1,60}?)?"
)
_IS = (
    r"(?:is|was|are|will be|should be|must be|es|era|será|est|sera|était|ist|war|lautet|é|foi"
    r"|это|теперь|(?<=пароль\s)[—–-])"
)
_VALUE = r"(?P<value>\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|`[^`\n]{1,200}`|\S{1,500})"

LOOK_BACK_CHARS = 120  # how much of a sentence before the name is searched

_AFTER_NAME = re.compile(
    rf"(?P<name>{_NAME})\b{_WHOSE}\s{_IS}(?:\s?:\s?|\s)"
    rf"(?:now\s|still\s|just\s)?(?:(?:set|changed|reset|updated|rotated)\sto\s)?{_VALUE}",
    re.IGNORECASE,
)
_ADJACENT = re.compile(
    rf"(?P<name>{_NAME}|pass)(?:\s\([^()\n]{{1,40}}\))?"
    rf"\*{{0,2}}[ \t]?[:|>→=-]{{0,2}}\*{{0,2}}[ \t]{{1,4}}{_VALUE}",
    re.IGNORECASE,
)
_AFTER_JOINED_NAME = re.compile(
    rf"(?P<name>{JOINED_NAMES})\s?(?:是|为|為|は|が|を|은|는|이|가|을|를|改[成为為]|设[成为置]为?)"
    rf"[:：]?\s?[「『“\"'`]?(?P<value>[!-~]{{1,500}})"
)
# A word that is no name: digits within letters, or signs.
_STRONG = re.compile(
    r"(?=\S*[A-Za-z])(?=\S*\d)(?=\S*(?:\d[A-Za-z]|[!@#$%^&*]))[\w!@#$%^&*+=~-]{8,500}\Z"
)

_CHANGED = re.compile(
    rf"(?P<name>{_NAME})\b{_WHOSE}\s(?:to|a|en|à|auf|para|на)\s{_VALUE}", re.IGNORECASE
)
_CHANGES = re.compile(
    r"\b(?:set|chang|reset|updat|rotat|cambi|änder|mud|смен)\w{0,4}\s(?:[\w']{1,30}\s){0,4}\Z",
    re.IGNORECASE,
)
_GIVEN = re.compile(rf"(?P<name>{_NAME})\s{_VALUE}", re.IGNORECASE)
_GIVES = re.compile(r"\b(?:with|using|and)\s(?:the\s)?\Z", re.IGNORECASE)
_USED = re.compile(
    rf"\b(?:use|used|using|try|enter|type|with|usa|utilise|verwende|используй)\s{_VALUE}"
    r"\s(?:as|for|como|comme|als|как)\s(?:(?:the|my|your|our|its|a|la|le|mot de)\s)?"
    rf"(?:\w{{1,30}}\s)?(?P<name>{_NAME})\b(?=[.,;:!?)]|\s(?:for|to|on|in|and|when)\b|\s{{0,9}}\Z)",
    re.IGNORECASE,
)
_USES = (" as ", " for ", " como ", " comme ", " als ", " как ")
_LOGIN = re.compile(
    r"\b(?:log(?:ged)?[ -]?in|sign(?:ed)?[ -]?in|credentials|creds)"
    r"(?:\s(?:with|as|using|are|is|to be))?:?\s(?P<user>[^\s/:]{1,100})"
    r"(?:\s/\s|\s?[/:](?=\S{0,100}[0-9!#$%&*?]))(?P<value>[^\s/]{1,200})",
    re.IGNORECASE,
)
_LOGIN_WORDS = ("login", "log in", "log-in", "logged in", "signin", "sign in", "signed in",
                "credentials", "creds")  # fmt: skip

_ORDINARY_WORDS = (
    "a about above absent admin again already also always an and any applied as at auth "
    "authentication authorization available bad based be being below blank bound broken by "
    "correct default different email empty enough equal exactly false field fields fine first "
    "flow for from github gitlab given gone good google hard hidden how i immutable in "
    "incorrect insecure invalid it just kept key known last less like login long longer manager "
    "mine missing more never new next nil no none not null oauth obsolete ok on one only or our "
    "out over pass password plain present private prompt public read ready reset right safe "
    "same secret secure sent set short shown simple something sso stale still strong taken that "
    "the their them there these they this to token too true undefined unique unknown unset up "
    "user username valid value values very was weak we what when where which whose with within "
    "wrong yes you your"
)
_ORDINARY = frozenset(_ORDINARY_WORDS.split())
_ENDINGS = ("ed", "ing", "able", "ible", "ly", "less", "n't", "ional", "ent", "ory", "ten")
_END_OF_SENTENCE = re.compile(
    r"[.,;!?)]{0,3}\s{0,9}(?:\n|\Z)|[.,;!?)]{1,3}\s|\s(?:and|for|on|but)\b"
)


def find_prose_secrets(searched: SearchedText, places: list[int]) -> Iterator[Span]:
    """Yield the values in sentences about secrets, given the places of their names."""
    text = searched.text
    for place in places:
        for match in _sentences(text, place):
            if span := _secret_word(text, match, match["name"].lower()):
                yield span
        if span := _find_adjacent_secret(searched, place):
            yield span
    for word in _LOGIN_WORDS:
        for start, end in searched.lines_with(word, ignore_case=True):
            for match in _LOGIN.finditer(text, start, end):
                if span := _secret_word(text, match, "password"):
                    yield span


def _sentences(text: str, place: int) -> Iterator[re.Match[str]]:
    if match := _AFTER_NAME.match(text, place) or _AFTER_JOINED_NAME.match(text, place):
        yield match
    start = max(0, place - LOOK_BACK_CHARS)
    start = max(start, text.rfind("\n", start, place) + 1)
    if (match := _CHANGED.match(text, place)) and _CHANGES.search(text, start, place):
        yield match
    if (match := _GIVEN.match(text, place)) and _GIVES.search(text, start, place):
        yield match
    if any(text.find(word, start, place) >= 0 for word in _USES):
        end = text.find("\n", place, place + LOOK_BACK_CHARS)
        yield from _USED.finditer(text, start, place + LOOK_BACK_CHARS if end < 0 else end)


def _find_adjacent_secret(searched: SearchedText, place: int) -> Span | None:
    """Return a word next to a name, as in lists and tables, that must be a secret."""
    text = searched.text
    match = _ADJACENT.match(text, place)
    # `PASS: TestX` is the result of a test.
    if not match or text[place - 1 : place].isalpha() or match["name"] == "PASS":
        return None
    if match["name"].lower() == "key" and not is_key_of_secret(text, searched.lower, place):
        return None
    value = match["value"].rstrip(".,;:!?)]}")
    word = value.strip("'\"`*")
    start = match.start("value") + value.find(word)
    strong = _STRONG.match(word) or is_random(word)
    return (start, start + len(word)) if strong else None


def _secret_word(text: str, match: re.Match[str], name: str) -> Span | None:
    start, end = match.span("value")
    value = match["value"]
    if value[0] in "\"'`" and value[-1] == value[0] and len(value) > 2:
        return (start + 1, end - 1) if _may_be_quoted(value[1:-1], name) else None
    word = value.rstrip(".,;:!?)]}'\"`")
    bare = word.lstrip("([{'\"`")
    start += len(word) - len(bare)
    if not bare or bare.startswith("***"):
        return None
    if _has_odd_character(bare, name) or (
        re.fullmatch(_ENGLISH, name)
        and name.startswith("pass")
        and _END_OF_SENTENCE.match(text, start + len(bare))
        and _is_unusual(bare)
    ):
        return start, start + len(bare)
    return None


def _may_be_quoted(value: str, name: str) -> bool:
    """Return whether a quoted value looks like a secret, and not like quoted code."""
    if value.startswith("***") or " " in value or value.lower() in _ORDINARY:
        return False
    return (_is_password(name) and value.isalnum()) or _has_odd_character(value, name)


def _is_unusual(word: str) -> bool:
    """Return whether a word is unusual in a sentence about passwords."""
    lower = word.lower()
    is_ordinary = lower in _ORDINARY or lower.endswith(_ENDINGS)
    return len(word) >= 4 and word.isalnum() and not is_ordinary


def _has_odd_character(word: str, name: str) -> bool:
    """Return whether a word has digits or signs like a password, unlike numbers."""
    if not any(map(str.isdigit, word)) and not any(sign in word for sign in "!#$%^&*?"):
        return False
    if word.isdigit():
        return len(word) >= 4 and _is_password(name)
    if any(sign in word for sign in "/\\()[]{}<>=`") or word.startswith(("$", "-", "#", "%")):
        return False
    return any(map(str.isalpha, word)) and len(word) >= (4 if _is_password(name) else 8)


def _is_password(name: str) -> bool:
    return not name.startswith(("pw", "token", "secret", "credential", "key", "clave"))
