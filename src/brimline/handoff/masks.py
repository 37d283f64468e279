"""Credentials in a text made unreadable: those that are plain to see, not every secret there is."""

import re
from functools import cache

MASK = "***"

_NAMES = ("pass", "secret", "token", "key")
_NAMED = r"(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)"

Row = tuple[tuple[str, ...], str, str]

_ROWS: tuple[Row, ...] = (
    # Keys in PEM, also where the end was cut off.
    (
        ("private key-----",),
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)",
        MASK,
    ),
    # Keys that their prefix gives away: Anthropic and OpenAI, Stripe, GitHub, GitLab, AWS, Google,
    # Slack, npm, Hugging Face, PyPI, and JSON web tokens.
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
    # Headers, and the user's part of an address.
    (
        ("authorization",),
        r"(?i)\b(authorization['\"]?\s{0,9}[:=]\s{0,9}['\"]?\w+\s{1,9})[^\s'\"]+",
        rf"\1{MASK}",
    ),
    (
        ("bearer",),
        r"(?i)\b(bearer\s{1,9})(?=[^\s'\"]{0,500}\d)[A-Za-z0-9+/=._~-]{8,}",
        rf"\1{MASK}",
    ),
    (("://",), r"(://[^\s/:@]{1,100}:)[^\s/@]{1,200}@", rf"\1{MASK}@"),
    ((" -u", "--user"), r"(\s(?:-u|--user)[ =]['\"]?[^\s:'\"]{1,100}:)[^\s'\"]+", rf"\1{MASK}"),
    # What a name gives away: NAME_KEY=..., password=..., --token ..., "secret": "...".
    (
        ("_",),
        r"\b([A-Z0-9_]{0,60}_(?:KEY|TOKEN|SECRET|PASS|PASSWORD|PWD)=['\"]?)[^\s'\"]+",
        rf"\1{MASK}",
    ),
    (_NAMES, rf"(?i)({_NAMED}['\"]?=)(?:'[^']*'|\"[^\"]*\"|[^\s'\"&,;)]+)", rf"\1{MASK}"),
    (_NAMES, rf"(?i)(--{_NAMED}\s{{1,9}})[^\s-]\S*", rf"\1{MASK}"),
    (_NAMES, rf"(?i)({_NAMED}['\"]?\s{{0,9}}:\s{{0,9}}['\"])[^'\"]+(['\"])", rf"\1{MASK}\2"),
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
