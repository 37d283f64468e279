"""The recorded scenes: a home with an agent's files, what it printed, what it was billed."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from brimline.run.run_state import RunTarget
from brimline.testing.fake_model import Billed, read_records
from brimline.transcripts.source import Places
from brimline.usage import ZERO, Usage

from .lines import FIXTURES

PROJECT = "/home/dev/project"  # the working folder of every recorded client


class Note(msgspec.Struct, frozen=True):
    """One run of a scene: how many records it was billed."""

    client: str
    records: int


def home_of(agent: str, scene: str, scratch: Path) -> Path:
    """The home of a scene; a database is made of its dump."""
    home = scratch / "home"
    shutil.copytree(FIXTURES / agent / scene / "home", home)
    for dump in home.rglob("*.sql"):
        with closing(sqlite3.connect(dump.with_suffix(".db"))) as database:
            database.executescript(dump.read_text("utf-8"))
    for chats in home.glob(".gemini/tmp/*"):
        (chats / ".project_root").write_text(PROJECT)
    return home


def job_of(agent: str, home: Path, *command: str, folder: str = PROJECT) -> RunTarget:
    """A job of an agent in a home."""
    return RunTarget(
        command=command or (agent,), places=Places(home, {}), folder=folder, agent=agent
    )


def billed(agent: str, scene: str, number: int = 1) -> list[Billed]:
    """What a run of a scene was billed; the call that makes a title is in nobody's books."""
    folder = FIXTURES / agent / scene
    notes = msgspec.json.decode((folder / "runs.json").read_bytes(), type=list[Note])
    first = sum(note.records for note in notes[: number - 1])
    records = read_records(folder / "billed.jsonl")[first : first + notes[number - 1].records]
    return [one for one in records if isinstance(one, Billed) and one.thread != "title"]


def usage_of(one: Billed) -> Usage:
    """A billed call in our own type."""
    told = one.usage
    return Usage(told.input, told.cache_read, told.cache_write, told.output)


def total(calls: list[Billed]) -> Usage:
    """What calls add up to."""
    return sum(map(usage_of, calls), ZERO)
