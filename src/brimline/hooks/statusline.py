"""The status line that the daemon makes: the figure, what it is of, how far the compaction is."""

from brimline.hooks.wire import StatusInput
from brimline.tracker import Reading
from brimline.usage import shorten, whole_percent

WIDTH = 10
FULL, PART = "█", "░"
RESET = "\x1b[0m"
COLOURS = {"calm": "\x1b[32m", "warm": "\x1b[33m", "hot": "\x1b[31m"}


def line(reading: Reading, told: StatusInput, colour: bool, columns: int | None = None) -> str:
    """One line: bar, per cent and tokens of the window, what is left until the compaction, cost.

    Unknown is said so: before the first call, and after a compaction until the next one.
    """
    parts = [_context(reading, colour), _left(reading), _cost(told)]
    shown = [part for part in parts if part]
    while len(shown) > 1 and columns is not None and _length(shown) > columns:
        shown.pop()
    return " | ".join(shown)


def _context(reading: Reading, colour: bool) -> str:
    if reading.window is None:
        told = _unknown(reading) if reading.sent is None else shorten(reading.sent)
        return f"context {told}, window unknown"
    window = reading.window.tokens
    if reading.percent is None or reading.sent is None:
        return f"context {_unknown(reading)} of {shorten(window)}"
    filled = int(WIDTH * reading.percent / 100)
    bar = FULL * filled + PART * (WIDTH - filled)
    figure = f"{whole_percent(reading.sent, window)}% {shorten(reading.sent)}/{shorten(window)}"
    over = " over the window!" if reading.sent > window else ""
    return f"{_painted(bar, reading, colour)} {figure}{over}"


def _unknown(reading: Reading) -> str:
    if reading.state == "compacting":
        return "compacting"
    return "unknown until the next reply" if reading.cycle else "empty"


def _left(reading: Reading) -> str:
    if reading.limit is None or reading.left is None:
        return ""
    if reading.limit.origin in ("off", "not enforced"):
        return "no auto-compaction"
    return f"{shorten(reading.left)} to compaction"


def _cost(told: StatusInput) -> str:
    dollars = told.cost.total_cost_usd
    return "" if not dollars else f"${dollars:.2f}"


def _painted(text: str, reading: Reading, colour: bool) -> str:
    near = reading.percent if reading.percent_of_limit is None else reading.percent_of_limit
    if not colour or near is None:
        return text
    shade = "hot" if near >= 80 else "warm" if near >= 50 else "calm"
    return f"{COLOURS[shade]}{text}{RESET}"


def _length(parts: list[str]) -> int:
    text = " | ".join(parts)
    for code in (*COLOURS.values(), RESET):
        text = text.replace(code, "")
    return len(text)
