"""The committed fixtures as recordings, so that tests of a run need no client."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from itertools import accumulate
from pathlib import Path

import msgspec

from brimline.testing.fake_model import Billed, Refused, read_records

from .opencode import EXPORT
from .run import ClientRun
from .scenes import Recording

FIXTURES = Path(__file__).parents[1] / "fixtures"


class RunNote(msgspec.Struct, frozen=True):
    """One run of a fixture: its client, its exit code, and how many records it was billed."""

    client: str
    exit_code: int
    records: int


def encode_notes(recording: Recording) -> str:
    """Encode the notes of a recording as JSON."""
    notes = [
        RunNote(run.client, run.exit_code, len(run.billed) + len(run.refused))
        for run in recording.runs
    ]
    return msgspec.json.encode(notes).decode()


def load_fixture(client: str, scene: str, scratch: Path) -> Recording:
    """A committed fixture as a recording; databases are restored in the scratch folder."""
    folder = FIXTURES / client / scene
    notes = msgspec.json.decode((folder / "runs.json").read_bytes(), type=list[RunNote])
    home = scratch / "home"
    shutil.copytree(folder / "home", home)
    for dump in home.rglob("*.sql"):
        _restore(dump)
    starts = accumulate((note.records for note in notes), initial=0)
    numbered = enumerate(zip(notes, starts, strict=False), start=1)
    runs = (_run(folder, home, number, note, start) for number, (note, start) in numbered)
    return Recording(client, scene, tuple(runs))


def _run(folder: Path, home: Path, number: int, note: RunNote, before: int) -> ClientRun:
    records = read_records(folder / "billed.jsonl")[before : before + note.records]
    name = "export.json" if note.client == EXPORT else f"stream-{number}.jsonl"
    return ClientRun(
        client=note.client,
        exit_code=note.exit_code,
        stream=folder / name,
        stderr="",
        home=home,
        project=Path("/home/dev/project"),
        billed=tuple(record for record in records if isinstance(record, Billed)),
        refused=tuple(record for record in records if isinstance(record, Refused)),
        transcripts=tuple(sorted(path for path in home.rglob("*") if path.is_file())),
        requests=folder / "requests.jsonl",
    )


def _restore(dump: Path) -> None:
    """Restore a database from its dump."""
    with closing(sqlite3.connect(dump.with_suffix(".db"))) as database:
        database.executescript(dump.read_text(encoding="utf-8"))
        database.commit()
    dump.unlink()
