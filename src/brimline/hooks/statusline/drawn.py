"""The line that the daemon makes of a reading: no arithmetic with tokens, only words for them."""

from collections.abc import Callable, Sequence

from brimline.hooks.statusline.fitting import Part, fitted, joined, painted, plain
from brimline.hooks.statusline.look import Look
from brimline.hooks.wire import StatusInput
from brimline.settings import LinePart
from brimline.terminal.colours import code
from brimline.tracker import Reading
from brimline.usage import format_tokens, whole_percent
from brimline.windows import Window

FULL, PART = "█", "░"
WARM_FROM, HOT_FROM = 50, 80
"""Per cent of the way to the compaction; of the window where that is unknown."""

PUT_RIGHT, OVER = "*", "!"
"""The marks of a figure that is not the client's, and of more than the window that the user set."""


def line(reading: Reading, told: StatusInput, look: Look) -> str:
    """The status line, its parts in the user's order, as far as there is room from the first on.

    Unknown is said so: before the first call, and after a compaction until the next one. What the
    client got wrong is put right, marked with a star, and named at the end.
    """
    drawn = (_PARTS[name](reading, told, look) for name in look.line.parts)
    parts = [ways for ways in drawn if ways]
    if wrong := _wrong(reading, told, look):
        parts.append([plain(f"{PUT_RIGHT} {wrong}")])
    return fitted(parts, look.line.separator, look.columns)


def _wrong(reading: Reading, told: StatusInput, look: Look) -> str | None:
    """What the client got wrong, by what it told and by what is known."""
    size = told.context_window.context_window_size
    window = reading.window
    if look.wrong is None and window is not None and window.origin == "observed" and size:
        return f"client says {format_tokens(size)} window" if size < window.tokens else None
    return look.wrong


def _context(reading: Reading, told: StatusInput, look: Look) -> Sequence[Part]:
    """How full the window is: with a bar, with tokens, with neither."""
    if reading.sent is None or reading.state == "compacting":
        return _unknown(reading, look)
    if reading.window is None or reading.percent is None or _is_least(reading):
        return [plain(f"{format_tokens(reading.sent)} of an unknown window")]
    marks = PUT_RIGHT if _wrong(reading, told, look) else ""
    percent = f"{_percent(reading, reading.sent, reading.window)}{marks}"
    tokens = f" {format_tokens(reading.sent)}/{format_tokens(reading.window.tokens)} window"
    shade = _shade(reading, look)
    if not look.line.bar:
        figure = painted(percent, shade)
        return [joined([figure, plain(tokens)], ""), joined([figure, plain(" of window")], "")]
    bar = painted(_bar(reading.percent, look.line.bar), shade)
    return [joined([bar, plain(percent + tokens)], " "), plain(percent + tokens),
            plain(f"{percent} of window")]  # fmt: skip


def _unknown(reading: Reading, look: Look) -> Sequence[Part]:
    """Why there is no figure: with the size of the window, without it."""
    why = _why(reading, look)
    if reading.window is None:
        return [plain(why)]
    return [plain(f"{why}, {format_tokens(reading.window.tokens)} window"), plain(why)]


def _why(reading: Reading, look: Look) -> str:
    if reading.state == "compacting":
        return "compacting"
    if look.wrong and not reading.cycle:
        return "context unknown"
    called = reading.cycle or look.called
    return "context unknown until the next reply" if called else "no call yet"


def _is_least(reading: Reading) -> bool:
    """Whether nothing is known of the window but that it is no smaller than what it holds."""
    window, sent = reading.window, reading.sent
    return window is not None and window.origin == "observed" and sent == window.tokens


def _percent(reading: Reading, sent: int, window: Window) -> str:
    """Whole per cent; what is in use is never 0, and what is too much is not hidden."""
    if sent > window.tokens:
        return f"{reading.percent_raw:.0f}%{OVER}"
    whole = whole_percent(sent, window.tokens)
    return f"{whole}%" if whole else "<1%"


def _bar(percent: float, columns: int) -> str:
    filled = int(columns * percent / 100)
    return FULL * filled + PART * (columns - filled)


def _shade(reading: Reading, look: Look) -> str:
    """The code of the colour, by how near the compaction is; empty where none is wanted."""
    near = reading.percent if reading.percent_of_limit is None else reading.percent_of_limit
    if not look.colour or near is None:
        return ""
    own = look.line
    colour = own.hot if near >= HOT_FROM else own.warm if near >= WARM_FROM else own.calm
    return code(colour) or ""


def _left(reading: Reading, told: StatusInput, look: Look) -> Sequence[Part]:
    """What is left until the client compacts, or until the window ends where it does not."""
    if reading.limit is None or reading.state == "compacting":
        return []
    is_window = reading.left_of_window
    if reading.left is None:
        return [] if is_window else [plain(f"compaction at {format_tokens(reading.limit.tokens)}")]
    if not reading.left:
        return [plain("window full" if is_window else "compaction due")]
    off = ", auto-compaction off" if reading.limit.origin == "off" else ""
    end = f"window's end{off}" if is_window else "compaction"
    return [plain(f"{format_tokens(reading.left)} to {end}")]


def _calls(reading: Reading, told: StatusInput, look: Look) -> Sequence[Part]:
    if not look.calls_left or reading.sent is None:
        return []
    return [plain(f"~{look.calls_left} call{'' if look.calls_left == 1 else 's'} left")]


def _cost(reading: Reading, told: StatusInput, look: Look) -> Sequence[Part]:
    dollars = told.cost.total_cost_usd
    return [] if dollars is None or dollars < 0.005 else [plain(f"${dollars:,.2f}")]


def _handoff(reading: Reading, told: StatusInput, look: Look) -> Sequence[Part]:
    if look.handoff is None:
        return []
    calls = look.handoff_calls
    since = "" if not calls else f", {calls} call{'' if calls == 1 else 's'} ago"
    return [plain(f"{look.handoff} handoff{since}")]


_PARTS: dict[LinePart, Callable[[Reading, StatusInput, Look], Sequence[Part]]] = {
    "context": _context,
    "left": _left,
    "calls": _calls,
    "cost": _cost,
    "handoff": _handoff,
}
