"""How the status line may look: colours as people name them, and what its settings must hold."""

import re
from collections.abc import Iterator
from typing import Protocol

from brimline.errors import InvalidSettings

# The colours of every terminal, in the order of their codes; each has a bright one too.
NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")

PLAIN = "none"  # no colour at all

BAR_LONGEST, SEPARATOR_LONGEST = 60, 20

_BRIGHT = "bright_"
_RGB = re.compile(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,3}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_COLOURS = f"{', '.join(NAMES)}, {_BRIGHT}red and so on, 0 to 255, #rrggbb or {PLAIN}"


class Looks(Protocol):
    """The settings of the status line, as far as they are checked."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Its parts, in their order."""
        ...

    @property
    def separator(self) -> str:
        """What is between two parts."""
        ...

    @property
    def bar(self) -> int:
        """How many columns the bar has."""
        ...

    @property
    def calm(self) -> str:
        """The colour of a context that has room."""
        ...

    @property
    def warm(self) -> str:
        """The colour of one that fills."""
        ...

    @property
    def hot(self) -> str:
        """The colour of one that is nearly full."""
        ...


def code(colour: str) -> str | None:
    """What stands between `ESC [` and `m` for a colour; empty: no colour; None: it is none."""
    if colour == PLAIN:
        return ""
    if (plain := colour.removeprefix(_BRIGHT)) in NAMES:
        return str((30 if plain == colour else 90) + NAMES.index(plain))
    if _NUMBER.fullmatch(colour) and int(colour) < 256:
        return f"38;5;{int(colour)}"
    if found := _RGB.fullmatch(colour):
        return "38;2;" + ";".join(str(int(part, 16)) for part in found.groups())
    return None


def check(line: Looks, place: str) -> None:
    """Raise InvalidSettings, with the place and the field, where a line could not be drawn so."""
    for field, problem in _problems(line):
        raise InvalidSettings(place, f"line.{field}", problem)


def _problems(line: Looks) -> Iterator[tuple[str, str]]:
    if not line.parts or len(set(line.parts)) < len(line.parts):
        yield (
            "parts",
            f"expected one part or more, each once: got {', '.join(line.parts) or 'none'}",
        )
    if len(line.separator) > SEPARATOR_LONGEST or _CONTROL.search(line.separator):
        expected = f"at most {SEPARATOR_LONGEST} characters without control characters"
        yield "separator", f"expected {expected}: got {line.separator!r}"
    if not 0 <= line.bar <= BAR_LONGEST:
        yield "bar", f"expected 0 to {BAR_LONGEST} columns: got {line.bar}"
    for field, colour in (("calm", line.calm), ("warm", line.warm), ("hot", line.hot)):
        if code(colour) is None:
            yield field, f"expected {_COLOURS}: got {colour!r}"
