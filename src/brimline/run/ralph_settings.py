"""The one key of a Ralph YAML that we read: event_loop.context_window_tokens."""

import re
from collections.abc import Iterator
from pathlib import Path

from brimline.errors import InvalidSettings
from brimline.regular_file import read_regular_file

SECTION, KEY = "event_loop", "context_window_tokens"

_FIELD = re.compile(r"(\s*)(['\"]?)([\w<.-]+)\2:(?:\s+(.*))?")
_NOTHING = ("", "~", "null")


def window(path: Path) -> int | None:
    """The window that a Ralph configuration sets; None where it sets none.

    It is read as Ralph's own documents write it, a key a line below its section; InvalidSettings
    names the line that is written in any other way.
    """
    for place, name, value in _fields(path):
        if name == "<<":
            raise InvalidSettings(place, SECTION, "expected its own keys: merged ones are not read")
        if name == KEY and value not in _NOTHING:
            if not re.fullmatch(r"0*[1-9][0-9]*", value):
                problem = f"expected a whole number above 0: got {value!r}"
                raise InvalidSettings(place, f"{SECTION}.{KEY}", problem)
            return int(value)
    return None


def _fields(path: Path) -> Iterator[tuple[str, str, str]]:
    """The section's own fields, each with its place; deeper ones belong to others."""
    inside, depth = False, ""
    for number, line in enumerate(_lines(path), 1):
        field = _FIELD.fullmatch(line.split(" #")[0].rstrip())
        if field is None:
            continue
        place, value = f"{path}:{number}", field[4] or ""
        if not field[1]:
            inside, depth = field[3] == SECTION, ""
            if inside and value not in _NOTHING:
                raise InvalidSettings(place, SECTION, f"expected a key a line: got {value!r}")
        elif inside and "\t" in field[1]:
            raise InvalidSettings(place, SECTION, "expected spaces before a key: got a tab")
        elif inside and field[1] == (depth := depth or field[1]):
            yield place, field[3], value


def _lines(path: Path) -> list[str]:
    try:
        return read_regular_file(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(str(path), "file", str(error)) from error
