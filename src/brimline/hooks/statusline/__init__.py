"""The status line: what the client tells, read with suspicion, and the line that is made of it."""

from brimline.hooks.statusline.drawn import line
from brimline.hooks.statusline.look import HandoffState, Look, colour_wanted, columns_of
from brimline.hooks.statusline.told import Told, read

__all__ = [
    "HandoffState",
    "Look",
    "Told",
    "colour_wanted",
    "columns_of",
    "line",
    "read",
]
