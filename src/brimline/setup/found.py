"""What of ours stands in an agent's settings, whichever way it was set up."""

import os
from pathlib import Path

import msgspec

from brimline.errors import InvalidSettings
from brimline.setup.command import Program
from brimline.setup.extension import is_ours, text
from brimline.setup.file import told
from brimline.setup.job import Job, Wish, scanned
from brimline.setup.merge import is_switched_off, ours
from brimline.setup.plan import RECIPES
from brimline.setup.recipe import START, Recipe, Scope
from brimline.setup.scan import Document, Json
from brimline.sources.base import Places


class Found(msgspec.Struct, frozen=True):
    """Our hooks in one file; `problem` tells why it could not be read.

    `missing` are the events at which there is none, `old` those whose command is not the one that
    setup would write now. `autostart` tells whether a session's start starts the daemon,
    `switched_off` that the user switched off all hooks in this file.
    """

    agent: str
    path: Path
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    posts: bool = False
    autostart: bool = False
    switched_off: bool = False
    problem: str | None = None


def find(agent: str, places: Places, wish: Wish, scope: Scope) -> Found:
    """What stands in the settings of a scope. Nothing is written."""
    recipe = RECIPES[agent]
    path = Path(os.path.abspath(recipe.file(places, scope, wish.cwd)))
    if recipe.extension:
        return _extension(recipe, path, wish.program)
    try:
        document = scanned(Job(recipe, path, places, wish), told(path))
    except InvalidSettings as error:
        return Found(agent, path, problem=str(error))
    found = _found(recipe, path, _hooks(document), wish.program)
    return msgspec.structs.replace(found, switched_off=is_switched_off(document))


def _extension(recipe: Recipe, path: Path, program: Program) -> Found:
    """Our extension: all of it is there or nothing, and all of it is old where a part is."""
    try:
        there = told(path)
        current, first = (text(recipe, program, autostart) for autostart in (False, True))
    except InvalidSettings as error:
        return Found(recipe.agent, path, problem=str(error))
    events = tuple(recipe.events)
    if there is None or not is_ours(there):
        return Found(recipe.agent, path, missing=events)
    old = () if there in (current, first) else events
    return Found(recipe.agent, path, events=events, old=old, autostart=there == first)


def _hooks(document: Document) -> dict[str, Json]:
    """Our hooks by their events."""
    values = ((str(steps[1]), document.find(steps)) for steps in ours(document))
    return {event: value.plain() for event, value in values if value is not None}


def _found(recipe: Recipe, path: Path, hooks: dict[str, Json], program: Program) -> Found:
    first = recipe.hook(program.command("start", recipe.agent)).plain()
    command = recipe.hook(program.command("hook", recipe.agent)).plain()
    current = (command, first)
    return Found(
        agent=recipe.agent,
        path=path,
        events=tuple(hooks),
        missing=tuple(event for event in recipe.events if event not in hooks),
        old=tuple(event for event, one in hooks.items() if one not in current and not _posts(one)),
        posts=any(_posts(one) for one in hooks.values()),
        autostart=hooks.get(START) == first,
    )


def _posts(hook: Json) -> bool:
    return isinstance(hook, dict) and hook.get("type") == "http"
