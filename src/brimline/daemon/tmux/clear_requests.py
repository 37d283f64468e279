"""Requests to clear a session, each saved as a file before anything is typed."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents.observations import Pane
from brimline.files.atomic_file import replace_file
from brimline.files.regular_file import read_regular_file
from brimline.handoff.user_messages import continuation_prompt

# waiting: for the end of the turn. clearing: `/clear` is typed, or about to be.
# prompting: the session is cleared, and the prompt is typed, or about to be.
ClearStep: TypeAlias = Literal["waiting", "clearing", "prompting", "done", "failed"]

ENDED: tuple[ClearStep, ...] = ("done", "failed")
KEEP_OUTCOME_S = 7 * 86_400.0


class ClearRequest(msgspec.Struct, frozen=True):
    """A session that is to be cleared and continued from the document at `path`."""

    session: str
    agent: str
    pane: Pane
    path: str
    at: float  # when the clear was requested
    step: ClearStep = "waiting"
    since: float = 0.0  # when the step began
    after: str | None = None  # the session that it continued as
    why: str | None = None  # why it failed
    rows: tuple[str, ...] = ()  # hashes of the pane's rows before the clear

    @property
    def prompt(self) -> str:
        return continuation_prompt(self.path)


def save_request(state: Path, request: ClearRequest) -> None:
    """Write a request to the disk; it replaces the session's last one."""
    path = _request_path(state, request.session)
    replace_file(path, msgspec.json.encode(request), sync=True)


def load_requests(state: Path, session: str | None = None) -> list[ClearRequest]:
    """Return the requests of one session or of all, oldest first; invalid files are skipped."""
    paths = state.glob("clear-*.json") if session is None else [_request_path(state, session)]
    requests = [request for path in paths for request in _read_request(path)]
    return sorted(requests, key=lambda request: request.at)


def remove_old_requests(state: Path, now: float) -> None:
    """Remove requests that ended long ago, and partly written files of a killed process."""
    for partial in state.glob(".clear-*"):
        partial.unlink(missing_ok=True)
    for request in load_requests(state):
        if request.step in ENDED and now - request.since > KEEP_OUTCOME_S:
            _request_path(state, request.session).unlink(missing_ok=True)


def _request_path(state: Path, session: str) -> Path:
    """Return a session's file; an id that could leave the folder is hashed."""
    safe = session.replace("-", "").replace("_", "").isalnum() and len(session) <= 100
    name = session if safe else hashlib.sha256(session.encode()).hexdigest()
    return state / f"clear-{name}.json"


def _read_request(path: Path) -> Iterator[ClearRequest]:
    try:
        yield msgspec.json.decode(read_regular_file(path), type=ClearRequest)
    except (OSError, msgspec.DecodeError):
        return
