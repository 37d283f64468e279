"""What a server sent for the sessions of this machine: its ids here, and how it is stored."""

from collections.abc import Iterable, Sequence

from brimline.handoff import Document
from brimline.inbox import BRIMLINE, MAX_CONTEXT_CHARS, PENDING_STATES, Message, utf16_length
from brimline.store.base import MarkMessage, PutHandoff, QueueMessage, Write
from brimline.store.rows import HandoffRow, ThreadRow
from brimline.uplink.protocol import UplinkDocument, UplinkMessage, UplinkReply

PREFIX = "fleet-"  # of the ids that messages and documents of the server have on this machine


def server_id(id: str) -> str:
    """Return the id at the server of what has this id here."""
    return id.removeprefix(PREFIX)


def find_delivered(messages: Iterable[Message]) -> list[str]:
    """Return which of the server's messages reached an agent, by their ids at the server."""
    return [server_id(each.id) for each in messages if _is_of_server(each, ("delivered",))]


def find_held(messages: Iterable[Message]) -> list[str]:
    """Return which of the server's messages wait here, by their ids at the server."""
    return [server_id(each.id) for each in messages if _is_of_server(each, PENDING_STATES)]


def _is_of_server(message: Message, states: Sequence[str]) -> bool:
    return message.id.startswith(PREFIX) and message.state in states


def message_writes(reply: UplinkReply, now: float) -> list[Write]:
    """Return the writes that queue a reply's messages, and cancel those that were withdrawn."""
    fitting = [each for each in reply.messages if utf16_length(each.text) <= MAX_CONTEXT_CHARS]
    queued: list[Write] = [QueueMessage(_message(each, now)) for each in fitting]
    marks = (MarkMessage(PREFIX + id, "cancelled", PENDING_STATES, now) for id in reply.cancelled)
    return [*queued, *marks]


def _message(received: UplinkMessage, now: float) -> Message:
    in_s = received.expires_in_s
    return Message(
        id=PREFIX + received.id,
        session=received.session,
        text=received.text,
        at=now,
        urgency="urgent" if received.urgency == "urgent" else "sequential",
        # No server poses as this machine's own Brimline.
        sender="user" if received.sender == BRIMLINE else received.sender,
        expires=None if in_s is None else now + in_s,
        blocks_stop=received.blocks_stop,
    )


def document_write(received: UplinkDocument, main: ThreadRow | None, now: float) -> Write:
    """Return the write that stores a document, for the cycle in which it was received."""
    document = Document.of(received.text, received.name, now)
    return PutHandoff(
        HandoffRow(
            id=PREFIX + received.id,
            session=received.session,
            at=now,
            path=document.path,
            sha256=document.sha256,
            text=document.text,
            author=received.author,
            cycle=main.cycle if main else 0,
            calls=main.calls if main else None,
        )
    )
