"""The recorded scenes: a home with an agent's files, its output, and its bill."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.context.usage import ZERO, Usage
from brimline.run.run_state import RunTarget
from brimline.testing.fake_model import Billed, read_records

from .lines import FIXTURES

PROJECT = "/home/dev/project"  # the working folder of every recorded client


class Note(msgspec.Struct, frozen=True):
    """One run of a scene: the number of billed records."""

    client: str
    records: int


def home_of(agent: str, scene: str, scratch: Path) -> Path:
    """The home of a scene; databases are created from their dumps."""
    home = scratch / "home"
    shutil.copytree(FIXTURES / agent / scene / "home", home)
    for dump in home.rglob("*.sql"):
        with closing(sqlite3.connect(dump.with_suffix(".db"))) as database:
            database.executescript(dump.read_text("utf-8"))
    for chats in home.glob(".gemini/tmp/*"):
        (chats / ".project_root").write_text(PROJECT)
    return home


def job_of(agent: str, home: Path, *command: str, folder: str = PROJECT) -> RunTarget:
    return RunTarget(
        command=command or (agent,), places=Places(home, {}), folder=folder, agent=agent
    )


def billed(agent: str, scene: str, number: int = 1) -> list[Billed]:
    """The billed calls of a run; the call that makes a title is in no transcript."""
    folder = FIXTURES / agent / scene
    notes = msgspec.json.decode((folder / "runs.json").read_bytes(), type=list[Note])
    first = sum(note.records for note in notes[: number - 1])
    records = read_records(folder / "billed.jsonl")[first : first + notes[number - 1].records]
    return [record for record in records if isinstance(record, Billed) and record.thread != "title"]


def usage_of(billed_call: Billed) -> Usage:
    reported = billed_call.usage
    return Usage(reported.input, reported.cache_read, reported.cache_write, reported.output)


def total(calls: list[Billed]) -> Usage:
    """The sum of calls."""
    return sum(map(usage_of, calls), ZERO)
