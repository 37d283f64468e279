"""Credentials in a text made unreadable: those that are plain to see, not every secret there is."""

import re
from collections.abc import Callable
from functools import cache

MASK = "***"

_NAMES = ("pass", "pwd", "secret", "token", "key")
_PLAIN = (
    r"pass(?:word|wd|phrase)|secret(?:[ _-]?key(?:[ _-]?base)?)?|token"
    r"|(?:api|access|account|private)[ _-]?key"
)
_NAMED = rf"(?:{_PLAIN}|pass)"
_LOUD = r"(?-i:_(?:KEY|PASS|PWD))"
"""What is written large in `NAME_KEY`; a `key` by itself is none of a credential."""

_QUOTED = rf"((?:{_NAMED}|{_LOUD})['\"`]?\s{{0,9}}(?:=>|:=|[:=])\s{{0,9}}(['\"`]))[^'\"`]+(\2)"
_UNTIL = rf"(?P<until>(?P<name>{_PLAIN}|{_LOUD})['\"`]?[ \t]{{0,9}}(?::=|[:=])[ \t]{{0,9}})"
_WORD = r"(?P<word>[^\s:=(\[{<>|&'\"`]\S*)(?=(?P<end>[ \t\r]{0,9}(?:[#\n]|\Z))?)"

_KEY = r"(?:[ \t]*[A-Za-z0-9+/=]+[ \t\r]*\n)+[ \t]*-----END [A-Z ]{0,40}PRIVATE KEY-----"
"""The rest of a key whose beginning was cut off."""

_PEM = (
    rf"(?:-----BEGIN [A-Z ]{{0,40}}PRIVATE KEY-----|\A(?={_KEY})).*?"
    r"(?:-----END [A-Z ]{0,40}-----|\Z)"
)
_PREFIXED = (
    r"\b(?:ya29\.|GOCSPX-|xapp-|gsk_|xai-|dop_v1_|shp(?:at|ca|pa|ss)_|whsec_|hvs\.|ATATT3"
    r"|lin_api_|glsa_|sbp_)[A-Za-z0-9_.=-]{16,}"
)
_HEADER = (
    r"(?i)\b(authorization['\"]?\s{0,9}[:=]\s{0,9}['\"]?)"
    r"(?=[^\s'\"]{0,500}\d)[A-Za-z0-9+/=._~-]{8,4096}+(?=['\"\r\n]|\Z)"
)
_OPTIONS = r"[^\s|;&]{0,20}\s(?:[^\n|;&]{0,300}\s)?"
"""What stands between a command and one of its options."""

_VALUE = r"(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"]\S*)"
"""What an option is given, as a shell has it."""

_TYPES = ("any", "bool", "boolean", "bytes", "false", "int", "nil", "none", "null", "number",
          "str", "string", "true", "undefined")  # fmt: skip
_CODE = r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]+(?:\.[A-Za-z_]+)+$|\$[({]"
"""How a call, an item, an attribute or a variable of a shell begins."""


def _one_word(found: re.Match[str]) -> str:
    """What follows a name, masked if it is one word: the last of its line, or one with a digit.

    So a sentence is left, and so are types and code.
    """
    word = found["word"].rstrip(",;)'\"" if "=" in found["until"] else ",;:)]}'\"`")
    alone = found["end"] is not None or any(c.isdigit() for c in word)
    if not alone or word.startswith(MASK) or _means_nothing(word, found["name"]):
        return found[0]
    return f"{found['until']}{MASK}{found['word'][len(word) :]}"


def _means_nothing(word: str, name: str) -> bool:
    """Whether a value says no more than its name does: a type, itself, a piece of code."""
    plain = word.partition("|")[0].lower()
    same = plain == name.lower()
    return not word or same or plain in _TYPES or bool(_compiled(_CODE).match(word))


Row = tuple[tuple[str, ...], str, str | Callable[[re.Match[str]], str]]

_ROWS: tuple[Row, ...] = (
    # Keys in PEM, also where the beginning or the end was cut off.
    (("private key-----",), _PEM, MASK),
    # Keys that their prefix gives away: Anthropic and OpenAI, Stripe, GitHub, GitLab, AWS, Google,
    # Slack, npm, Hugging Face, PyPI, JSON web tokens; then Google's OAuth, Slack's apps, Groq, xAI,
    # DigitalOcean, Shopify, Stripe's webhooks, Vault, Atlassian, Linear, Grafana, Supabase.
    (("sk-",), r"\bsk-[A-Za-z0-9_-]{8,}", MASK),
    (("k_live_", "k_test_"), r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{8,}", MASK),
    (("gh",), r"\bgh[pousr]_[A-Za-z0-9]{16,}", MASK),
    (("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{16,}", MASK),
    (("glpat-",), r"\bglpat-[A-Za-z0-9_-]{16,}", MASK),
    (("akia", "asia"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", MASK),
    (("aiza",), r"\bAIza[0-9A-Za-z_-]{30,}", MASK),
    (("xox",), r"\bxox[abeprs]-[A-Za-z0-9-]{8,}", MASK),
    (("npm_", "hf_"), r"\b(?:npm|hf)_[A-Za-z0-9]{20,}", MASK),
    (("pypi-",), r"\bpypi-[A-Za-z0-9_-]{16,}", MASK),
    (("eyj",), r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?", MASK),
    (
        (
            "ya29.",
            "gocspx-",
            "xapp-",
            "gsk_",
            "xai-",
            "dop_v1_",
            "shp",
            "whsec_",
            "hvs.",
            "atatt3",
            "lin_api_",
            "glsa_",
            "sbp_",
        ),
        _PREFIXED,
        MASK,
    ),
    (("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", MASK),
    # Headers, the user's part of an address, and what signs one.
    (
        ("authorization",),
        r"(?i)\b(authorization['\"]?\s{0,9}[:=]\s{0,9}['\"]?\w+[ \t]{1,9})[^\s'\"]+",
        rf"\1{MASK}",
    ),
    (
        ("bearer",),
        r"(?i)\b(bearer\s{1,9})(?=[^\s'\"]{0,500}\d)[A-Za-z0-9+/=._~-]{8,}",
        rf"\1{MASK}",
    ),
    (("authorization",), _HEADER, rf"\1{MASK}"),
    (
        ("cookie",),
        r"(?i)\b((?:set-)?cookie['\"]?:\s{0,9}['\"]?[^\s=;'\"]{1,100}=)[^\r\n'\"]+",
        rf"\1{MASK}",
    ),
    (("://",), r"(://[^\s/:@]{0,100}:)[^\s/'\"]{1,200}@", rf"\1{MASK}@"),
    (("sig=",), r"([?&]sig=)[^\s&'\"]+", rf"\1{MASK}"),
    # What a command is given.
    (("sshpass",), rf"(\bsshpass\s{{1,9}}-p\s{{0,9}}){_VALUE}", rf"\1{MASK}"),
    (("mysql", "mariadb"), rf"(\b(?:mysql|mariadb){_OPTIONS}-p){_VALUE}", rf"\1{MASK}"),
    (("login",), rf"(\b(?:docker|podman|az|registry) login{_OPTIONS}-p[ =]){_VALUE}", rf"\1{MASK}"),
    ((" -u", "--user"), r"(\s(?:-u|--user)[ =]['\"]?[^\s:'\"]{1,100}:)[^\s'\"]+", rf"\1{MASK}"),
    # What a name gives away: NAME_KEY=..., password=..., --token ..., "secret": "...", token: ...
    (
        ("_",),
        r"\b([A-Z0-9_]{0,60}_(?:KEY|TOKEN|SECRET|PASS|PASSWORD|PWD)=['\"]?)[^\s'\"]+",
        rf"\1{MASK}",
    ),
    (_NAMES, rf"(?i)({_NAMED}['\"]?=)(?:'[^']*'|\"[^\"]*\"|[^\s'\"&,;)])+", rf"\1{MASK}"),
    (_NAMES, rf"(?i)(--{_NAMED}\s{{1,9}})[^\s-]\S*", rf"\1{MASK}"),
    (_NAMES, rf"(?i){_QUOTED}", rf"\1{MASK}\3"),
    (_NAMES, rf"(?i){_UNTIL}{_WORD}", _one_word),
)
"""What stands, in small letters, in every text that a rule is for; the rule; what is put there."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A rule, when a text may need it: most texts need none, and a daemon boots without them."""
    return re.compile(pattern, re.DOTALL)


def masked(text: str) -> str:
    """The text with a mask in the place of every credential that is recognised."""
    small = text.lower()
    for signs, pattern, put in _ROWS:
        if any(sign in small for sign in signs):
            text = _compiled(pattern).sub(put, text)
    return text
