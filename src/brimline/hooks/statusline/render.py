"""Rendering of the status line from a reading."""

from collections.abc import Callable, Sequence

from brimline.agents.hook_payloads import StatusInput
from brimline.hooks.statusline.layout import Part, coloured_part, fit_parts, join_parts, plain_part
from brimline.hooks.statusline.options import RenderOptions
from brimline.settings import LinePart
from brimline.terminal.colours import code
from brimline.terminal.text import HIGH_FROM, MEDIUM_FROM
from brimline.tracker import Reading
from brimline.usage import format_tokens, whole_percent
from brimline.windows import Window

FILLED_CELL, EMPTY_CELL = "█", "░"
CORRECTED_MARK = "*"  # the client reports another figure
OVER_MARK = "!"  # more than the window that the user set


def render_line(reading: Reading, status: StatusInput, options: RenderOptions) -> str:
    """Return the status line: the parts that the user chose, as many as fit.

    Before the first call, and after a compaction until the next call, the context is shown as
    unknown. A wrong figure of the client is corrected, marked with a star, and named at the end.
    """
    rendered = (_PARTS[name](reading, status, options) for name in options.line.parts)
    parts = [variants for variants in rendered if variants]
    if error := _client_error(reading, status, options):
        parts.append([plain_part(f"{CORRECTED_MARK} {error}")])
    return fit_parts(parts, options.line.separator, options.columns)


def _client_error(reading: Reading, status: StatusInput, options: RenderOptions) -> str | None:
    """Return which figure of the client is wrong, if any."""
    size = status.context_window.context_window_size
    window = reading.window
    if options.client_error is None and window is not None and window.origin == "observed" and size:
        return f"client says {format_tokens(size)} window" if size < window.tokens else None
    return options.client_error


def _context(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    """Return the occupancy: with a bar, with tokens, with neither."""
    if reading.sent is None or reading.state == "compacting":
        return _unknown(reading, options)
    if reading.window is None or reading.percent is None or _is_lower_bound(reading):
        return [plain_part(f"{format_tokens(reading.sent)} of an unknown window")]
    marks = CORRECTED_MARK if _client_error(reading, status, options) else ""
    percent = f"{_percent(reading, reading.sent, reading.window)}{marks}"
    tokens = f" {format_tokens(reading.sent)}/{format_tokens(reading.window.tokens)} window"
    shade = _colour_code(reading, options)
    if not options.line.bar:
        figure = coloured_part(percent, shade)
        return [
            join_parts([figure, plain_part(tokens)], ""),
            join_parts([figure, plain_part(" of window")], ""),
        ]
    bar = coloured_part(_bar(reading.percent, options.line.bar), shade)
    return [join_parts([bar, plain_part(percent + tokens)], " "), plain_part(percent + tokens),
            plain_part(f"{percent} of window")]  # fmt: skip


def _unknown(reading: Reading, options: RenderOptions) -> Sequence[Part]:
    """Return why there is no figure: with the size of the window, without it."""
    reason = _unknown_reason(reading, options)
    if reading.window is None:
        return [plain_part(reason)]
    return [
        plain_part(f"{reason}, {format_tokens(reading.window.tokens)} window"),
        plain_part(reason),
    ]


def _unknown_reason(reading: Reading, options: RenderOptions) -> str:
    if reading.state == "compacting":
        return "compacting"
    if options.client_error and not reading.cycle:
        return "context unknown"
    called = reading.cycle or options.has_call
    return "context unknown until the next reply" if called else "no call yet"


def _is_lower_bound(reading: Reading) -> bool:
    """Return whether only a lower bound of the window is known: what was sent."""
    window, sent = reading.window, reading.sent
    return window is not None and window.origin == "observed" and sent == window.tokens


def _percent(reading: Reading, sent: int, window: Window) -> str:
    """Return whole percent; a used context is never shown as 0%, more than 100% is shown."""
    if sent > window.tokens:
        return f"{reading.percent_raw:.0f}%{OVER_MARK}"
    whole = whole_percent(sent, window.tokens)
    return f"{whole}%" if whole else "<1%"


def _bar(percent: float, columns: int) -> str:
    filled = int(columns * percent / 100)
    return FILLED_CELL * filled + EMPTY_CELL * (columns - filled)


def _colour_code(reading: Reading, options: RenderOptions) -> str:
    """Return the colour code by distance to the limit, else to the window's end."""
    near = reading.percent if reading.percent_of_limit is None else reading.percent_of_limit
    if not options.colour or near is None:
        return ""
    line = options.line
    colour = line.hot if near >= HIGH_FROM else line.warm if near >= MEDIUM_FROM else line.calm
    return code(colour) or ""


def _tokens_left(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    """Return the tokens left until the compaction, or until the window's end if there is none."""
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


def _calls_left(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    if not options.calls_left or reading.sent is None:
        return []
    return [plain_part(f"~{options.calls_left} call{'' if options.calls_left == 1 else 's'} left")]


def _cost(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    dollars = status.cost.total_cost_usd
    return [] if dollars is None or dollars < 0.005 else [plain_part(f"${dollars:,.2f}")]


def _handoff(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    if options.handoff is None:
        return []
    calls = options.handoff_calls
    since = "" if not calls else f", {calls} call{'' if calls == 1 else 's'} ago"
    return [plain_part(f"{options.handoff} handoff{since}")]


_PARTS: dict[LinePart, Callable[[Reading, StatusInput, RenderOptions], Sequence[Part]]] = {
    "context": _context,
    "left": _tokens_left,
    "calls": _calls_left,
    "cost": _cost,
    "handoff": _handoff,
}
