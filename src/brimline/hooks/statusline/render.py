"""The line that the daemon makes of a reading: no arithmetic with tokens, only words for them."""

from collections.abc import Callable, Sequence

from brimline.agents.hook_payloads import StatusInput
from brimline.hooks.statusline.layout import Part, coloured_part, fit_parts, join_parts, plain_part
from brimline.hooks.statusline.options import RenderOptions
from brimline.settings import LinePart
from brimline.terminal.colours import code
from brimline.tracker import Reading
from brimline.usage import format_tokens, whole_percent
from brimline.windows import Window

FILLED_CELL, EMPTY_CELL = "█", "░"
WARM_FROM, HOT_FROM = 50, 80
"""Per cent of the way to the compaction; of the window where that is unknown."""

CORRECTED_MARK, OVER_MARK = "*", "!"
"""The marks of a figure that is not the client's, and of more than the window that the user set."""


def render_line(reading: Reading, told: StatusInput, look: RenderOptions) -> str:
    """The status line, its parts in the user's order, as far as there is room from the first on.

    Unknown is said so: before the first call, and after a compaction until the next one. What the
    client got wrong is put right, marked with a star, and named at the end.
    """
    drawn = (_PARTS[name](reading, told, look) for name in look.line.parts)
    parts = [ways for ways in drawn if ways]
    if wrong := _client_error(reading, told, look):
        parts.append([plain_part(f"{CORRECTED_MARK} {wrong}")])
    return fit_parts(parts, look.line.separator, look.columns)


def _client_error(reading: Reading, told: StatusInput, look: RenderOptions) -> str | None:
    """What the client got wrong, by what it told and by what is known."""
    size = told.context_window.context_window_size
    window = reading.window
    if look.client_error is None and window is not None and window.origin == "observed" and size:
        return f"client says {format_tokens(size)} window" if size < window.tokens else None
    return look.client_error


def _context(reading: Reading, told: StatusInput, look: RenderOptions) -> Sequence[Part]:
    """How full the window is: with a bar, with tokens, with neither."""
    if reading.sent is None or reading.state == "compacting":
        return _unknown(reading, look)
    if reading.window is None or reading.percent is None or _is_lower_bound(reading):
        return [plain_part(f"{format_tokens(reading.sent)} of an unknown window")]
    marks = CORRECTED_MARK if _client_error(reading, told, look) else ""
    percent = f"{_percent(reading, reading.sent, reading.window)}{marks}"
    tokens = f" {format_tokens(reading.sent)}/{format_tokens(reading.window.tokens)} window"
    shade = _colour_code(reading, look)
    if not look.line.bar:
        figure = coloured_part(percent, shade)
        return [
            join_parts([figure, plain_part(tokens)], ""),
            join_parts([figure, plain_part(" of window")], ""),
        ]
    bar = coloured_part(_bar(reading.percent, look.line.bar), shade)
    return [join_parts([bar, plain_part(percent + tokens)], " "), plain_part(percent + tokens),
            plain_part(f"{percent} of window")]  # fmt: skip


def _unknown(reading: Reading, look: RenderOptions) -> Sequence[Part]:
    """Why there is no figure: with the size of the window, without it."""
    why = _unknown_reason(reading, look)
    if reading.window is None:
        return [plain_part(why)]
    return [plain_part(f"{why}, {format_tokens(reading.window.tokens)} window"), plain_part(why)]


def _unknown_reason(reading: Reading, look: RenderOptions) -> str:
    if reading.state == "compacting":
        return "compacting"
    if look.client_error and not reading.cycle:
        return "context unknown"
    called = reading.cycle or look.has_call
    return "context unknown until the next reply" if called else "no call yet"


def _is_lower_bound(reading: Reading) -> bool:
    """Whether nothing is known of the window but that it is no smaller than what it holds."""
    window, sent = reading.window, reading.sent
    return window is not None and window.origin == "observed" and sent == window.tokens


def _percent(reading: Reading, sent: int, window: Window) -> str:
    """Whole per cent; what is in use is never 0, and what is too much is not hidden."""
    if sent > window.tokens:
        return f"{reading.percent_raw:.0f}%{OVER_MARK}"
    whole = whole_percent(sent, window.tokens)
    return f"{whole}%" if whole else "<1%"


def _bar(percent: float, columns: int) -> str:
    filled = int(columns * percent / 100)
    return FILLED_CELL * filled + EMPTY_CELL * (columns - filled)


def _colour_code(reading: Reading, look: RenderOptions) -> str:
    """The code of the colour, by how near the compaction is; empty where none is wanted."""
    near = reading.percent if reading.percent_of_limit is None else reading.percent_of_limit
    if not look.colour or near is None:
        return ""
    own = look.line
    colour = own.hot if near >= HOT_FROM else own.warm if near >= WARM_FROM else own.calm
    return code(colour) or ""


def _tokens_left(reading: Reading, told: StatusInput, look: RenderOptions) -> Sequence[Part]:
    """What is left until the client compacts, or until the window ends where it does not."""
    if reading.limit is None or reading.state == "compacting":
        return []
    is_window = reading.left_of_window
    if reading.left is None:
        return (
            []
            if is_window
            else [plain_part(f"compaction at {format_tokens(reading.limit.tokens)}")]
        )
    if not reading.left:
        return [plain_part("window full" if is_window else "compaction due")]
    off = ", auto-compaction off" if reading.limit.origin == "off" else ""
    end = f"window's end{off}" if is_window else "compaction"
    return [plain_part(f"{format_tokens(reading.left)} to {end}")]


def _calls_left(reading: Reading, told: StatusInput, look: RenderOptions) -> Sequence[Part]:
    if not look.calls_left or reading.sent is None:
        return []
    return [plain_part(f"~{look.calls_left} call{'' if look.calls_left == 1 else 's'} left")]


def _cost(reading: Reading, told: StatusInput, look: RenderOptions) -> Sequence[Part]:
    dollars = told.cost.total_cost_usd
    return [] if dollars is None or dollars < 0.005 else [plain_part(f"${dollars:,.2f}")]


def _handoff(reading: Reading, told: StatusInput, look: RenderOptions) -> Sequence[Part]:
    if look.handoff is None:
        return []
    calls = look.handoff_calls
    since = "" if not calls else f", {calls} call{'' if calls == 1 else 's'} ago"
    return [plain_part(f"{look.handoff} handoff{since}")]


_PARTS: dict[LinePart, Callable[[Reading, StatusInput, RenderOptions], Sequence[Part]]] = {
    "context": _context,
    "left": _tokens_left,
    "calls": _calls_left,
    "cost": _cost,
    "handoff": _handoff,
}
