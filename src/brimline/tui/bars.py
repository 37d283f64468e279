"""The bar of a thread with marks for levels and limit, and the texts after it."""

from pathlib import Path, PurePath

from brimline.context.need import ACTIVE_FOR_S
from brimline.context.usage import format_occupancy, format_percent, format_tokens
from brimline.context.window import short_model
from brimline.sessions.files import MIN_SHORT_ID_CHARS
from brimline.terminal.report_text import FORK_MARK
from brimline.terminal.text import (
    Shade,
    draw_bar,
    format_age,
    format_dollars,
    shorten_home,
    strip_control,
)
from brimline.tui.api_types import WatchedSession, WatchedThread
from brimline.tui.styled_text import Line, StyledText

LEVEL_MARK, PENDING_MARK, LIMIT_MARK = "╎", "◆", "┃"

# Shown in addition to the colours, and instead of them on a terminal without colours.
SHADE_WORDS: dict[Shade, str] = {
    "low": "low", "medium": "medium", "high": "high", "limit": "at limit", "dim": "",
}  # fmt: skip


def thread_shade(thread: WatchedThread) -> Shade:
    """The shade of how full a thread is; `dim` if that is unknown."""
    return thread.fullness or "dim"


def is_over_window(thread: WatchedThread) -> bool:
    """Whether more was sent than the known window; then the window is probably wrong."""
    return thread.percent_raw is not None and thread.percent_raw > 100


def shade_word(thread: WatchedThread) -> str:
    return "over" if is_over_window(thread) else SHADE_WORDS[thread_shade(thread)]


def draw_thread_bar(view: WatchedSession, thread: WatchedThread, width: int) -> Line:
    marks: dict[int, StyledText] = {}
    for level in thread.levels:
        is_pending = level == thread.pending_level
        marks[_column(level, width)] = StyledText(PENDING_MARK if is_pending else LEVEL_MARK)
    limit = view.limit_percent(thread)
    if limit is not None and limit < 100:
        marks[_column(limit, width)] = StyledText(LIMIT_MARK, "limit")
    own = thread_shade(thread)
    return _with_marks(draw_bar(thread.percent, width), own, marks)


def _column(percent: float, width: int) -> int:
    return min(width - 1, int(percent * width / 100))


def _with_marks(text: str, own: Shade, marks: dict[int, StyledText]) -> Line:
    line: list[StyledText] = []
    start = 0
    for column in sorted(marks):
        line += [StyledText(text[start:column], own), marks[column]]
        start = column + 1
    return [piece for piece in (*line, StyledText(text[start:], own)) if piece.text]


def percent_text(thread: WatchedThread) -> str:
    """The percentage of the window; with `!` if it is above 100."""
    if thread.percent is None:
        return "unknown" if thread.sent is None else "?"
    return format_occupancy(thread.percent if thread.percent_raw is None else thread.percent_raw)


def tokens_text(thread: WatchedThread) -> str:
    """The tokens sent and the window, as in `93K/200K`."""
    sent = "?" if thread.sent is None else format_tokens(thread.sent)
    return f"{sent}/{'?' if thread.window is None else format_tokens(thread.window)}"


def limit_text(thread: WatchedThread) -> str:
    """How much of the limit is used."""
    return "?" if thread.percent_of_limit is None else format_percent(thread.percent_of_limit)


def cost_text(view: WatchedSession) -> str:
    """What the session has cost, in dollars."""
    return "?" if view.cost is None else format_dollars(view.cost)


def state_text(view: WatchedSession, thread: WatchedThread | None, now: float) -> str:
    """The state of the session; empty for `measured`, the normal state."""
    if view.session.ended_at is not None:
        return "ended"
    if thread is None:
        return "unknown"
    age = now - last_seen_at(view, thread)
    if age > ACTIVE_FOR_S:
        return f"stale {format_age(age)}"
    if thread.state == "unknown" and view.session.problem:
        return "unreadable"
    return "" if thread.state == "measured" else strip_control(thread.state)


def last_seen_at(view: WatchedSession, thread: WatchedThread | None) -> float:
    return view.session.seen_at if thread is None or thread.at is None else thread.at


def handoff_text(view: WatchedSession) -> str:
    return "?" if view.handoff is None else strip_control(view.handoff.state)


def unread_text(view: WatchedSession) -> str:
    if view.unread is None:
        return "?"
    return str(view.unread) if view.unread else "-"


def model_text(model: str | None) -> str:
    return strip_control(short_model(model))


def headline_text(view: WatchedSession) -> str:
    """The title of a session, else its project's folder, else the start of its id."""
    session = view.session
    folder = PurePath(session.project or "").name or session.project
    name = session.title or folder or session.id[:MIN_SHORT_ID_CHARS]
    return strip_control(f"{FORK_MARK if session.is_fork else ''}{name}")


def project_text(view: WatchedSession, home: Path) -> str:
    """The project's path, with the home folder as ~; the session's id without one."""
    return strip_control(shorten_home(view.session.project or view.session.id, home))
