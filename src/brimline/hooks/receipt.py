"""What an answer delivers: its client gives that back if the delivery was not confirmed."""

import msgspec

from brimline.agents.observations import Reply
from brimline.files.foreign_json import JsonDecoder


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """The messages and the handoff document in one answer; `session` is the document's."""

    messages: tuple[str, ...] = ()
    handoff: str | None = None
    session: str = ""


_decoder = JsonDecoder(Receipt)


def encode_receipt(reply: Reply) -> bytes:
    """Return the receipt of an answer."""
    return msgspec.json.encode(Receipt(reply.message_ids, reply.handoff_id, reply.session))


def decode_receipt(data: bytes) -> Reply:
    """Return what was delivered, as the answer had it; raises MalformedJson."""
    receipt = _decoder.decode(data)
    return Reply(message_ids=receipt.messages, handoff_id=receipt.handoff, session=receipt.session)
