"""The reading of a thread: its figures against its window and its limit."""

from typing import Literal, TypeAlias

import msgspec

from brimline.agents import capabilities_of
from brimline.events import Call
from brimline.tracker.state import Session, Thread
from brimline.usage import percent, percent_raw, whole_percent
from brimline.windows import (
    NO_CLIENT_SETTINGS,
    NO_OVERRIDES,
    ClientSettings,
    Limit,
    Overrides,
    ResolveContext,
    Window,
    limit_of,
    window_of,
)

ReadingState: TypeAlias = Literal["measured", "streaming", "compacting", "unknown"]

UNENFORCED = ("off", "not enforced")  # the limits that are the window itself
DELAYED = "the client cannot compact before the next prompt"


class Reading(msgspec.Struct, frozen=True):
    """The state of a thread at a moment. Unknown is None, never 0.

    `effective` is the cost of the prompt in tokens, for policies; it is not an occupancy. `cycle`
    counts the compactions and clears. `pending` estimates the tokens that came in since the last
    call; no other figure contains them.
    """

    sent: int | None
    held: int | None
    effective: int | None
    window: Window | None
    limit: Limit | None
    percent: float | None
    percent_raw: float | None
    percent_of_limit: float | None
    client_shows: str | None
    source: str
    at: float | None
    state: ReadingState
    cycle: int
    pending: int | None = None

    @property
    def left(self) -> int | None:
        """The tokens until the client compacts, or the window is full; None if unknown."""
        if self.limit is None or self.held is None:
            return None
        end = self.window.tokens if self.window and self.left_of_window else self.limit.tokens
        return max(0, end - self.held)

    @property
    def left_of_window(self) -> bool:
        """Whether `left` is until the window is full: the client does not compact before that."""
        if self.limit is None:
            return False
        is_beyond = self.window is not None and self.limit.tokens > self.window.tokens
        return is_beyond or self.limit.origin in UNENFORCED


def resolve_context(
    session: Session,
    thread: Thread,
    settings: ClientSettings,
    model: str | None = None,
    most_sent: int | None = None,
) -> ResolveContext:
    """Return what is known about a thread's window and limit.

    `model` is the model before the first call; `most_sent` is the most that a call of it sent, if
    the thread does not have that.
    """
    last = thread.last
    model = (last.asked_for or last.model) if last else model
    named = last.model if last else None
    names = [name for name in (model, named) if name is not None]
    reported = (session.windows[name] for name in names if name in session.windows)
    observed = (session.observed_windows[n] for n in names if n in session.observed_windows)
    return ResolveContext(
        agent=session.agent,
        model=model,
        provider=last.provider if last else None,
        version=session.version,
        reported=next(reported, thread.window),
        observed=next(observed, None),
        most_sent=thread.most_sent if most_sent is None else most_sent,
        compacted_at=thread.compacted_at,
        sustained=thread.sustained_sent,
        first_sent=thread.first_sent,
        settings=settings,
    )


def read(
    session: Session,
    thread: Thread,
    source: str,
    overrides: Overrides = NO_OVERRIDES,
    settings: ClientSettings = NO_CLIENT_SETTINGS,
    model: str | None = None,
    most_sent: int | None = None,
    pending: int | None = None,
) -> Reading:
    """Return the reading of a thread: its figures against its window and its limit."""
    known = resolve_context(session, thread, settings, model, most_sent)
    window = window_of(known, overrides)
    now = thread.current_call
    sent = now.usage.sent if now else None
    held = now.usage.held if now else None
    limit = _with_delay(limit_of(known, window, overrides), now)
    size = window.tokens if window else None
    return Reading(
        sent=sent,
        held=held,
        effective=now.usage.effective if now else None,
        window=window,
        limit=limit,
        percent=percent(sent, size),
        percent_raw=percent_raw(sent, size),
        percent_of_limit=percent_raw(held, limit.tokens if limit else None),
        client_shows=client_shows(session.agent, held, sent, window),
        source=source,
        at=thread.at,
        state=_state(thread, now),
        cycle=thread.cycle,
        pending=pending if now else None,
    )


def _with_delay(limit: Limit | None, now: Call | None) -> Limit | None:
    """Add to a limit that is reached that the client has to wait."""
    if limit is None or now is None or now.can_compact or limit.origin in UNENFORCED:
        return limit
    if now.usage.held < limit.tokens:
        return limit
    return msgspec.structs.replace(limit, warning=DELAYED)


def _state(thread: Thread, now: Call | None) -> ReadingState:
    if thread.compacting:
        return "compacting"
    if now is None:
        return "unknown"
    return "measured" if now.final else "streaming"


def client_shows(
    agent: str | None, held: int | None, sent: int | None, window: Window | None
) -> str | None:
    """Return the client's own figure, if it divides other numbers than we do."""
    display = capabilities_of(agent).display
    if display is None or window is None or held is None or sent is None:
        return None
    usable = window.tokens - display.reserved_tokens
    if usable <= 0:
        return None
    if display.shows == "left":
        left = usable - max(0, held - display.reserved_tokens)
        return f"{whole_percent(max(0, left), usable)}% left"
    return f"{whole_percent(sent, usable)}% of {usable:,} in the footer"
