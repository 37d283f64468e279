"""What a status line is rendered with: the user's settings, the terminal, the session's state."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from brimline.settings import Colour, LineSettings

HandoffState: TypeAlias = Literal["fresh", "old", "draft"]


class RenderOptions(msgspec.Struct, frozen=True):
    """What a line is rendered with, beside the reading; None is unknown or absent.

    `columns` is the terminal's width, `calls_left` the forecast, `handoff_calls` the calls since
    the handoff. `client_error` names an impossible figure of the client. `has_call`: the client
    reported that a call was made.
    """

    line: LineSettings = LineSettings()
    colour: bool = True
    columns: int | None = None
    calls_left: int | None = None
    handoff: HandoffState | None = None
    handoff_calls: int | None = None
    client_error: str | None = None
    has_call: bool = False


def wants_colour(env: Mapping[str, str], colour: Colour = "auto") -> bool:
    """Return the setting; if that is `auto`, False if NO_COLOR or TERM=dumb is set."""
    if colour != "auto":
        return colour == "always"
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def terminal_columns(env: Mapping[str, str]) -> int | None:
    """Return the terminal's width by COLUMNS; None if that is no width."""
    value = env.get("COLUMNS", "")
    if not (value.isascii() and value.isdigit() and len(value) <= 5):
        return None
    return int(value) or None
