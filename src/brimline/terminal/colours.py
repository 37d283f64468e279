"""Colours as users name them in the settings, and their terminal codes."""

import re

# The colours of every terminal, in the order of their codes; each has a bright one too.
NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
PLAIN = "none"  # no colour at all
_BRIGHT = "bright_"
ALLOWED = f"{', '.join(NAMES)}, {_BRIGHT}red and so on, 0 to 255, #rrggbb or {PLAIN}"


def code(colour: str) -> str | None:
    """Return what stands between `ESC [` and `m`; empty for no colour, None if it is invalid."""
    if colour == PLAIN:
        return ""
    if (plain := colour.removeprefix(_BRIGHT)) in NAMES:
        return str((30 if plain == colour else 90) + NAMES.index(plain))
    if re.fullmatch(r"[0-9]{1,3}", colour) and int(colour) < 256:
        return f"38;5;{int(colour)}"
    if re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
        return "38;2;" + ";".join(str(part) for part in bytes.fromhex(colour[1:]))
    return None
