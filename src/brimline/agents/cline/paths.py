"""Where Cline CLI keeps its sessions: `SESSION/THREAD.messages.json` for each thread."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    files_below,
    to_text,
    transcript_from_entry,
)
from brimline.context.events import MAIN

MESSAGES, COMPACTION = ".messages.json", ".compaction.json"


def folders(places: Places) -> list[Path]:
    """Return the folder of the sessions, which the first variable that is set moves."""
    if sessions := places.env.get("CLINE_SESSION_DATA_DIR"):
        return [Path(sessions)]
    if data := places.env.get("CLINE_DATA_DIR"):
        return [Path(data, "sessions")]
    return [places.folder("CLINE_DIR", ".cline") / "data" / "sessions"]


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every thread of every session; that of the session itself has its name."""
    for folder in folders(places):
        for entry in files_below(str(folder), MESSAGES):
            if transcript := transcript_from_entry("cline", entry):
                session = to_text(os.path.basename(os.path.dirname(entry.path)))
                name = to_text(entry.name.removesuffix(MESSAGES))
                thread = MAIN if name == session else name
                yield msgspec.structs.replace(transcript, session=session, thread=thread)
