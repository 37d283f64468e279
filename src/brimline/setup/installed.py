"""What of ours stands in an agent's settings, whichever way it was set up."""

import os
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.errors import InvalidSettings
from brimline.jsonc import Document, Json
from brimline.setup.command import Program, posted_to
from brimline.setup.disabled_hooks import Off, switched_off
from brimline.setup.extension import is_ours, text
from brimline.setup.file import told
from brimline.setup.install import Job, SetupOptions, parse_settings
from brimline.setup.merge import STATUS_LINE, has_status_line, standing
from brimline.setup.plan import RECIPES
from brimline.setup.recipe import START, Recipe, Scope
from brimline.transcripts.source import Places

Line: TypeAlias = Literal["current", "old", "gone"]
"""Our status line: the one that setup would write now, another installation's, or gone."""


class Found(msgspec.Struct, frozen=True):
    """Our hooks in one file; `problem` tells why it could not be read.

    `missing` are the events at which there is none, `old` those whose command is not the one that
    setup would write now. `posts` are the addresses that hooks are posted to, and `autostart` tells
    whether a session's start starts the daemon. `line` is None where setup put no status line in.
    `switched_off` is what keeps all of them from being run, in this file or another.
    """

    agent: str
    path: Path
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    posts: tuple[str, ...] = ()
    autostart: bool = False
    line: Line | None = None
    switched_off: Off | None = None
    problem: str | None = None
    scope: Scope = "user"


def find(agent: str, places: Places, wish: SetupOptions, scope: Scope) -> Found:
    """What stands in the settings of a scope. Nothing is written."""
    recipe = RECIPES[agent]
    path = Path(os.path.abspath(recipe.file(places, scope, wish.cwd)))
    if recipe.extension:
        found = _extension(recipe, path, wish.program)
    else:
        found = _in_settings(Job(recipe, path, places, wish))
    return msgspec.structs.replace(found, scope=scope)


def _in_settings(job: Job) -> Found:
    """Our hooks and status line among what else an agent is told."""
    try:
        document = parse_settings(job, told(job.path))
        line = _line(job, document)
    except InvalidSettings as error:
        return Found(job.recipe.agent, job.path, problem=str(error))
    found = _found(job.recipe, job.path, standing(document), job.wish.program)
    return msgspec.structs.replace(found, line=line, switched_off=switched_off(job))


def _line(job: Job, document: Document) -> Line | None:
    """How our status line is, where one stands there or was put there."""
    if has_status_line(document):
        command = document.find((STATUS_LINE, "command"))
        return "current" if command and command.scalar == job.status_line else "old"
    kept = job.kept
    return "gone" if kept and kept.status_line else None


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


def _found(recipe: Recipe, path: Path, hooks: dict[str, Json], program: Program) -> Found:
    first = recipe.hook(program.command("start", recipe.agent)).to_json()
    command = recipe.hook(program.command("hook", recipe.agent)).to_json()
    posts = {event: posted_to(one) for event, one in hooks.items()}
    return Found(
        agent=recipe.agent,
        path=path,
        events=tuple(hooks),
        missing=tuple(event for event in recipe.events if event not in hooks),
        old=tuple(
            event
            for event, one in hooks.items()
            if one not in (command, first) and not posts[event]
        ),
        posts=tuple(sorted({address for address in posts.values() if address})),
        autostart=hooks.get(START) == first,
    )
