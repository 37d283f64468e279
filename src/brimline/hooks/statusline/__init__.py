"""Rendering of the status line."""

from brimline.hooks.statusline.options import (
    HandoffState,
    RenderOptions,
    terminal_columns,
    wants_colour,
)
from brimline.hooks.statusline.render import render_line

__all__ = [
    "HandoffState",
    "RenderOptions",
    "render_line",
    "terminal_columns",
    "wants_colour",
]
