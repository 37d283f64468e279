"""Read event_loop.context_window_tokens from a Ralph YAML file, the one key that we use."""

import re
from collections.abc import Iterator
from pathlib import Path

from brimline.errors import InvalidSettings
from brimline.files.regular_file import read_regular_file

SECTION, KEY = "event_loop", "context_window_tokens"

_FIELD = re.compile(r"(\s*)(['\"]?)([\w<.-]+)\2:(?:\s+(.*))?")
_EMPTY_VALUES = ("", "~", "null")


def read_window(path: Path) -> int | None:
    """The window that a Ralph configuration sets, or None.

    Only Ralph's own layout is read: one key a line, indented below its section. Raises
    InvalidSettings with the line that is written differently.
    """
    for place, name, value in _section_fields(path):
        if name == "<<":
            raise InvalidSettings(
                place, SECTION, "expected plain keys: merge keys (<<) are not supported"
            )
        if name == KEY and value not in _EMPTY_VALUES:
            if not re.fullmatch(r"0*[1-9][0-9]*", value):
                problem = f"expected a whole number above 0: got {value!r}"
                raise InvalidSettings(place, f"{SECTION}.{KEY}", problem)
            return int(value)
    return None


def _section_fields(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield place, name and value of the section's direct keys."""
    inside, depth = False, ""
    for number, line in enumerate(_read_lines(path), 1):
        field = _FIELD.fullmatch(line.split(" #")[0].rstrip())
        if field is None:
            continue
        place, value = f"{path}:{number}", field[4] or ""
        if not field[1]:
            inside, depth = field[3] == SECTION, ""
            if inside and value not in _EMPTY_VALUES:
                raise InvalidSettings(place, SECTION, f"expected one key per line: got {value!r}")
        elif inside and "\t" in field[1]:
            raise InvalidSettings(place, SECTION, "expected indentation by spaces: got a tab")
        elif inside and field[1] == (depth := depth or field[1]):
            yield place, field[3], value


def _read_lines(path: Path) -> list[str]:
    try:
        return read_regular_file(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(str(path), "file", str(error)) from error
