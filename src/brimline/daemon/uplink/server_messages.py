"""What a server sends for the sessions of this machine: what is accepted, and how it is stored.

The server may be hostile: this machine decides, by the user's settings and bounds of its own, and
labels what it accepts.
"""

import asyncio
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from brimline.context.events import MAIN
from brimline.context.inbox import (
    BRIMLINE,
    MAX_CONTEXT_CHARS,
    MAX_SENDER_CHARS,
    MESSAGE_LIFETIME_S,
    PENDING_STATES,
    Message,
    utf16_length,
    with_expiry,
)
from brimline.daemon.uplink.protocol import (
    DOCUMENT_LIFETIME_S,
    MAX_MACHINE_PENDING,
    MAX_REPLY_MESSAGES,
    MAX_SESSION_PENDING,
    UplinkDocument,
    UplinkMessage,
    UplinkReply,
)
from brimline.errors import InvalidHandoff
from brimline.files.bounded_dict import BoundedDict
from brimline.handoff.document import receive_document, received_from
from brimline.monitor.monitor import LOCAL_MACHINE
from brimline.store.base import MarkMessage, PutHandoff, QueueMessage, Store, Write
from brimline.store.rows import HandoffRow
from brimline.terminal.text import strip_control

LOGGER = logging.getLogger("brimline.uplink")

PREFIX = "fleet-"  # of the ids that messages and documents of the server have on this machine
MAX_ID_CHARS = 200
MAX_REPORTED = 1_000  # ids of refused messages, and of documents, in a batch
MAX_BODY_CHARS = MAX_CONTEXT_CHARS - 400  # in UTF-16: what the longest label leaves of a reply

UNKNOWN_NAME = "unknown"
RESERVED_NAMES = {"user", BRIMLINE}
_LOOKALIKES = str.maketrans("еѕгіӏмпυιı1|", "esrilmnuiill")  # of the letters of these
# A line that could be taken for the label of another message, or for a text of Brimline itself.
_LABEL = re.compile(r"[\[［](?=\W{0,9}(?:message\W{1,9}from|brimline)\b)", re.IGNORECASE)

NOT_ACCEPTED = "uplink.receive does not accept it"
TOO_LARGE = "a reply has too many bytes"
TOO_MANY = f"a reply has more than {MAX_REPLY_MESSAGES} messages, or more than one document"
INVALID_ID = "its id is empty, too long or not printable"
NOT_HERE = "its session is not one of this machine"
SESSION_FULL = f"its session has {MAX_SESSION_PENDING} from servers already"
MACHINE_FULL = f"this machine has {MAX_MACHINE_PENDING} from servers already"
INVALID_MESSAGE = "it is empty or too long"
INVALID_DOCUMENT = "it is empty, larger than 256 KiB or has control characters"


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


def accepts_messages(receive: str | None) -> bool:
    return receive == "all"


def accepts_handoffs(receive: str | None) -> bool:
    return receive in ("handoffs", "all")


def quote_text(text: str) -> str:
    """Return a text without control characters, in which no line can pose as a label of ours.

    All lines but the first, which follows the label, are quoted.
    """
    lines = [strip_control(line.expandtabs(4)) for line in text.strip().splitlines()]
    return _LABEL.sub("(", "\n> ".join(lines))


def clean_name(claimed: str) -> str:
    """Return a name that a server claims as one printable word, never that of the user or ours."""
    name = _one_word(claimed)
    folded = unicodedata.normalize("NFKD", name).casefold().translate(_LOOKALIKES)
    plain = "".join(char for char in folded if not unicodedata.combining(char))
    words = re.findall(r"[^\W_]+", plain)
    is_reserved = RESERVED_NAMES.intersection([*words, "".join(words)])
    return UNKNOWN_NAME if is_reserved or not words else name


def _one_word(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text[:MAX_SENDER_CHARS])
    shown = "".join(char for char in normal if char.isprintable() and char not in "[]")
    return "-".join(shown.split())[:MAX_SENDER_CHARS]


class Receiver:
    """Stores what a server sends, if this machine accepts it; the rest is refused and counted.

    `refusal` is the last reason. `refused_ids` and `documents` are for the next batches: the
    server need not send these again.
    """

    def __init__(self, store: Store, receive: str, host: str, may_block_stop: bool) -> None:
        """`host` is the server's name, which labels what it sends."""
        self._store, self._receive, self._host = store, receive, host
        self._may_block_stop = may_block_stop
        self.received = self.refused = 0
        self.refusal: str | None = None
        self.refused_ids = BoundedDict[str, None](MAX_REPORTED)
        self.documents = BoundedDict[str, None](MAX_REPORTED)
        self._logged: set[str] = set()

    async def cancel_unaccepted(self, now: float) -> None:
        """Cancel messages that an earlier setting accepted."""
        if accepts_messages(self._receive):
            return
        held = find_held(await self._store.pending_messages())
        await self._store.write([_cancellation(PREFIX + id, now) for id in held])
        for id in held:
            self._refuse(NOT_ACCEPTED, id)

    async def store_reply(self, reply: UplinkReply, now: float) -> None:
        """Store messages and documents by their ids: what comes a second time has no effect."""
        self._refuse(TOO_LARGE, count=reply.dropped)
        messages, documents = reply.messages[:MAX_REPLY_MESSAGES], reply.documents[:1]
        excess = len(reply.messages) + len(reply.documents) - len(messages) - len(documents)
        self._refuse(TOO_MANY, count=excess)
        writes = await self._message_writes(messages, now) if messages else []
        if reply.cancelled:
            held = {PREFIX + id for id in find_held(await self._store.pending_messages())}
            writes += [
                _cancellation(id, now)
                for id in held.intersection(PREFIX + id for id in reply.cancelled)
            ]
        for document in documents:
            writes += await self._document_writes(document, now)
        if writes:
            self.received += sum(await self._store.write(writes))

    async def _message_writes(self, messages: list[UplinkMessage], now: float) -> list[Write]:
        pending = [
            each
            for each in await self._store.pending_messages()
            if _is_of_server(with_expiry(each, now), PENDING_STATES)
        ]
        known, counts = {each.id for each in pending}, Counter(each.session for each in pending)
        writes: list[Write] = []
        for received in messages:
            if PREFIX + received.id in known:
                continue
            reason = await self._find_message_problem(received, counts)
            # In a thread: hooks do not wait for it, whatever the text is.
            text = "" if reason else await asyncio.to_thread(quote_text, received.text)
            if reason is None and 0 < utf16_length(text) <= MAX_BODY_CHARS:
                known.add(PREFIX + received.id)
                counts[received.session] += 1
                writes.append(QueueMessage(self._message(received, text, now)))
            else:
                self._refuse(reason or INVALID_MESSAGE, received.id)
        return writes

    async def _find_message_problem(
        self, received: UplinkMessage, counts: Counter[str]
    ) -> str | None:
        if not accepts_messages(self._receive):
            return NOT_ACCEPTED
        if len(received.text) > MAX_BODY_CHARS:
            return INVALID_MESSAGE
        if counts.total() >= MAX_MACHINE_PENDING:
            return MACHINE_FULL
        if counts[received.session] >= MAX_SESSION_PENDING:
            return SESSION_FULL
        return await self._find_problem(received)

    async def _find_problem(self, received: UplinkMessage | UplinkDocument) -> str | None:
        """Return why a message or document is refused whatever it says."""
        if not _is_id(received.id):
            return INVALID_ID
        row = await self._store.session(received.session)
        is_own = row is not None and row.machine in (None, LOCAL_MACHINE)
        return None if is_own else NOT_HERE

    def _message(self, received: UplinkMessage, text: str, now: float) -> Message:
        in_s, sender = received.expires_in_s, self._sender(received.sender)
        lifetime_s = MESSAGE_LIFETIME_S if in_s is None else min(in_s, MESSAGE_LIFETIME_S)
        return Message(
            id=PREFIX + received.id,
            session=received.session,
            text=f"[message from {sender}] {text}",
            at=now,
            urgency="urgent" if received.urgency == "urgent" else "sequential",
            sender=sender,
            expires=now + lifetime_s,
            blocks_stop=received.blocks_stop and self._may_block_stop,
        )

    def _sender(self, claimed: str) -> str:
        return f"{clean_name(claimed)} via {self._host}"

    async def _document_writes(self, received: UplinkDocument, now: float) -> list[Write]:
        """Return the write that stores a document, for the cycle in which it was received."""
        if _is_id(received.id):
            self.documents[received.id] = None
        if (reason := await self._find_document_problem(received, now)) is not None:
            self._refuse(reason)
            return []
        path = received_from(self._host, _one_word(PurePath(received.name).name))
        try:
            document = receive_document(received.text, path, now)
        except InvalidHandoff:
            self._refuse(INVALID_DOCUMENT)
            return []
        threads = await self._store.threads(received.session)
        main = next((row for row in threads if row.thread == MAIN), None)
        row = HandoffRow(
            id=PREFIX + received.id,
            session=received.session,
            at=now,
            path=document.path,
            sha256=document.sha256,
            text=document.text,
            author=self._sender(received.author),
            cycle=main.cycle if main else 0,
            calls=main.calls if main else None,
        )
        return [PutHandoff(row)]

    async def _find_document_problem(self, received: UplinkDocument, now: float) -> str | None:
        if not accepts_handoffs(self._receive):
            return NOT_ACCEPTED
        if (reason := await self._find_problem(received)) is not None:
            return reason
        rows = await self._store.handoffs(received.session)
        if any(row.id == PREFIX + received.id for row in rows):
            return None
        if _count_new(rows, now) >= MAX_SESSION_PENDING:
            return SESSION_FULL
        sessions = _count_new(await self._store.last_handoffs(), now)
        return MACHINE_FULL if sessions >= MAX_MACHINE_PENDING else None

    def _refuse(self, reason: str, id: str = "", count: int = 1) -> None:
        """Count what is refused, and log each reason once: a server could fill the log."""
        if not count:
            return
        self.refused, self.refusal = self.refused + count, reason
        if _is_id(id):
            self.refused_ids[id] = None
        if reason not in self._logged:
            self._logged.add(reason)
            text = "%s: a message or document of the fleet's server is refused: %s"
            LOGGER.warning(text, self._host, reason)


def _is_id(id: str) -> bool:
    return 0 < len(id) <= MAX_ID_CHARS and id.isprintable()


def _count_new(rows: Iterable[HandoffRow], now: float) -> int:
    since = now - DOCUMENT_LIFETIME_S
    return sum(row.id.startswith(PREFIX) and row.at > since for row in rows)


def _cancellation(id: str, now: float) -> Write:
    return MarkMessage(id, "cancelled", PENDING_STATES, now)
