"""Rendering of the status line from a reading: as many parts as fit the terminal, never cut."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from brimline.agents.hook_adapter import StatusInput
from brimline.context.forecast import CallsLeft
from brimline.context.need import NeedFacts, assess
from brimline.context.policy.levels import Fullness
from brimline.context.tracker import Reading
from brimline.context.usage import format_occupancy, format_percent, format_tokens
from brimline.settings import Colour, LinePart, LineSettings
from brimline.terminal.colours import code
from brimline.terminal.report_text import describe_end, format_moment
from brimline.terminal.text import cell_width, count_of, draw_bar

RESET = "\x1b[0m"
CORRECTED_MARK = "*"  # the client reports another figure


class RenderOptions(msgspec.Struct, frozen=True):
    """What a line is rendered with, in addition to the reading; None is unknown or absent.

    `fullness` selects the colour. `columns` is the terminal's width, `calls_left` the forecast,
    `handoff_calls` the calls since the handoff. `client_error` names an impossible figure of the
    client. `has_call`: the client reported that a call was made. `cost` is what the session has
    cost by its calls, and `budget` what it may cost, in USD. `now` is the time in seconds since the
    epoch.
    """

    line: LineSettings = LineSettings()
    colour: bool = True
    columns: int | None = None
    calls_left: CallsLeft | None = None
    handoff: Literal["fresh", "old", "draft"] | None = None
    handoff_calls: int | None = None
    client_error: str | None = None
    has_call: bool = False
    fullness: Fullness | None = None
    cost: float | None = None
    budget: float | None = None
    now: float = 0.0


class Part(NamedTuple):
    """A text, and the same with its colours; the width is that of the text."""

    text: str
    shown: str


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


def render_line(reading: Reading, status: StatusInput, options: RenderOptions) -> str:
    """Return the status line: the parts that the user chose, as many as fit.

    Before the first call, and after a compaction until the next call, the context is shown as
    unknown. A wrong figure of the client is corrected, marked with a star, and named at the end.
    """
    rendered = (_PARTS[name](reading, status, options) for name in options.line.parts)
    parts = [variants for variants in rendered if variants]
    if error := _client_error(reading, status, options):
        parts.append([_plain(f"{CORRECTED_MARK} {error}")])
    return _fit(parts, options.line.separator, options.columns)


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
    if reading.window is None or reading.percent_raw is None or _is_lower_bound(reading):
        return [_plain(f"{format_tokens(reading.sent)} of an unknown window")]
    marks = CORRECTED_MARK if _client_error(reading, status, options) else ""
    percent = f"{format_occupancy(reading.percent_raw)}{marks}"
    tokens = f" {format_tokens(reading.sent)}/{format_tokens(reading.window.tokens)} window"
    shade = _colour_code(options)
    if not options.line.bar:
        figure = _coloured(percent, shade)
        return [
            _join([figure, _plain(tokens)], ""),
            _join([figure, _plain(" of window")], ""),
        ]
    bar = _coloured(draw_bar(reading.percent, options.line.bar, whole_cells=True), shade)
    return [_join([bar, _plain(percent + tokens)], " "), _plain(percent + tokens),
            _plain(f"{percent} of window")]  # fmt: skip


def _unknown(reading: Reading, options: RenderOptions) -> Sequence[Part]:
    """Return why there is no figure: with the size of the window, without it."""
    reason = _unknown_reason(reading, options)
    if reading.window is None:
        return [_plain(reason)]
    return [
        _plain(f"{reason}, {format_tokens(reading.window.tokens)} window"),
        _plain(reason),
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


def _colour_code(options: RenderOptions) -> str:
    """Return the code of the user's colour for this fullness."""
    if not options.colour or options.fullness is None:
        return ""
    line = options.line
    colours = {"low": line.calm, "medium": line.warm, "high": line.hot, "limit": line.hot}
    return code(colours[options.fullness]) or ""


def _tokens_left(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    """Return the tokens left until the compaction, or until the window's end if there is none."""
    if reading.limit is None or reading.state == "compacting":
        return []
    is_window = reading.left_of_window
    if reading.left is None:
        return [] if is_window else [_plain(f"compaction at {format_tokens(reading.limit.tokens)}")]
    if not reading.left:
        return [_plain("window full" if is_window else "compaction due")]
    off = ", auto-compaction off" if reading.limit.origin == "off" else ""
    end = f"window's end{off}" if is_window else "compaction"
    return [_plain(f"{format_tokens(reading.left)} to {end}")]


def _calls_left(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    left = options.calls_left
    if left is None or not left.calls or reading.sent is None:
        return []
    return [_plain(f"about {count_of(left.calls, 'call')} left")]


def _next(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    """Return the nearest end: with its time, without it."""
    facts = NeedFacts(
        name=status.session_id,
        called_at=options.now,
        is_compacting=reading.state == "compacting",
        fullness=options.fullness,
        percent_raw=reading.percent_raw,
        percent_of_limit=reading.percent_of_limit,
        calls_left=options.calls_left.calls if options.calls_left else None,
        quotas=status.rate_limits,
        prompt_cache=status.prompt_cache,
        model=status.model.id,
        cost=options.cost,
        budget=options.budget,
    )
    ends = assess(facts, options.now).ends
    if not ends:
        return []
    texts = (describe_end(ends[0], options.now), ends[0].text)
    return [_plain(f"{ends[0].kind}: {text}") for text in texts]


def _cost(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    dollars = status.cost.total_cost_usd
    return [] if dollars is None or dollars < 0.005 else [_plain(f"${dollars:,.2f}")]


def _quota(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    """Return the quota of which most is used: with the time of its reset, without it."""
    quotas = status.rate_limits.current(options.now)
    if quotas is None:
        return []
    name, quota = max(quotas.known.items(), key=lambda each: each[1].used_percentage)
    used = f"{name} {format_percent(quota.used_percentage)}"
    return [_plain(f"{used}, resets {format_moment(quota.resets_at, options.now)}"), _plain(used)]


def _cache(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    """Return until when the cache is warm; or that it is cold, and how much is written again."""
    cache = status.prompt_cache.current(options.now)
    if cache.warm is None or cache.expires_at is None or cache.caching_observed is False:
        return []
    if cache.warm:
        until = format_moment(cache.expires_at, options.now)
        return [_plain(f"cache until {until}")]
    tokens = cache.recache_tokens_if_cold
    again = f", {format_tokens(tokens)} to write again" if tokens else ""
    return [_plain(f"cache cold{again}"), _plain("cache cold")]


def _handoff(reading: Reading, status: StatusInput, options: RenderOptions) -> Sequence[Part]:
    if options.handoff is None:
        return []
    calls = options.handoff_calls
    since = f", {count_of(calls, 'call')} ago" if calls else ""
    return [_plain(f"{options.handoff} handoff{since}")]


def _plain(text: str) -> Part:
    return Part(text, text)


def _coloured(text: str, code: str) -> Part:
    """Return a part in the colour of an SGR code; an empty code is no colour."""
    return Part(text, f"\x1b[{code}m{text}{RESET}") if code else _plain(text)


def _join(parts: Sequence[Part], separator: str) -> Part:
    return Part(separator.join(part.text for part in parts), separator.join(p.shown for p in parts))


def _fit(parts: Sequence[Sequence[Part]], separator: str, columns: int | None) -> str:
    """Return a line of parts, each given in variants from wide to narrow.

    A line that is too wide loses parts from its end; the last part may become narrower.
    """
    candidates = [
        _join([*(variants[0] for variants in parts[: count - 1]), last], separator)
        for count in range(len(parts), 0, -1)
        for last in parts[count - 1]
    ]
    fitting = (line for line in candidates if columns is None or cell_width(line.text) <= columns)
    return next(fitting, candidates[-1]).shown if candidates else ""


_PARTS: dict[LinePart, Callable[[Reading, StatusInput, RenderOptions], Sequence[Part]]] = {
    "context": _context,
    "left": _tokens_left,
    "next": _next,
    "calls": _calls_left,
    "quota": _quota,
    "cache": _cache,
    "cost": _cost,
    "handoff": _handoff,
}
