"""Write src/brimline/data/secret_rules.json from the plugins of the detect-secrets package.

Run it with a Python that has detect-secrets, which Brimline itself does not need:

    python -m venv /tmp/rules && /tmp/rules/bin/pip install detect-secrets
    /tmp/rules/bin/python scripts/secret_rules.py

The package's licence, Apache-2.0, is in src/brimline/data/LICENSES/detect-secrets.txt.
"""

import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGE = "detect_secrets.plugins"
TARGET = Path(__file__).parent.parent / "src/brimline/data/secret_rules.json"

MAX_REPEAT = 1024
"""Replaces `*` and `+`, so that matching takes linear time; a longer token is masked whole by
`redact`, which extends a match to the end of its word."""

MAX_SPACES = 4
"""The same for spaces, of which some patterns have three repetitions in a row."""

MIN_SECRET_CHARS = 20
"""A group that cannot be as long as this holds a part of the format (`ghp`), not the secret."""

SKIPPED = {
    "Azure Storage Account access key": "redact masks the value of every name that ends in key",
    "Basic Auth Credentials": "redact has a rule for passwords with reserved characters too",
    "NPM tokens": "redact masks the value of every name that ends in token",
    "Private Key": "the rule finds the first line alone; redact masks the block",
    "Public IP (ipv4)": "an address is no credential",
}

SKIPPED_PARTS = {
    r"AP[\dABCDEF][a-zA-Z0-9]{8,}": "matches names in code such as APClientSession",
    r"([a-z]{24})": "matches any word of 24 letters",
}
"""Patterns with these parts are left out."""

KEYWORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "Artifactory Credentials": (("AKC",),),
    "AWS Access Key": (("A3T", "ABIA", "ACCA", "AKIA", "ASIA"), ("aws",)),
    "Cloudant Credentials": (("cl",), ("cloudant.com",)),
    "Discord Bot Token": ((".",),),
    "GitHub Token": (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),),
    "GitLab Token": (
        ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-"),
        ("GR1348941",),
        ("glcbt-",),
        ("glimt-",),
        ("glptt-",),
        ("glagent-",),
        ("gloas-",),
    ),
    "IBM Cloud IAM Key": (("key", "pwd", "pass", "token"),),
    "IBM COS HMAC Credentials": (("secret",),),
    "JSON Web Token": (("eyJ",),),
    "Mailchimp Access Key": (("-us",),),
    "OpenAI Token": (("T3BlbkFJ",),),
    "PyPI Token": (("pypi-AgEIcHlwaS5vcmc",), ("pypi-AgENdGVzdC5weXBpLm9yZw",)),
    "SendGrid API Key": (("SG.",),),
    "Slack Token": (("xox",), ("hooks.slack.com",)),
    "SoftLayer Credentials": (("sl", "softlayer"), ("softlayer",)),
    "Square OAuth Secret": (("sq0csp-",),),
    "Stripe Access Key": (("rk_live_", "sk_live_"),),
    "Telegram Bot Token": ((":",),),
    "Twilio API Key": (("AC",), ("SK",)),
}
"""For each pattern of a plugin, a text that every match contains: in lower case if the
pattern ignores case."""

FREQUENT = frozenset(
    ("Cloudant Credentials", "Discord Bot Token", "IBM Cloud IAM Key", "IBM COS HMAC Credentials",
     "Mailchimp Access Key", "SoftLayer Credentials", "Telegram Bot Token")
)  # fmt: skip
"""Plugins with keywords that stand in most texts: their secrets are looked for at long words."""


NOT_WORDS = frozenset(("Square OAuth Secret",))
"""Plugins whose secrets can hold characters that end a word, here a backslash."""


class UnknownPlugin(Exception):
    """The package has a plugin, or a pattern of one, for which KEYWORDS has no entry."""


def detectors() -> Iterator[Any]:
    """Every plugin that is a list of patterns, sorted by name."""
    base = import_module(f"{PACKAGE}.base").RegexBasedDetector
    for module in sorted(
        info.name for info in pkgutil.iter_modules(import_module(PACKAGE).__path__)
    ):
        for value in vars(import_module(f"{PACKAGE}.{module}")).values():
            if isinstance(value, type) and issubclass(value, base) and value is not base:
                yield value


def is_skipped(pattern: str) -> bool:
    """Whether a pattern matches too much."""
    return any(part in pattern for part in SKIPPED_PARTS)


def bounded(pattern: str) -> str:
    """The pattern with a bound on every repetition."""
    parts = re.split(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])", pattern)
    for place in range(0, len(parts), 2):
        # What is not an escape or a set; a `+` or `*` at its start repeats the one before it.
        parts[place] = re.sub(r" \*", f" {{0,{MAX_SPACES}}}", parts[place])
        parts[place] = re.sub(r" \+", f" {{1,{MAX_SPACES}}}", parts[place])
        parts[place] = re.sub(r"\*", f"{{0,{MAX_REPEAT}}}", parts[place])
        parts[place] = re.sub(r"\+", f"{{1,{MAX_REPEAT}}}", parts[place])
        parts[place] = re.sub(r"\{(\d+),\}", rf"{{\1,{MAX_REPEAT}}}", parts[place])
    return "".join(parts)


def secret_group(pattern: str) -> int:
    """The group that holds the secret; 0, the whole match, if the first one is too short for it."""
    # A group is closed by the first `)` here: no pattern of the package has nested groups.
    if first := re.search(r"(?<!\\)\((?!\?)([^()]*(?:\(\?[^()]*\))?[^()]*)\)", pattern):
        return 0 if _longest(first[1]) < MIN_SECRET_CHARS else 1
    return 0


def _longest(pattern: str) -> int:
    counts = re.findall(r"\{(?:\d+,)?(\d+)\}", pattern)
    return max(map(int, counts), default=0)


def rules() -> Iterator[dict[str, object]]:
    """Each usable pattern as one of our rules."""
    for detector in detectors():
        name = detector.secret_type
        if name in SKIPPED:
            continue
        patterns = [one for one in detector.denylist if not is_skipped(one.pattern)]
        if len(patterns) != len(KEYWORDS.get(name, ())):
            raise UnknownPlugin(f"{name}: expected {KEYWORDS.get(name)}, got {patterns}")
        for number, (pattern, keywords) in enumerate(zip(patterns, KEYWORDS[name], strict=True), 1):
            regex = bounded(pattern.pattern)
            ignore_case = bool(pattern.flags & re.IGNORECASE)
            yield {
                "id": f"{re.sub('[^a-z0-9]+', '-', name.lower())}-{number}",
                "keywords": keywords,
                "regex": regex,
                "group": secret_group(regex),
                "ignore_case": ignore_case,
                "in_word": not ignore_case and name not in FREQUENT | NOT_WORDS,
                "long_word": name in FREQUENT,
            }


def main() -> int:
    """Write the file, one rule a line."""
    lines = ",\n    ".join(json.dumps(rule) for rule in rules())
    origin = f"detect-secrets {version('detect-secrets')} (Yelp Inc., Apache-2.0)"
    TARGET.write_text(f'{{\n  "made_from": "{origin}",\n  "rules": [\n    {lines}\n  ]\n}}\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
