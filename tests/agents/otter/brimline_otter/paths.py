"""Where Otter keeps its transcripts: `SESSION.otter` and `SESSION.SUBAGENT.otter` in `~/.otter`."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    files_below,
    transcript_from_entry,
)
from brimline.context.events import MAIN


def root(places: Places) -> Path:
    return places.folder("OTTER_HOME", ".otter")


def transcripts(places: Places) -> Iterator[Transcript]:
    for entry in files_below(str(root(places)), ".otter"):
        if transcript := transcript_from_entry("otter", entry):
            session, _, thread = entry.name.removesuffix(".otter").partition(".")
            yield msgspec.structs.replace(transcript, session=session, thread=thread or MAIN)
