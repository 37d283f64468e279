"""The code blocks of README and docs, and the outputs that they show."""

import re
from collections.abc import Iterator

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pattern_of(text: str) -> "re.Pattern[str]":
    """The pattern of an example's output; `...` matches anything, alone on a line any lines."""
    lines = [".*" if line == "..." else re.escape(line) for line in text.rstrip("\n").split("\n")]
    pattern = "\n".join(lines).replace(re.escape("..."), ".*")
    return re.compile(pattern + r"\s*", re.DOTALL)


def commands_of(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that it shows."""
    for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = example.partition("\n")
        yield command, output
