"""Recorded files keep their shape and contain nothing of the recording machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from .anonymizer import MAX_STRING_CHARS, Anonymizer
from .fixture import FIXTURES
from .scenes import SCENES

ONE, TWO = "6adc6b93-5468-4e87-bf38-216c67fc4acc", "01a1dd35-8a80-72e1-abdd-0084d298249d"


def anonymize(*texts: str, paths: dict[str, str] | None = None) -> list[str]:
    """Anonymize texts as the files of one scene."""
    anonymizer = Anonymizer(
        paths if paths is not None else {"/scratch/x_1/project": "/home/dev/project"}
    )
    for text in texts:
        anonymizer.learn("", text)
    return [anonymizer.text(text) for text in texts]


def test_equal_ids_stay_equal() -> None:
    """One id is one id in every file, and two are two."""
    first, second = anonymize(f'"{ONE}" "{TWO}"', f'"{TWO}" session-{ONE[:8]}.jsonl')
    one, two = first.split()
    assert one != two
    assert second == f"{two} session-{one[1:9]}.jsonl"


def test_opencode_ids_keep_their_order() -> None:
    """opencode sorts by id, so the order of ids must stay the same."""
    low, high = "msg_1dd3a0b89001KvUiumJ9ZmUEC7", "msg_1dd3a134b001My7WWkGes9umqD"
    (text,) = anonymize(f"{high} {low}")
    assert text.split()[0] > text.split()[1]


def test_times_keep_their_order() -> None:
    """Moments become steps of 100 ms from a fixed start, whatever their notation."""
    (text,) = anonymize('"2026-11-15T03:17:16.070Z" 1794712636066 "2026-11-15T03:17:16.070Z"')
    assert text == '"2026-01-02T03:04:05.100Z" 1767323045000 "2026-01-02T03:04:05.100Z"'


def test_times_in_names_become_the_start() -> None:
    """File names keep their form, with an id behind the time or without."""
    names = f"session-2026-11-15T03-25-{ONE[:8]} rollout-2026-11-15T03-18-04-{TWO} 2026/11/15"
    _, text = anonymize(f"{ONE} {TWO}", names)
    assert text.split() == [
        "session-2026-01-02T03-04-00000001",
        "rollout-2026-01-02T03-04-05-00000002-0000-4000-8000-000000000002",
        "2026/01/02",
    ]


def test_paths_are_replaced_in_every_spelling() -> None:
    """Also in folder names that clients derive from paths."""
    spelt = "/scratch/x_1/project 'scratch/x_1/project' -scratch-x-1-project -scratch-x_1-project"
    plain = "/home/dev/project 'home/dev/project' -home-dev-project -home-dev-project"
    assert anonymize(spelt) == [plain]


def test_long_strings_are_cut_between_escapes() -> None:
    """Long prompts of a client are not committed, and the line stays valid JSON."""
    (text,) = anonymize(msgspec.json.encode({"a": '\n"é' * 200, "b": 1}).decode())
    value = msgspec.json.decode(text, type=dict[str, object])
    assert len(str(value["a"])) == MAX_STRING_CHARS + 1
    assert value["b"] == 1


def _fixtures() -> Iterator[Path]:
    return (path for path in sorted(FIXTURES.rglob("*")) if path.is_file())


def test_every_scene_has_its_fixture() -> None:
    """`make fixtures` was run after the last scene was added."""
    wanted = {FIXTURES / client / scene for client, scenes in SCENES.items() for scene in scenes}
    assert wanted <= {path.parent for path in FIXTURES.rglob("billed.jsonl")}


@pytest.mark.parametrize("path", list(_fixtures()), ids=lambda path: path.name)
def test_fixture_is_readable_and_anonymous(path: Path) -> None:
    """Every line is JSON, every dump is a database, and no real home folder is named."""
    text = path.read_text(encoding="utf-8")
    assert not list(_marks(text))
    if path.suffix == ".sql":
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(text)
            table = "messages" if path.stem == "sessions" else "message"  # that of Goose
            assert database.execute(f"select count(*) from {table}").fetchone()[0] > 0
    elif path.suffix in (".json", ".jsonl"):
        for document in [text] if path.suffix == ".json" else text.splitlines():
            msgspec.json.decode(document)


def _marks(text: str) -> Iterator[str]:
    """The signs of a machine that a text shows."""
    return (mark for mark in ("tmp/brimline", "/root/", "/Users/") if mark in text)
