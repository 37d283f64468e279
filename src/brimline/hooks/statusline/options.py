"""How a line is to look here and now: the user's settings, the terminal, what else is known."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from brimline.settings import Colour, Line

HandoffState: TypeAlias = Literal["fresh", "old", "draft"]


class RenderOptions(msgspec.Struct, frozen=True):
    """What a line is drawn with, beside the reading.

    `columns` is the terminal's width, None where it is unknown. `calls_left` is the forecast, None
    while there is none. `handoff` is the state of the session's handoff, None where it has none,
    `handoff_calls` the calls since then. `wrong` is what `read` found that cannot be, `called`
    whether a call was made by then.
    """

    line: Line = Line()
    colour: bool = True
    columns: int | None = None
    calls_left: int | None = None
    handoff: HandoffState | None = None
    handoff_calls: int | None = None
    client_error: str | None = None
    has_call: bool = False


def wants_colour(env: Mapping[str, str], colour: Colour = "auto") -> bool:
    """Whether a line is coloured: as the settings say, else unless NO_COLOR or TERM=dumb is set."""
    if colour != "auto":
        return colour == "always"
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"


def terminal_columns(env: Mapping[str, str]) -> int | None:
    """The terminal's width by COLUMNS; None where that is no width."""
    told = env.get("COLUMNS", "")
    if not (told.isascii() and told.isdigit() and len(told) <= 5):
        return None
    return int(told) or None
