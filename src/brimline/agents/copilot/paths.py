"""Where Copilot CLI keeps its sessions."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    to_text,
    transcript_from_entry,
)
from brimline.context.window import ClientSettings

EVENTS_NAME = "events.jsonl"


def root(places: Places) -> Path:
    return places.folder("COPILOT_HOME", ".copilot")


def folders(places: Places) -> list[Path]:
    return [root(places) / "session-state"]


def events_file(root: Path, session: str) -> Path:
    """The file of a session, whether it exists or not."""
    return root / "session-state" / session / EVENTS_NAME


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every session's file, which has its subagents too."""
    for folder in folders(places):
        try:
            sessions = list(os.scandir(folder))
        except OSError:
            continue
        for session in sessions:
            yield from _events_in(session)


def _events_in(session: "os.DirEntry[str]") -> Iterator[Transcript]:
    """A folder may be without a file: a session that has begun, and not answered yet."""
    try:
        with os.scandir(session.path) as entries:
            found = [entry for entry in entries if entry.name == EVENTS_NAME]
    except OSError:
        return
    for entry in found:
        if file := transcript_from_entry("copilot", entry):
            yield msgspec.structs.replace(file, session=to_text(session.name))


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """Copilot CLI has no setting for its compaction (1.0.102)."""
    return ClientSettings()
