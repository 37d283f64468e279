"""Make a Claude Code tree of 1 GB for the benchmarks; the same arguments give the same bytes."""

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from prose import Prose
from records import Ids, Lines, uuid
from session import Truth, session

FORMAT = 3
"""Counted up when other bytes are made from the same arguments."""

_STAMP = "stamp.json"
_KEEP_SECONDS = 12 * 3600  # so that in a kept tree "the last 24 hours" is still true
_SPAN_S = 10 * 3600  # in which all sessions of a tree end
_PROJECTS = 24
_FORK_EVERY = 100
_FORK_BYTES = 150_000


class Plan(msgspec.Struct, frozen=True):
    """What the bytes of a tree depend on; `now` is the present of the tree."""

    size: int = 1_000_000_000
    files: int = 600
    seed: int = 7
    now: int = 0
    format: int = FORMAT


class Tree(msgspec.Struct, frozen=True):
    """A tree, and the totals that a reader must find in it."""

    plan: Plan
    calls: int
    compactions: int


class File(msgspec.Struct, frozen=True):
    """One transcript to write; a fork begins with the first lines of the file before it."""

    path: str
    size: int
    end: float
    ids: Ids
    fork: bool


def make(folder: Path, plan: Plan) -> Tree:
    """Make the tree in `folder`, unless a fit one is there."""
    now = plan.now or int(time.time()) // 3600 * 3600
    plan = msgspec.structs.replace(plan, now=now)
    if (kept := _kept(folder)) and _fits(kept.plan, plan):
        return kept
    shutil.rmtree(folder, ignore_errors=True)
    prose, rng, truth = Prose(plan.seed), random.Random(plan.seed), Truth()
    opening = b""
    for file in _layout(plan, rng):
        lines = session(file.end, file.size, rng, Lines(rng, prose, file.ids), truth)
        opening = _write(folder / file.path, file, opening if file.fork else b"", lines)
    tree = Tree(plan, truth.calls, truth.compactions)
    (folder / _STAMP).write_bytes(msgspec.json.encode(tree))
    return tree


def transcripts(folder: Path) -> list[Path]:
    """Every transcript of the tree, sorted."""
    return sorted((folder / "projects").rglob("*.jsonl"))


def _kept(folder: Path) -> Tree | None:
    try:
        return msgspec.json.decode((folder / _STAMP).read_bytes(), type=Tree)
    except (OSError, msgspec.DecodeError):
        return None


def _fits(kept: Plan, plan: Plan) -> bool:
    same = msgspec.structs.replace(kept, now=plan.now) == plan
    return same and 0 <= plan.now - kept.now <= _KEEP_SECONDS


def _layout(plan: Plan, rng: random.Random) -> Iterator[File]:
    weights = [rng.lognormvariate(0, 1.2) for _ in range(plan.files)]
    scale = plan.size / sum(weights)
    owner = ""
    for n, weight in enumerate(weights):
        agent = f"a{rng.getrandbits(24):06x}" if n % 5 == 4 else None
        owner = owner if agent else uuid(rng)
        project = f"project-{n // 5 % _PROJECTS:02}"
        ids = Ids(owner, agent, project, new=n // 5 % 3 > 0)
        fork = n % _FORK_EVERY == _FORK_EVERY - 2
        yield File(_path(ids), int(weight * scale), plan.now - rng.random() * _SPAN_S, ids, fork)


def _path(ids: Ids) -> str:
    base = f"projects/-home-dev-{ids.project}/{ids.session}"
    return f"{base}/subagents/agent-{ids.agent}.jsonl" if ids.agent else f"{base}.jsonl"


def _write(path: Path, file: File, opening: bytes, lines: Iterator[str]) -> bytes:
    """Write a file up to its size; return its first lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first = bytearray(opening)
    with path.open("wb", buffering=1 << 20) as out:
        size = out.write(opening)
        for line in lines:
            data = line.encode()
            size += out.write(data)
            if len(first) < _FORK_BYTES:
                first += data
            if size >= file.size:
                break
    os.utime(path, (file.end, file.end))
    return bytes(first)
