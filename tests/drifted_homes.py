"""Homes with a recorded session of each agent, in a format that Brimline does not know."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

FIXTURES = Path(__file__).parent / "fixtures"

Change: TypeAlias = Literal["usage renamed", "count renamed", "kinds unknown"]
CHANGES: tuple[Change, ...] = ("usage renamed", "count renamed", "kinds unknown")
UNKNOWN_RECORDS = 40


class Recorded(NamedTuple):
    """How an agent's usage and one of its counts are named, and a record of an unknown kind."""

    usage: tuple[str, ...]
    token_count: str
    unknown: str


RECORDED = {
    # Codex writes each usage twice.
    "claude": Recorded(("usage",), "output_tokens", '{"type":"new-kind"}'),
    "codex": Recorded(
        ("info", "usage", "thread_token_usage"), "output_tokens", '{"type":"new-kind"}'
    ),
    "copilot": Recorded(("usage",), "outputTokens", '{"type":"new-kind"}'),
    "gemini": Recorded(("tokens",), "output", '{"id":"new","type":"new-kind"}'),
    "opencode": Recorded(("tokens",), "output", '{"role":"new-kind"}'),
    "pi": Recorded(("usage",), "output", '{"type":"new-kind","id":"new"}'),
}


def rename(text: str, names: tuple[str, ...]) -> str:
    for name in names:
        assert f'"{name}":' in text, name
        text = text.replace(f'"{name}":', f'"new_{name}":')
    return text


def write_home(agent: str, home: Path, change: Change | None) -> Path:
    """Write a recorded session into a home; return the path of its transcript."""
    recorded = FIXTURES / agent / "tool-loop" / "home"
    (path,) = (each for each in recorded.rglob("*") if each.is_file())
    names = RECORDED[agent]
    text = _with_own_ids(agent, path.read_text("utf-8"))
    place = home / _with_own_ids(agent, str(path.relative_to(recorded)))
    if change == "usage renamed":
        text = rename(text, names.usage)
    elif change == "count renamed":
        text = rename(text, (names.token_count,))
    place.parent.mkdir(parents=True, exist_ok=True)
    add_unknown = names.unknown if change == "kinds unknown" else None
    return _WRITERS.get(place.suffix, _write_lines)(place, text, add_unknown)


def _with_own_ids(agent: str, text: str) -> str:
    """The recordings of several agents have the same ids."""
    return text.replace("-0000-4000-8000-", f"-{1 + [*RECORDED].index(agent):04}-4000-8000-")


def _write_lines(place: Path, text: str, unknown: str | None) -> Path:
    added = f"{unknown}\n" * UNKNOWN_RECORDS if unknown else ""
    place.write_text(text + added, "utf-8")
    return place


def _write_database(place: Path, text: str, unknown: str | None) -> Path:
    place = place.with_suffix(".db")
    now_ms = int(time.time() * 1_000)
    with closing(sqlite3.connect(place)) as database, database:
        database.executescript(text)
        ((session,),) = database.execute("SELECT id FROM session")
        database.execute("UPDATE session SET time_updated = ?", (now_ms,))
        rows = [
            (f"new_{number}", session, now_ms, now_ms, unknown)
            for number in range(UNKNOWN_RECORDS if unknown else 0)
        ]
        database.executemany(
            "INSERT INTO message (id, session_id, time_created, time_updated, data) "
            "VALUES (?, ?, ?, ?, ?)",
            rows,
        )
    return place


_WRITERS: dict[str, Callable[[Path, str, str | None], Path]] = {".sql": _write_database}
