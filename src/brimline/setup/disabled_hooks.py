"""Whether a user switched our hooks off, in their own settings or in those of a project."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.errors import InvalidSettings
from brimline.jsonc import Document, JsonPath
from brimline.setup.command import NAME
from brimline.setup.file import told
from brimline.setup.install import Job, parse_settings


class Off(msgspec.Struct, frozen=True):
    """The setting that keeps our hooks from being run, and the file that it stands in."""

    setting: str
    path: Path


def switched_off(job: Job) -> Off | None:
    """What keeps our hooks from being run in the working folder.

    Of several files the one that is nearest to the project says so; a hook that one of them names
    is not run, whatever the others say.
    """
    switch, found = job.recipe.switch, None
    if switch is None:
        return None
    for path, document in _documents(job):
        if NAME in _names(document, switch.names):
            return Off(f"{'.'.join(switch.names)}: {NAME}", path)
        value = document.find(switch.way)
        if value is not None and isinstance(value.scalar, bool):
            found = Off(".".join(switch.way), path) if value.scalar is switch.off else None
    return found


def _documents(job: Job) -> Iterator[tuple[Path, Document]]:
    """The settings that count in the working folder and can be read, the nearest last."""
    recipe, cwd = job.recipe, job.wish.cwd
    below = [cwd / place for place in (recipe.project, recipe.local) if place]
    for path in (recipe.user(job.places), *below):
        with suppress(InvalidSettings):
            yield path, parse_settings(msgspec.structs.replace(job, path=path), told(path))


def _names(document: Document, way: JsonPath) -> list[object]:
    value = document.find(way) if way else None
    return [] if value is None else [child.value.scalar for child in value.children]
