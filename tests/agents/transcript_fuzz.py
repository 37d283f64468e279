"""Damage recorded files of every agent, and read them with every command.

`python tests/agents/transcript_fuzz.py --seed 1 --files 2000` prints what failed. The seed and a
file's number determine its damage: `--first NUMBER --files 1` repeats one.
"""

import argparse
import contextlib
import io
import os
import random
import re
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from brimline.cli import main

FIXTURES = Path(__file__).parent.parent / "fixtures"
HEALTHY = "tool-loop"  # the recording of each agent that every home has undamaged
MAX_CPU_S, MAX_RSS_MB = 2.0, 300.0
BATCH_FILES = 25  # damaged files in one home
EACH = (("inspect", "--json", "--series"), ("explain", "--json"), ("handoff", "--draft"))
ALL = (("status", "--all"), ("report", "--json"), ("report", "--misses"))

_HEALTHY_ID = re.compile("-0000-4000-|^ses_0000")

BYTES = (
    b"\xe9", b"\xed\xa0\x80", b"\xff\xfe", b"\0", b"\0" * 64, b"\r\n", b"\n", b"\xef\xbb\xbf", b"{",
    b"}", b'"', b"\\", b"\\ud800", b"\\u0000", b"\x1b[31m", b"\xe2\x80\xae", b",", b"[]", b"NaN",
)  # fmt: skip
VALUES = (
    b"null", b"true", b"-1", b"0", b"1e308", b"1e999", b"9223372036854775808", b"1" * 400, b"0.5",
    b'""', b'"x"', b"[]", b"{}", b"[null]", b'{"a":1}', b'"9999-99-99T99:99:99Z"',
    b'"0001-01-01T00:00:00Z"', b'"9999-12-31T23:59:59+14:00"', b'"../../etc/passwd"', b'"\\u0000"',
    b"[" * 3_000 + b"]" * 3_000, b'{"a":' * 500 + b"1" + b"}" * 500, b'"' + b"x" * 100_000 + b'"',
)  # fmt: skip


# With what is read of a session, in the databases of opencode, Kilo CLI and Goose.
TABLES = (b"message", b"part", b"session", b"messages", b"sessions", b"usage_ledger")


class FuzzResult(msgspec.Struct, frozen=True):
    """How many files were read, what failed, and the most that reading one of them took."""

    files: int
    failures: tuple[str, ...]
    slowest_s: float
    peak_mb: float


class Recording(msgspec.Struct, frozen=True):
    """A recorded file of an agent; `place` is its path below the home, empty for a stream."""

    agent: str
    name: str
    place: str
    data: bytes


@cache
def load_recordings() -> tuple[Recording, ...]:
    found: list[Recording] = []
    for path in sorted(FIXTURES.glob("*/*/home/**/*")):
        if path.is_file():
            agent, name, _, *below = path.relative_to(FIXTURES).parts
            data = path.read_bytes()
            if path.suffix == ".sql":
                below[-1], data = f"{path.stem}.db", _create_database(data.decode())
            found.append(Recording(agent, name, "/".join(below), data))
    for path in sorted(FIXTURES.glob("*/*/stream-*.jsonl")):
        agent, name, _ = path.relative_to(FIXTURES).parts
        found.append(Recording(agent, name, "", path.read_bytes()))
    return tuple(found)


def _create_database(script: str) -> bytes:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(script)
        return database.serialize()


def insert_bytes(line: bytes, chance: random.Random) -> list[bytes]:
    at = chance.randint(0, len(line))
    return [line[:at] + chance.choice(BYTES) + line[at:]]


def change_bytes(line: bytes, chance: random.Random) -> list[bytes]:
    changed = bytearray(line)
    for _ in range(min(len(changed), chance.randint(1, 8))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return [bytes(changed)]


def cut_line(line: bytes, chance: random.Random) -> list[bytes]:
    return [line[: chance.randint(0, len(line))]]


def replace_value(line: bytes, chance: random.Random) -> list[bytes]:
    """Replace what stands after one of the colons, up to the next comma or bracket."""
    colons = [at for at, byte in enumerate(line) if byte == ord(":")]
    if not colons:
        return [chance.choice(VALUES)]
    at = chance.choice(colons) + 1
    ends = (line.find(end, at) for end in (b",", b"}", b"]"))
    return [line[:at] + chance.choice(VALUES) + line[min(filter(at.__le__, ends), default=at) :]]


def repeat_line(line: bytes, chance: random.Random) -> list[bytes]:
    return [line] * chance.choice((2, 3, 200))


def glue_lines(line: bytes, chance: random.Random) -> list[bytes]:
    return [line * chance.randint(2, 4)]


def drop_line(line: bytes, chance: random.Random) -> list[bytes]:
    return []


def nest_line(line: bytes, chance: random.Random) -> list[bytes]:
    return [b'{"type":' + b"[" * 3_000 + line + b"]" * 3_000 + b"}"]


Damage = Callable[[bytes, random.Random], list[bytes]]
DAMAGES: tuple[Damage, ...] = (
    *(insert_bytes, replace_value) * 3, change_bytes, cut_line, repeat_line, glue_lines, drop_line,
    nest_line,
)  # fmt: skip


def damage_file(data: bytes, chance: random.Random) -> bytes:
    """Damage the first line, the last one or any other, in one to three ways."""
    for _ in range(chance.randint(1, 3)):
        lines = data.split(b"\n")
        number = chance.choice((0, len(lines) - 1, *[chance.randrange(len(lines))] * 2))
        lines[number : number + 1] = chance.choice(DAMAGES)(lines[number], chance)
        data = b"\n".join(lines)
    return data


def _to_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def damage_database(path: Path, chance: random.Random) -> None:
    """Damage one to three values of a database, or its bytes."""
    if chance.random() < 0.3:
        path.write_bytes(b"".join(change_bytes(path.read_bytes(), chance)))
        return
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.text_factory = bytes
        master = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        names = [name.decode() for (name,) in master if name in TABLES]
        for _ in range(chance.randint(1, 3)):
            table = chance.choice(names)
            columns = [  # SQLite lets no other value be the number of a row
                name.decode()
                for _, name, kind, _, _, key in database.execute(f"PRAGMA table_info({table})")
                if not (key and kind == b"INTEGER")
            ]
            column = chance.choice([*columns, *["data"] * 20] if "data" in columns else columns)
            rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            if not rows:
                continue
            row, value = chance.choice(rows)
            changed = b"\n".join(chance.choice(DAMAGES)(_to_bytes(value), chance))
            # A text in SQLite may hold any bytes.
            statement = f"UPDATE OR IGNORE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?"
            database.execute(statement, (changed, row))


def write_recording(recording: Recording, home: Path, number: int) -> Path:
    """Write a recording with ids of its own, which are equal in all recordings."""
    place, data = recording.place or f"stream-{number}.jsonl", recording.data
    for old, new in (("-0000-4000-", f"-{number:04}-4000-"), ("ses_0000", f"ses_{number:04}")):
        place, data = place.replace(old, new), data.replace(old.encode(), new.encode())
    place = place.replace("/tmp/project/", f"/tmp/project-{number}/")  # names have a part of the id
    path = home / place
    if path.suffix == ".db":
        path = path.with_name(f"{path.stem}-{number}.db")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def write_damaged(home: Path, seed: int, number: int) -> tuple[Recording, Path]:
    chance = random.Random(f"{seed}-{number}")
    recording = chance.choice(load_recordings())
    path = write_recording(recording, home, 1 + number % BATCH_FILES)
    if path.suffix == ".db":
        damage_database(path, chance)
    else:
        path.write_bytes(damage_file(path.read_bytes(), chance))
    if chance.random() < 0.02:
        odd_name = os.fsencode(path.parent) + b"/rollout-\xe9\n" + os.fsencode(path.name)
        path = path.rename(os.fsdecode(odd_name))
    return recording, path


def run_command(*arguments: str) -> tuple[int, str, str]:
    """Run a command in this process; return its code, output and errors."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = main(arguments)
    return code, output.getvalue(), errors.getvalue()


class Fuzzer:
    """Reads damaged files in homes that also have undamaged ones, whose figures must not change."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed
        self.files, self.slowest_s = 0, 0.0
        self.failures: list[str] = []

    def read_batch(self, numbers: Sequence[int]) -> None:
        home = Path(tempfile.mkdtemp(dir=self._folder))
        os.environ["HOME"] = str(home)
        for recording in load_recordings():
            if recording.name == HEALTHY and recording.place:
                write_recording(recording, home, 0)
        before = self._healthy_rows()
        for number in numbers:
            recording, path = write_damaged(home, self._seed, number)
            name = f"--seed {self._seed} --first {number} ({recording.agent} {recording.name})"
            for command in EACH:
                self._measure(
                    name, *command, str(path), names=path.name if path.name.isascii() else ""
                )
            self.files += 1
        name = f"--seed {self._seed} --first {numbers[0]} --files {len(numbers)}"
        for command in ALL:
            self._measure(name, *command, files=len(numbers))
        if not before or self._healthy_rows() != before:
            self.failures.append(f"{name}: undamaged sessions changed")
        shutil.rmtree(home)

    def _healthy_rows(self) -> list[dict[str, Any]]:
        try:
            rows = msgspec.json.decode(run_command("status", "--all", "--json")[1])
        except Exception as error:  # noqa: BLE001 - any is a failure
            self.failures.append(f"status --json: {error!r}")
            return []
        healthy = (row for row in rows if _HEALTHY_ID.search(row["session_id"]))
        # A damaged copy has the calls of its recording, as a fork has: one of the two has the cost.
        shared = dict.fromkeys(("age_seconds", "cost", "is_fork"))
        return [row | shared for row in healthy]

    def _measure(self, name: str, *command: str, files: int = 1, names: str = "") -> None:
        """Run a command; if it fails, its error has to name the file by `names`."""
        started = time.process_time()
        try:
            code, _, errors = run_command(*command)
            if code and names not in errors:
                self.failures.append(f"{name}: {command[0]} does not name the file: {errors}")
        except Exception:  # noqa: BLE001 - any is a failure
            last_lines = "\n".join(traceback.format_exc().splitlines()[-7:])
            self.failures.append(f"{name}: {command[0]}:\n{last_lines}")
        seconds = (time.process_time() - started) / files
        self.slowest_s = max(self.slowest_s, seconds)
        if seconds > MAX_CPU_S:
            self.failures.append(f"{name}: {command[0]} took {seconds:.1f} s of CPU time")
        if peak_mb() > MAX_RSS_MB and not any("MB" in failure for failure in self.failures):
            self.failures.append(f"{name}: {command[0]} took {peak_mb():.0f} MB")


def peak_mb() -> float:
    """Return the most memory that this process had.

    Linux counts in `ru_maxrss` also what the parent had when it started this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = re.findall(r"VmHWM:\s*(\d+) kB", status.read_text())
        return int(peak) / 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def fuzz(
    folder: Path, seed: int, files: int | None = None, seconds: float | None = None, first: int = 0
) -> FuzzResult:
    """Read this many damaged files, or for this long; `folder` is for homes, and stays empty.

    Call it in a process of its own: it changes HOME, and measures the memory of the process.
    """
    fuzzer = Fuzzer(folder, seed)
    end = None if seconds is None else time.monotonic() + seconds
    for batch in _batches(first, files):
        if end is not None and time.monotonic() > end:
            break
        fuzzer.read_batch(batch)
    return FuzzResult(fuzzer.files, tuple(fuzzer.failures), fuzzer.slowest_s, peak_mb())


def _batches(first: int, files: int | None) -> Iterator[Sequence[int]]:
    for start in count(first, BATCH_FILES):
        end = start + BATCH_FILES if files is None else min(start + BATCH_FILES, first + files)
        if start >= end:
            return
        yield range(start, end)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--files", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        result = fuzz(Path(scratch), options.seed, options.files, options.seconds, options.first)
    if options.json:
        print(msgspec.json.encode(result).decode())
    else:
        print(*result.failures, sep="\n\n")
        print(
            f"{result.files:,} files, {len(result.failures)} failures, slowest "
            f"{result.slowest_s:.2f} s of CPU time, {result.peak_mb:.0f} MB"
        )
    sys.exit(1 if result.failures else 0)
