"""Records the committed fixtures from runs of the real clients: `make fixtures`.

Each scene becomes tests/fixtures/<client>/<scene>/ with the client's own files under `home`, its
streams, `billed.jsonl`, what the fake model billed, and `runs.json`, which run was billed how much
of it. Paths, ids and times are anonymized.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from clients.anonymizer import Anonymizer  # noqa: E402
from clients.fixture import FIXTURES, encode_notes  # noqa: E402
from clients.install import cache_folder, node  # noqa: E402
from clients.opencode import EXPORT  # noqa: E402
from clients.run import Place  # noqa: E402
from clients.scenes import SCENES, Recording, record_scene  # noqa: E402

TABLES = ("session", "message", "part", "sessions", "messages", "usage_ledger")


def main() -> int:
    """Record the scenes asked for, all without arguments."""
    asked = argparse.ArgumentParser(description="Record the fixtures again.")
    asked.add_argument("scenes", nargs="*", help="client or client/scene; all without any")
    only: list[str] = asked.parse_args().scenes
    for client, scene in _chosen(only):
        print(f"{client}/{scene}", flush=True)
        record(client, scene, FIXTURES / client / scene)
    return 0


def _chosen(only: Iterable[str]) -> Iterator[tuple[str, str]]:
    wanted = set(only)
    for client, scenes in SCENES.items():
        for scene in scenes:
            if not wanted or wanted & {client, f"{client}/{scene}"}:
                yield client, scene


def record(client: str, scene: str, target: Path) -> None:
    """Play one scene and put its anonymized files in place of the old ones."""
    with tempfile.TemporaryDirectory(prefix="brimline-") as scratch:
        folder = Path(scratch).resolve()
        made = record_scene(client, scene, folder)
        anonymizer = Anonymizer(_paths(Place(folder)))
        shutil.rmtree(target, ignore_errors=True)
        for path, text in sorted(_files(made, folder)):
            anonymizer.learn(path, text)
        for path, text in sorted(_files(made, folder)):
            _write(target / anonymizer.path(path), anonymizer.text(text))


def _paths(place: Place) -> dict[str, str]:
    """What the paths of this machine become."""
    return {
        str(place.project): "/home/dev/project",
        str(place.home): "/home/dev",
        str(place.root): "/home",
        str(cache_folder()): "/opt/clients",
        str(node().binary.parent): "/opt/node/bin",
    }


def _files(made: Recording, folder: Path) -> Iterator[tuple[str, str]]:
    """Every file of a scene worth keeping, by its name in the fixture."""
    yield "billed.jsonl", (folder / "billed.jsonl").read_text(encoding="utf-8")
    yield "runs.json", encode_notes(made)
    for run in made.runs:
        yield "export.json" if run.client == EXPORT else run.stream.name, run.stdout
    for path in made.last.transcripts:
        name = "home" / path.relative_to(made.last.home)
        if path.suffix == ".db":
            yield str(name.with_suffix(".sql")), "\n".join(_dump(path))
        else:
            yield str(name), path.read_text(encoding="utf-8")


def _dump(path: Path) -> Iterator[str]:
    """The tables that hold the calls, as SQL."""
    real, copy = sqlite3.connect(f"file:{path}?mode=ro", uri=True), sqlite3.connect(":memory:")
    with closing(real), closing(copy):
        real.backup(copy)
        names = {name for (name,) in copy.execute("select name from sqlite_master")}
        if "usage_ledger" in names:
            copy.execute("update sessions set extension_data = '{}'")  # Goose's: all its tools
        else:
            copy.execute("update session set slug = 'a-slug'")
        for line in copy.iterdump():
            marks = (f"{quote}{table}{quote}" for table in TABLES for quote in '"` ')
            if any(mark in line[:40] for mark in marks):
                yield line


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
