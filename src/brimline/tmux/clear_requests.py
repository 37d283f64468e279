"""What is to be cleared, each in a file: on the disk before anything is done about it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.atomic_file import replace_file
from brimline.observations import Pane
from brimline.regular_file import read_regular_file

Step: TypeAlias = Literal["waiting", "clearing", "prompting", "done", "failed"]
"""`waiting` for the turn's end; `clearing`: `/clear` is typed, or is about to be; `prompting`: it
is cleared, and the prompt is typed, or is about to be."""

ENDED: tuple[Step, ...] = ("done", "failed")

KEPT = 7 * 86_400.0
"""So many seconds the outcome can be looked up."""


class Intent(msgspec.Struct, frozen=True):
    """That a session shall go on fresh, from a document; `after` is the session that it became.

    `at` is when it was asked for, `since` when its step began, `why` says what went wrong. `rows`
    tell what stood in the pane before it was cleared, by their hashes.
    """

    session: str
    agent: str
    pane: Pane
    path: str
    at: float
    step: Step = "waiting"
    since: float = 0.0
    after: str | None = None
    why: str | None = None
    rows: tuple[str, ...] = ()

    @property
    def prompt(self) -> str:
        """What the fresh session is told."""
        return prompt_for(self.path)


def prompt_for(path: str) -> str:
    """What a session that goes on from a document is told first."""
    return f"Read {path} and continue from where you left off."


def keep(state: Path, intent: Intent) -> None:
    """Have an intent on the disk, in the place of the session's last one."""
    replace_file(_place(state, intent.session), msgspec.json.encode(intent), sync=True)


def kept(state: Path, session: str | None = None) -> list[Intent]:
    """The intents of a session, or of all, the first one first; a file that is none is none."""
    found = _every(state) if session is None else _read(_place(state, session))
    return sorted(found, key=lambda intent: intent.at)


def tidy(state: Path, now: float) -> None:
    """Forget what ended long ago, and what a killed process left half-written."""
    for left in state.glob(".clear-*"):
        left.unlink(missing_ok=True)
    for intent in _every(state):
        if intent.step in ENDED and now - intent.since > KEPT:
            _place(state, intent.session).unlink(missing_ok=True)


def _place(state: Path, session: str) -> Path:
    """A session's file; an id that could name another place is replaced."""
    plain = session.replace("-", "").replace("_", "").isalnum() and len(session) <= 100
    name = session if plain else hashlib.sha256(session.encode()).hexdigest()
    return state / f"clear-{name}.json"


def _every(state: Path) -> Iterator[Intent]:
    for path in state.glob("clear-*.json"):
        yield from _read(path)


def _read(path: Path) -> Iterator[Intent]:
    try:
        yield msgspec.json.decode(read_regular_file(path), type=Intent)
    except (OSError, msgspec.DecodeError):
        return
