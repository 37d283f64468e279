"""Messages on their way to an agent: whose turn it is, in which order, and what is never sent."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from brimline.events import MAIN

Urgency: TypeAlias = Literal["sequential", "urgent"]
Moment: TypeAlias = Literal["turn", "tool", "stop"]
"""When an agent can be told something: as a turn begins, at a tool's result, as a turn ends."""

BRIMLINE = "brimline"
"""The sender of what Brimline says itself."""

MessageState: TypeAlias = Literal["queued", "handed", "delivered", "cancelled", "expired"]

DELIVERY_LEASE_S = 30.0
"""So many seconds a hook has to say that it passed a message on; then it is handed out again."""

MESSAGE_LIFETIME_S = 24 * 3_600.0
"""After so many seconds a message that nobody could be given is no news any more."""


MAX_CONTEXT_CHARS = 9_000
"""So many characters an agent is given at a time. Claude Code keeps 10,000, counted in UTF-16."""

SEPARATOR = "\n\n"


class Message(msgspec.Struct, frozen=True):
    """A text for a session. A level's text belongs to a cycle, and is cancelled when that ends.

    `order` is its place in the queue. `handed_at` is when a hook was last given it.
    """

    id: str
    session: str
    text: str
    at: float
    order: int = 0
    urgency: Urgency = "sequential"
    sender: str = BRIMLINE
    thread: str | None = None
    cycle: int | None = None
    level: float | None = None
    expires: float | None = None
    state: MessageState = "queued"
    handed_at: float | None = None


def deliverable(
    messages: Iterable[Message],
    moment: Moment,
    now: float,
    compacting: bool = False,
    thread: str = MAIN,
) -> list[Message]:
    """What to hand out at a moment: urgent ones first, each kind in its order.

    At a tool's result only what is urgent. At a turn's end also what somebody else sent: that is
    worth going on for, a mere warning of ours is not. Nothing is delivered during a compaction. A
    subagent is told what is for its own thread, and nobody else is.
    """
    if compacting:
        return []
    waiting = [m for m in messages if (m.thread or MAIN) == thread and is_pending(m, now)]
    fit = [message for message in waiting if _fits(message, moment)]
    return sorted(fit, key=lambda m: (m.urgency != "urgent", m.order))


def _fits(message: Message, moment: Moment) -> bool:
    if message.urgency == "urgent" or moment == "turn":
        return True
    return moment == "stop" and message.sender != BRIMLINE


def is_pending(message: Message, now: float) -> bool:
    """Whether a message is still to be handed out, for the first time or again."""
    if _expired(message, now):
        return False
    if message.state == "queued":
        return True
    if message.state != "handed":
        return False
    since = now - (message.handed_at or 0.0)
    return abs(since) >= DELIVERY_LEASE_S  # handed out long after now: the clock was set back


def with_expiry(message: Message, now: float) -> Message:
    """A message as it is by then: one that nobody was given in time has expired."""
    if message.state in ("queued", "handed") and _expired(message, now):
        return msgspec.structs.replace(message, state="expired")
    return message


def _expired(message: Message, now: float) -> bool:
    return message.expires is not None and message.expires <= now


def take_that_fit(messages: Iterable[Message], room: int = MAX_CONTEXT_CHARS) -> list[Message]:
    """The first of these that have room together; where there is room for anything, one at least.

    The others come next time, in their order.
    """
    taken: list[Message] = []
    for message in messages:
        size = utf16_length(join_texts([*taken, message]))
        if size > room and (taken or room < MAX_CONTEXT_CHARS):
            break
        taken.append(message)
    return taken


def utf16_length(text: str) -> int:
    """How many characters a text has, as clients that are written in JavaScript count them."""
    return len(text) + sum(character > "\uffff" for character in text)


def join_texts(messages: Iterable[Message]) -> str:
    """The text of a batch: one message below the other."""
    return SEPARATOR.join(message.text.strip() for message in messages)
