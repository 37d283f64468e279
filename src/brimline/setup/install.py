"""One agent's file, and what is to become of it: our entries in it, or out of it again."""

from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.errors import InvalidSettings
from brimline.jsonc import BYTE_ORDER_MARK, WHITESPACE, Document, parse
from brimline.setup.command import HttpTarget, Program, is_start, posted_to
from brimline.setup.file import backup_of, told
from brimline.setup.manifest import Kept, Mode, StatusLine, digest, load
from brimline.setup.merge import (
    Own,
    Wanted,
    has_status_line,
    is_set_up,
    own_status_line,
    standing,
    with_hooks,
    with_status_line,
    without_hooks,
    without_status_line,
)
from brimline.setup.recipe import START, Recipe, Scope
from brimline.transcripts.source import Places

Transport: TypeAlias = Literal["command", "http"]
"""How hooks reach the daemon: by a command, or posted to its address by the client."""

NO_TARGET = "HTTP hooks need a daemon that has run here once: `brimline serve --background`"
SHARED = "HTTP hooks carry a token, and a project's settings may be shared: use --transport command"


class SetupOptions(msgspec.Struct, frozen=True):
    """What the user asks for; what is None stays as it was set up.

    `autostart`: the hook of a session's start starts the daemon where there is none. Where nothing
    is asked for and nothing was set up, `autostart_first` says so, hooks are commands, and our
    status line goes after the user's own. `http` is where hooks are posted to, if a daemon has run.
    """

    program: Program
    state: Path
    cwd: Path
    remove: bool = False
    scope: Scope = "user"
    mode: Mode | None = None
    transport: Transport | None = None
    http: HttpTarget | None = None
    autostart: bool | None = None
    autostart_first: bool = False


class FileChange(msgspec.Struct, frozen=True):
    """What a file is to hold and what is to be remembered; None is no file, and nothing.

    `first` tells that nothing of ours was in the file yet.
    """

    after: bytes | None
    kept: Kept | None = None
    first: bool = False


class Job(msgspec.Struct, frozen=True):
    """An agent's file, and what is wanted of it."""

    recipe: Recipe
    path: Path
    places: Places
    wish: SetupOptions

    @property
    def state(self) -> Path:
        """Where it is remembered what was done."""
        return self.wish.state

    @property
    def remove(self) -> bool:
        """Whether ours is to be taken out."""
        return self.wish.remove

    @property
    def status_line(self) -> str:
        """Our status line's command."""
        return self.wish.program.command("statusline", self.recipe.agent).shell

    @property
    def kept(self) -> Kept | None:
        """What is remembered of this file."""
        return load(self.wish.state).get(str(self.path))

    def outcome(self, before: bytes | None) -> FileChange:
        """What becomes of the file; InvalidSettings where it cannot be edited."""
        if not self.wish.remove:
            return _install(self, before)
        return FileChange(None if before is None else _uninstall(self, before))


def parse_settings(job: Job, data: bytes | None) -> Document:
    """A file that was read; one that is missing or empty holds an empty object."""
    place = str(job.path)
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1}"
        raise InvalidSettings(place, where, "expected text in UTF-8") from error
    if not text.strip(WHITESPACE + BYTE_ORDER_MARK):
        text += "{}\r\n" if "\r\n" in text else "{}\n"
    return parse(text, job.recipe.dialect, place)


def _install(job: Job, before: bytes | None) -> FileChange:
    document = parse_settings(job, before)
    first, kept = not is_set_up(document), job.kept
    changed = with_hooks(document, _wanted(job, document))
    shown = None
    if job.recipe.has_status_line:
        changed, own = _with_status_line(job, document, changed)
        before_this = kept.status_line.mode if kept and kept.status_line else "append"
        shown = StatusLine(own, job.wish.mode or before_this)
    after = _encoded(changed)
    made = kept.made if kept else None
    known = Kept(job.recipe.agent, job.wish.scope, status_line=shown, made=made)
    if first:
        known = _known(known, None if before is None else digest(before), after)
    elif kept and before and kept.wrote == digest(before):
        known = _known(known, kept.before, after)
    return FileChange(after, known, first)


def _wanted(job: Job, document: Document) -> list[Wanted]:
    """Every hook as it is asked for, else as those that stand there."""
    wish, there = job.wish, standing(document)
    transport, autostart = wish.transport, wish.autostart
    if transport is None:
        transport = "http" if any(map(posted_to, there.values())) else "command"
    if autostart is None:
        autostart = is_start(there[START]) if START in there else wish.autostart_first
    http = _http_target(job) if transport == "http" and job.recipe.over_http else None
    return job.recipe.wanted(wish.program, http, autostart)


def _http_target(job: Job) -> HttpTarget:
    if job.wish.scope == "project":
        raise InvalidSettings(str(job.path), "hooks", SHARED)
    if job.wish.http is None:
        raise InvalidSettings(str(job.path), "hooks", NO_TARGET)
    return job.wish.http


def _known(kept: Kept, before: str | None, after: bytes) -> Kept:
    """With both hashes: nobody else had a hand in what is written over what was copied."""
    return msgspec.structs.replace(kept, before=before, wrote=digest(after))


def _with_status_line(
    job: Job, document: Document, changed: Document
) -> tuple[Document, Own | None]:
    changed, own = with_status_line(changed, job.status_line)
    if own is None and has_status_line(document):
        own = _remembered(job)
    if job.wish.scope == "project" and (own is None or own.raw is None):
        own = _inherited(job)
    return changed, own


def _uninstall(job: Job, before: bytes) -> bytes | None:
    kept = job.kept
    if kept and kept.wrote == digest(before):
        if kept.before is None:
            return None
        original = told(backup_of(job.path))
        if original is not None and digest(original) == kept.before:
            return original
    document = parse_settings(job, before)
    if not is_set_up(document):
        return before
    without = without_hooks(document, _copied(job))
    return _encoded(without_status_line(without, _remembered(job)))


def _remembered(job: Job) -> Own | None:
    """The user's own status line, as it is remembered, else as the copy has it."""
    kept = job.kept
    if kept is not None:
        return kept.status_line.own if kept.status_line else None
    copy = _copied(job)
    return own_status_line(copy) if copy else None


def _copied(job: Job) -> Document | None:
    """What was there before, if the copy of it can be read."""
    with suppress(InvalidSettings):
        return parse_settings(job, told(backup_of(job.path)))
    return None


def _inherited(job: Job) -> Own | None:
    """The status line of the user's own settings, over which a project's goes."""
    path = job.recipe.user(job.places)
    user = msgspec.structs.replace(job, path=path)
    with suppress(InvalidSettings):
        document = parse_settings(user, told(path))
        own = _remembered(user) if has_status_line(document) else own_status_line(document)
        return own and Own(own.command)
    return None


def _encoded(document: Document) -> bytes:
    try:
        return document.text.encode("utf-8")
    except UnicodeEncodeError as error:
        problem = "the path of Brimline's hook is not UTF-8, and cannot stand in JSON"
        raise InvalidSettings(document.name, "hooks", problem) from error
