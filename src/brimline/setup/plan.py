"""What setup would change, and the change itself.

A plan only reads. Carrying it out does the work again on what the file then holds: between the two
somebody may have written it.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from brimline.errors import InvalidSettings
from brimline.setup import claude, codex, extension, gemini, opencode, pi
from brimline.setup.beside import Beside
from brimline.setup.file import held, told
from brimline.setup.job import Job, Outcome, Wish, scanned
from brimline.setup.kept import save
from brimline.setup.merge import is_switched_off
from brimline.setup.recipe import Recipe
from brimline.sources import AGENTS, known
from brimline.sources.base import Places

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
SWITCHED_OFF = "disableAllHooks is set in this file: no hook is run until it is taken out."


class Change(msgspec.Struct, frozen=True):
    """What becomes of one agent's file, whose content None stands for no file.

    `pending` tells whether there is anything to write, `problem` why nothing can be.
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


def plan(agents: Iterable[str], places: Places, wish: Wish) -> list[Change]:
    """What would become of the files of these agents. Nothing is written."""
    return [_planned(known(agent), places, wish) for agent in agents]


def apply(change: Change) -> Change:
    """Carry a change out, and give it as it was carried out; InvalidSettings where that fails."""
    job = change.job
    if job is None or not change.pending:
        return change
    with held(job.path) as file:

        def work(before: bytes | None) -> bytes | None:
            outcome = job.outcome(before)
            if outcome.first and before is not None:
                file.keep(before)
            if outcome.kept is not None:
                save(job.state, job.path, outcome.kept)
            return outcome.after

        before, after = file.change(work)
        if job.remove:
            save(job.state, job.path, None)
            file.forget()
    return msgspec.structs.replace(change, before=before, after=after, pending=False)


def _planned(agent: str, places: Places, wish: Wish) -> Change:
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
            pending=before != outcome.after or outcome.kept != job.kept,
            job=job,
        )
    except InvalidSettings as error:
        return Change(agent, "left as it is", path=job.path, problem=str(error))


def _planned_extension(recipe: Recipe, path: Path, wish: Wish) -> Change:
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
    same = before == outcome.after
    return Change(
        file.name,
        _unchanged(file.remove) if same else what,
        path=file.path,
        before=before,
        after=outcome.after,
        notes=notes,
        pending=not same or outcome.kept != file.kept,
        job=file,
    )


def _unchanged(remove: bool) -> str:
    return "nothing of ours in it" if remove else "set up already"


def _what(job: Job, before: bytes | None, outcome: Outcome) -> str:
    if before == outcome.after:
        return _unchanged(job.remove)
    if job.remove:
        return "our entries are taken out"
    hooks = f"{len(job.recipe.events)} hooks"
    return f"{hooks} and the status line" if job.recipe.has_status_line else hooks


def _notes(job: Job, before: bytes | None, outcome: Outcome) -> tuple[str, ...]:
    if job.remove:
        return ()
    notes: list[str] = []
    shown = outcome.kept.status_line if outcome.kept else None
    if shown and shown.own:
        notes.append(BESIDE[shown.mode])
    if is_switched_off(scanned(job, outcome.after)):
        notes.append(SWITCHED_OFF)
    notes += _notes_of(job.recipe, job.wish)
    if before != outcome.after and job.recipe.then:
        notes.append(job.recipe.then)
    return tuple(notes)


def _notes_of(recipe: Recipe, wish: Wish) -> Iterator[str]:
    """What is to be known whatever the file holds."""
    if wish.address and not recipe.over_http:
        yield f"{AGENTS[recipe.agent]} posts nothing by itself: its hooks are commands."
    if wish.scope == "project":
        yield PATHS
