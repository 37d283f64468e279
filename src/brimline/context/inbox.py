"""Messages to an agent: which are delivered when, in which order, and how many fit."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Literal, TypeAlias

import msgspec

from brimline.context.events import MAIN

Urgency: TypeAlias = Literal["sequential", "urgent"]
# When messages can be delivered: at the start of a turn, at a tool's result, at the end of a turn.
Moment: TypeAlias = Literal["turn", "tool", "stop"]

BRIMLINE = "brimline"  # the sender of Brimline's own messages

MessageState: TypeAlias = Literal["queued", "handed", "delivered", "cancelled", "expired"]
PENDING_STATES: tuple[MessageState, ...] = ("queued", "handed")  # not known to be delivered

DELIVERY_LEASE_S = 30.0  # unacknowledged messages are handed out again after this

MESSAGE_LIFETIME_S = 24 * 3_600.0  # undelivered messages expire after this


# The most that one hook reply adds to a context. Claude Code keeps 10,000, counted in UTF-16.
MAX_CONTEXT_CHARS = 9_000

# What people ask an agent for; web/src/components/handoff-requests.tsx has the same text.
HANDOFF_REQUEST = (
    "Write a handoff document now (the task, what is done, what is open, where to look) and save "
    "it with `brimline handoff FILE`; then continue."
)

SEPARATOR = "\n\n"
MAX_SENDER_CHARS = 80


class Message(msgspec.Struct, frozen=True):
    """A text for a session, as its agent gets it.

    A level's text belongs to a cycle, and is cancelled at its end.
    `order` is its place in the queue. `handed_at` is the time of the hook that last got it.
    `blocks_stop`: it may keep a turn from ending, for which its sender has to ask.
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
    blocks_stop: bool = False


def deliverable(
    messages: Iterable[Message],
    moment: Moment,
    now: float,
    compacting: bool = False,
    thread: str = MAIN,
) -> list[Message]:
    """The messages to deliver at a moment: urgent ones first, each kind in its order.

    At a tool's result only urgent ones and levels; at the end of a turn only those for which the
    agent should go on working.
    Nothing is delivered during a compaction, and each thread gets only its own messages.
    """
    if compacting:
        return []
    pending = [m for m in messages if (m.thread or MAIN) == thread and is_pending(m, now)]
    fit = [message for message in pending if _fits_moment(message, moment)]
    return sorted(fit, key=_delivery_order)


def before_handed_out(messages: Iterable[Message], now: float, thread: str = MAIN) -> list[Message]:
    """The messages of a thread before the first one that is handed out and not acknowledged yet.

    If several programs take the messages of a session, they get them in their order.
    """
    line = sorted((m for m in messages if (m.thread or MAIN) == thread), key=_delivery_order)
    return list(takewhile(lambda m: _is_expired(m, now) or is_pending(m, now), line))


def _delivery_order(message: Message) -> tuple[bool, int]:
    return message.urgency != "urgent", message.order


def _fits_moment(message: Message, moment: Moment) -> bool:
    if moment == "stop":
        return message.blocks_stop
    return moment == "turn" or may_come_mid_turn(message)


def may_come_mid_turn(message: Message) -> bool:
    """Whether a message comes with a tool's result; a level does: a headless run has one prompt."""
    return message.urgency == "urgent" or message.level is not None


def is_pending(message: Message, now: float) -> bool:
    """Whether a message is to be handed out, for the first time or again."""
    if _is_expired(message, now):
        return False
    if message.state == "queued":
        return True
    if message.state != "handed":
        return False
    since = now - (message.handed_at or 0.0)
    return abs(since) >= DELIVERY_LEASE_S  # negative if the clock was set back


def with_expiry(message: Message, now: float) -> Message:
    """The message, marked as expired if its time has passed."""
    if message.state in PENDING_STATES and _is_expired(message, now):
        return msgspec.structs.replace(message, state="expired")
    return message


def _is_expired(message: Message, now: float) -> bool:
    return message.expires is not None and message.expires <= now


def take_that_fit(messages: Iterable[Message], room: int = MAX_CONTEXT_CHARS) -> list[Message]:
    """The first messages that fit together, at least one if the whole room is free."""
    taken: list[Message] = []
    for message in messages:
        size = utf16_length(join_texts([*taken, message]))
        if size > room and (taken or room < MAX_CONTEXT_CHARS):
            break
        taken.append(message)
    return taken


def utf16_length(text: str) -> int:
    """The length as JavaScript clients count it."""
    return len(text) + sum(character > "\uffff" for character in text)


def join_texts(messages: Iterable[Message]) -> str:
    """The texts of messages, one below the other."""
    return SEPARATOR.join(message.text for message in messages)


def sign_text(text: str, sender: str) -> str:
    """Return the text of a message as its agent gets it: it names its sender."""
    return f"[message from {' '.join(sender.split())[:MAX_SENDER_CHARS]}] {text.strip()}"
