"""What setup would change, and the change itself.

A plan only reads. Carrying it out does the work again on what the file then holds: between the two
somebody may have written it.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents import display_name, get_agent
from brimline.errors import InvalidSettings
from brimline.setup import claude, codex, extension, gemini, opencode, pi
from brimline.setup.command import holds_token
from brimline.setup.disabled_hooks import switched_off
from brimline.setup.file import (
    Held,
    backup_of,
    folder_to_make,
    held,
    leftovers,
    told,
    unmake,
)
from brimline.setup.install import FileChange, Job, SetupOptions
from brimline.setup.managed_file import Beside
from brimline.setup.manifest import Kept, save
from brimline.setup.recipe import Recipe
from brimline.transcripts.source import Places

RECIPES: dict[str, Recipe] = {
    module.RECIPE.agent: module.RECIPE for module in (claude, codex, gemini, pi, opencode)
}
"""Every agent: all of them have hooks, or extensions."""

BESIDE = {
    "prepend": "Your own status line runs as before; ours is put before it.",
    "append": "Your own status line runs as before; ours is put after it.",
    "replace": "Your own status line is not shown; --remove gives it back.",
}
PATHS = "This file names paths of this machine: it is of no use in a repository that others share."


class Change(msgspec.Struct, frozen=True):
    """What becomes of one agent's file, whose content None stands for no file.

    `pending` tells whether there is anything to write, `problem` why nothing can be; of a change
    that was carried out, what was left to do beside the file.
    """

    agent: str
    what: str
    path: Path | None = None
    before: bytes | None = None
    after: bytes | None = None
    notes: tuple[str, ...] = ()
    pending: bool = False
    problem: str | None = None
    job: Job | Beside | None = None


def plan(agents: Iterable[str], places: Places, wish: SetupOptions) -> list[Change]:
    """What would become of the files of these agents. Nothing is written."""
    return [_planned(get_agent(agent).name, places, wish) for agent in agents]


def apply(change: Change) -> Change:
    """Carry a change out, and give it as it was carried out; InvalidSettings where that fails.

    Folders that were made for a file go with it, or where it could not be written.
    """
    job = change.job
    if job is None or not change.pending:
        return change
    new, kept = folder_to_make(job.path), job.kept
    made = Path(kept.made) if kept and kept.made else new
    try:
        done = _applied(change, job, made)
    except InvalidSettings:
        if new is not None:
            unmake(job.path, new)
        raise
    if made is not None and done.after is None:
        unmake(job.path, made)
    return done


def _applied(change: Change, job: Job | Beside, made: Path | None) -> Change:
    with held(job.path) as file:
        known, copied = job.kept, backup_of(job.path).exists()

        def work(before: bytes | None) -> bytes | None:
            outcome = job.outcome(before)
            if outcome.first and before is not None:
                file.keep(before)
            if outcome.kept is not None:
                save(job.state, job.path, _with_made(outcome.kept, made))
            return outcome.after

        try:
            before, after = file.change(work, holds_token)
        except InvalidSettings:
            _undone(job, file, known, copied)
            raise
        done = msgspec.structs.replace(change, before=before, after=after, pending=False)
        return _forgotten(job, file, done) if job.remove else done


def _with_made(kept: Kept, made: Path | None) -> Kept:
    return kept if made is None else msgspec.structs.replace(kept, made=str(made))


def _undone(job: Job | Beside, file: Held, known: Kept | None, copied: bool) -> None:
    """Remember what was known before: nothing was written. A copy that was not there goes."""
    with suppress(InvalidSettings):
        if job.kept != known:
            save(job.state, job.path, known)
        if not copied:
            file.forget()


def _forgotten(job: Job | Beside, file: Held, done: Change) -> Change:
    """Without the record and the copy; where they stay, the change is done all the same."""
    try:
        if job.kept is not None:
            save(job.state, job.path, None)
        file.forget()
    except InvalidSettings as error:
        return msgspec.structs.replace(done, problem=str(error))
    return done


def _planned(agent: str, places: Places, wish: SetupOptions) -> Change:
    recipe = RECIPES[agent]
    path = Path(os.path.abspath(recipe.file(places, wish.scope, wish.cwd)))
    if recipe.extension:
        return _planned_extension(recipe, path, wish)
    job = Job(recipe, path, places, wish)
    try:
        before = told(job.path)
        outcome = job.outcome(before)
        return Change(
            agent,
            _what(job, before, outcome),
            path=job.path,
            before=before,
            after=outcome.after,
            notes=_notes(job, before, outcome),
            pending=_pending(job, before, outcome),
            job=job,
        )
    except InvalidSettings as error:
        return Change(agent, "left as it is", path=job.path, problem=str(error))


def _planned_extension(recipe: Recipe, path: Path, wish: SetupOptions) -> Change:
    what = "our extension is taken out" if wish.remove else "our extension"
    change = plan_beside(extension.beside(recipe, path, wish), what)
    if wish.remove or change.problem:
        return change
    then = change.before != change.after and recipe.then
    notes = (*_notes_of(recipe, wish), *([then] if then else ()))
    return msgspec.structs.replace(change, notes=notes)


def plan_beside(file: Beside, what: str, notes: tuple[str, ...] = ()) -> Change:
    """What would become of a file beside the agents' settings. Nothing is written."""
    try:
        before = told(file.path)
        outcome = file.outcome(before)
    except InvalidSettings as error:
        return Change(file.name, "left as it is", path=file.path, problem=str(error))
    return Change(
        file.name,
        _unchanged(file.remove) if before == outcome.after else what,
        path=file.path,
        before=before,
        after=outcome.after,
        notes=notes,
        pending=_pending(file, before, outcome),
        job=file,
    )


def _pending(job: Job | Beside, before: bytes | None, outcome: FileChange) -> bool:
    """Whether there is anything to write, or something of ours to clear away."""
    changes = before != outcome.after or outcome.kept != job.kept
    return changes or (job.remove and bool(leftovers(job.path)))


def _unchanged(remove: bool) -> str:
    return "nothing of ours in it" if remove else "set up already"


def _what(job: Job, before: bytes | None, outcome: FileChange) -> str:
    if before == outcome.after:
        return _unchanged(job.remove)
    if job.remove:
        return "our entries are taken out"
    hooks = f"{len(job.recipe.events)} hooks"
    return f"{hooks} and the status line" if job.recipe.has_status_line else hooks


def _notes(job: Job, before: bytes | None, outcome: FileChange) -> tuple[str, ...]:
    if job.remove:
        return ()
    notes: list[str] = []
    shown = outcome.kept.status_line if outcome.kept else None
    if shown and shown.own:
        notes.append(BESIDE[shown.mode])
    if off := switched_off(job):
        notes.append(f"{off.setting} in {off.path} switches our hooks off: take it out.")
    notes += _notes_of(job.recipe, job.wish)
    if before != outcome.after and job.recipe.then:
        notes.append(job.recipe.then)
    return tuple(notes)


def _notes_of(recipe: Recipe, wish: SetupOptions) -> Iterator[str]:
    """What is to be known whatever the file holds."""
    if wish.transport == "http" and not recipe.over_http:
        yield f"{display_name(recipe.agent)} posts nothing by itself: its hooks are commands."
    if wish.scope == "project":
        yield PATHS
