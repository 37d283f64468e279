"""The widgets: scrolling lines, the session list and a prompt."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

from brimline.terminal.text import Shade
from brimline.tui.api_types import WatchedSession
from brimline.tui.rows import OverviewRows
from brimline.tui.styled_text import Line, StyledText

STYLES: dict[Shade, Style] = {
    "low": Style(color="green"),
    "medium": Style(color="yellow"),
    "high": Style(color="red"),
    "limit": Style(color="red", bold=True),
    "dim": Style(dim=True),
    "bold": Style(bold=True),
    "selected": Style(bold=True, reverse=True),
    "none": Style(),
}
COLOURLESS_STYLES: dict[Shade, Style] = {
    shade: Style(bold=style.bold, dim=style.dim, reverse=style.reverse)
    for shade, style in STYLES.items()
}


class PromptInput(Input):
    """An input line that is hidden until it is opened."""

    def on_mount(self) -> None:
        self.cursor_blink = self.select_on_focus = False
        self.display = False

    def open(self) -> None:
        """Show the prompt and focus it at once, so that it gets the next key."""
        self.display = True
        self.screen.set_focus(self)


class LinesWidget(ScrollView, can_focus=True):
    """Lines that scroll; their text is never parsed as markup."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_down", show=False),
        Binding("k,up", "scroll_up", show=False),
        Binding("g,home", "scroll_home", show=False),
        Binding("G,end", "scroll_end", show=False),
        Binding("space,pagedown", "page_down", show=False),
        Binding("b,pageup", "page_up", show=False),
    ]

    def __init__(self, id: str | None = None, colour: bool = True) -> None:
        super().__init__(id=id)
        self._colour = colour
        self._styles = STYLES if colour else COLOURLESS_STYLES
        self._lines: Sequence[Line] = ()

    def show(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self.virtual_size = Size(self.size.width, len(lines))
        self.refresh()

    def line(self, number: int) -> Line:
        """A line by its number; empty after the last."""
        return self._lines[number] if number < len(self._lines) else ()

    def render_line(self, y: int) -> Strip:
        pieces = self.line(self.scroll_offset.y + y)
        segments = [Segment(piece.text, self._style_of(piece)) for piece in pieces]
        return Strip(segments).crop_extend(0, self.size.width, self.rich_style)

    def _style_of(self, piece: StyledText) -> Style:
        if piece.colour is None or not self._colour:
            return self._styles[piece.shade]
        return Style(color=Color.from_ansi(piece.colour))


class SessionLines(LinesWidget):
    """The sessions of the overview; formats only the visible ones."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("g,home", "move(-1000000)", show=False),
        Binding("G,end", "move(1000000)", show=False),
        Binding("space,pagedown", "move(8)", show=False),
        Binding("b,pageup", "move(-8)", show=False),
        Binding("enter", "open", show=False),
    ]

    class Opened(Message):
        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, id: str | None = None, colour: bool = True) -> None:
        super().__init__(id, colour)
        self._views: Sequence[WatchedSession] = ()
        self._starts: list[int] = [0]
        self._rows: OverviewRows | None = None
        self._drawn: dict[int, Sequence[Line]] = {}
        self.selected: str | None = None

    def show_sessions(self, views: Sequence[WatchedSession], rows: OverviewRows) -> None:
        """Show these sessions; the selected one stays selected."""
        self._views, self._rows, self._drawn = views, rows, {}
        self._starts = [0, *accumulate(rows.height(view) for view in views)]
        self.virtual_size = Size(self.size.width, self._starts[-1])
        if self._selected_index() is None:
            self.selected = views[0].key if views else None
        self.refresh()

    def line(self, number: int) -> Line:
        """A line by its number; without sessions, a line of the text given to `show`."""
        index = bisect_right(self._starts, number) - 1
        if not self._views:
            return super().line(number)
        if index >= len(self._views) or self._rows is None:
            return ()
        if index not in self._drawn:
            view = self._views[index]
            self._drawn[index] = self._rows.lines(view, view.key == self.selected)
        return self._drawn[index][number - self._starts[index]]

    def action_move(self, by: int) -> None:
        index = self._selected_index()
        if index is not None:
            self._select(max(0, min(len(self._views) - 1, index + by)))

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def on_click(self, event: events.Click) -> None:
        """Select a session; open it if it is already selected."""
        index = bisect_right(self._starts, self.scroll_offset.y + event.y) - 1
        if index < len(self._views):
            was_selected = self._views[index].key == self.selected
            self._select(index)
            if was_selected:
                self.action_open()

    def _selected_index(self) -> int | None:
        return next((i for i, v in enumerate(self._views) if v.key == self.selected), None)

    def _select(self, index: int) -> None:
        self.selected = self._views[index].key
        self._drawn = {}
        top, bottom = self._starts[index], self._starts[index + 1]
        self.scroll_to_region(
            Region(0, top, 1, bottom - top), animate=False, force=True, x_axis=False
        )
        self.refresh()
