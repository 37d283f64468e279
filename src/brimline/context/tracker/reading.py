"""The reading of a thread: its figures against its window and its limit."""

from typing import Literal, TypeAlias

import msgspec

from brimline.context.events import Call
from brimline.context.tracker.state import Session, Thread
from brimline.context.usage import percent, percent_raw, whole_percent
from brimline.context.window import (
    NO_CLIENT_SETTINGS,
    NO_OVERRIDES,
    ClientSettings,
    Limit,
    Overrides,
    ResolveContext,
    Window,
    clients,
    limit_of,
    window_of,
)

ReadingState: TypeAlias = Literal["measured", "streaming", "compacting", "unknown"]

DELAYED = "the client cannot compact before the next prompt"


class Compared(msgspec.Struct, frozen=True):
    """What the client compares with its limit: the sum of its parts, by name."""

    tokens: int
    parts: dict[str, int]

    def __str__(self) -> str:
        parts = " + ".join(f"{name} {tokens:,}" for name, tokens in self.parts.items())
        return f"{self.tokens:,} = {parts}"


class Reading(msgspec.Struct, frozen=True):
    """The state of a thread at a moment. Unknown is None, never 0.

    `effective` is the cost of the prompt in tokens, for policies; it is not an occupancy. `cycle`
    counts the compactions and clears. `pending` estimates the tokens that came in since the last
    call: by the client, else by what its hooks reported. `compared` contains them if the client
    adds them; of the other figures only `percent_of_limit` and `left` do, which come from it.
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
    compared: Compared | None = None

    @property
    def left(self) -> int | None:
        """The tokens until the client compacts, or the window is full; None if unknown."""
        if self.limit is None or self.compared is None or self.held is None:
            return None
        if self.window and self.left_of_window:
            return max(0, self.window.tokens - self.held)
        return max(0, self.limit.tokens - self.compared.tokens)

    @property
    def left_of_window(self) -> bool:
        """Whether `left` is until the window is full: the client does not compact before that."""
        if self.limit is None:
            return False
        is_beyond = self.window is not None and self.limit.tokens > self.window.tokens
        return is_beyond or not self.limit.is_enforced


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
    reported, observed, max_output, input_limit = (
        next((table[name] for name in names if name in table), None) for table in session.sizes
    )
    return ResolveContext(
        agent=session.agent,
        model=model,
        provider=last.provider if last else None,
        version=session.version,
        reported=thread.window if reported is None else reported,
        observed=observed,
        most_sent=thread.most_sent if most_sent is None else most_sent,
        compacted_at=thread.compacted_at,
        sustained=thread.sustained_sent,
        first_sent=thread.first_sent,
        settings=settings,
        max_output=max_output,
        input_limit=input_limit,
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
    """Return the reading of a thread: its figures against its window and its limit.

    `pending` is an estimate for a thread of which the client's own is not known.
    """
    known = resolve_context(session, thread, settings, model, most_sent)
    window = window_of(known, overrides)
    now = thread.current_call
    sent = now.usage.sent if now else None
    held = now.usage.held if now else None
    pending = (thread.pending or pending) if now else None
    compared = compare_figures(session.agent, sent, held, pending, thread.earlier_reasoning)
    limit = _with_delay(limit_of(known, window, overrides), now, compared)
    size = window.tokens if window else None
    return Reading(
        sent=sent,
        held=held,
        effective=now.usage.effective if now else None,
        window=window,
        limit=limit,
        percent=percent(sent, size),
        percent_raw=percent_raw(sent, size),
        percent_of_limit=percent_raw(
            compared.tokens if compared else None, limit.tokens if limit else None
        ),
        client_shows=client_shows(session.agent, held, sent, window),
        source=source,
        at=thread.at,
        state=_state(thread, now),
        cycle=thread.cycle,
        pending=pending,
        compared=compared,
    )


def compare_figures(
    agent: str | None,
    sent: int | None,
    held: int | None,
    pending: int | None,
    earlier_reasoning: int = 0,
) -> Compared | None:
    """Return what the client compares with its limit; an addition of 0 is left out."""
    if sent is None or held is None:
        return None
    figures = {
        "sent": sent,
        "held": held,
        "pending": pending or 0,
        "earlier reasoning": earlier_reasoning,
    }
    first, *added = clients().compares.get(agent or "", ("held",))
    parts = {first: figures[first], **{name: figures[name] for name in added if figures[name]}}
    return Compared(sum(parts.values()), parts)


def _with_delay(limit: Limit | None, now: Call | None, compared: Compared | None) -> Limit | None:
    """Add to a limit that is reached that the client has to wait."""
    if limit is None or now is None or now.can_compact or not limit.is_enforced:
        return limit
    if compared is None or compared.tokens < limit.tokens:
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
    display = clients().displays.get(agent or "")
    if display is None or window is None or held is None or sent is None:
        return None
    usable = window.tokens - display.reserved_tokens
    if usable <= 0:
        return None
    if display.shows == "left":
        left = usable - max(0, held - display.reserved_tokens)
        return f"{whole_percent(max(0, left), usable)}% left"
    return f"{whole_percent(sent, usable)}% of {usable:,} in the footer"
