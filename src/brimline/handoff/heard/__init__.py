"""What the agents' transcripts tell, one file an agent."""

from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import cast

from brimline.handoff.digest import TranscriptDigest
from brimline.handoff.heard.base import Listener
from brimline.sources import known
from brimline.transcripts.lines import MALFORMED, recover_objects

__all__ = ["Listener", "heard", "listener"]


def listener(agent: str) -> Listener:
    """A new listener for one transcript of an agent."""
    return cast("Listener", import_module(f"brimline.handoff.heard.{known(agent)}").LISTENER())


def heard(records: Iterable[bytes], agent: str) -> TranscriptDigest:
    """What an agent's records tell; one that cannot be read is passed over, and the rest is."""
    listens = listener(agent)
    for record in records:
        try:
            listens.hear(record)
        except MALFORMED:
            for piece in recover_objects(record):
                with suppress(*MALFORMED):
                    listens.hear(piece)
    return listens.notes
