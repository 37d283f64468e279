"""Redacting 256 KiB of text, beside one plain pass of `re.sub` over it in the same run."""

import random
import re
import statistics
import string
import sys
import time
from collections.abc import Callable
from pathlib import Path

from brimline.redaction import redact

ROOT = Path(__file__).parent.parent
TEXT_CHARS = 256 << 10
ROUNDS = 7
SECRETS = 50

_REFERENCE = re.compile(r"(?i)(?:password|passwd|secret|token|api[_-]?key)\s*[:=]\s*\S+")


def source_code() -> str:
    """Our own source, in which names such as `token` are frequent."""
    paths = sorted((ROOT / "src").rglob("*.py"))
    return "".join(path.read_text("utf-8") for path in paths)[:TEXT_CHARS]


def prose() -> str:
    """Our own documentation, as often as it takes."""
    paths = sorted((ROOT / "docs").rglob("*.md"))
    text = "".join(path.read_text("utf-8") for path in paths)
    return (text * (TEXT_CHARS // len(text) + 1))[:TEXT_CHARS]


def with_secrets() -> str:
    """The source with random values under the names of secrets."""
    lines, chance = source_code().split("\n"), random.Random(1)
    for _ in range(SECRETS):
        value = "".join(chance.choices(string.ascii_letters + string.digits, k=40))
        lines.insert(chance.randrange(len(lines)), f'api_key = "{value}"')
    return "\n".join(lines)[:TEXT_CHARS]


def one_line() -> str:
    """The source as one line, as in JSON."""
    return source_code().replace("\n", "\\n")[:TEXT_CHARS]


def milliseconds(act: Callable[[str], str], text: str) -> float:
    """The median CPU time of a call."""
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        act(text)
        times.append(1000 * (time.thread_time() - began))
    return statistics.median(times)


def main() -> int:
    """Print a row for each kind of text."""
    print(f"{'256 KiB of':<24}{'redact':>10}{'re.sub':>10}{'ratio':>8}")
    texts = {"source": source_code, "documentation": prose}
    texts |= {"source with 50 secrets": with_secrets, "source in one line": one_line}
    for name, make in texts.items():
        text = make()
        ours, plain = (
            milliseconds(redact, text),
            milliseconds(lambda one: _REFERENCE.sub("***", one), text),
        )
        print(f"{name:<24}{ours:>7.1f} ms{plain:>7.1f} ms{ours / plain:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
