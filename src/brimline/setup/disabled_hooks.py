"""Settings of the user or a project that disable our hooks."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents.hook_command import HOOK_NAME
from brimline.errors import InvalidSettings
from brimline.jsonc import Document, JsonPath
from brimline.setup.install import SettingsFile, parse_settings
from brimline.setup.shared_file import read_if_exists


class DisablingSetting(msgspec.Struct, frozen=True):
    """A setting that disables our hooks, and its file."""

    setting: str
    path: Path


def find_disabling_setting(file: SettingsFile) -> DisablingSetting | None:
    """Return the setting that disables our hooks in the working folder.

    The file nearest to the project decides about all hooks; a hook that any file names is disabled.
    """
    switch, disabling = file.recipe.disable_setting, None
    if switch is None:
        return None
    for path, document in _documents(file):
        if HOOK_NAME in _disabled_names(document, switch.names_path):
            return DisablingSetting(f"{'.'.join(switch.names_path)}: {HOOK_NAME}", path)
        value = document.find(switch.path)
        if value is not None and isinstance(value.scalar, bool):
            disabling = (
                DisablingSetting(".".join(switch.path), path)
                if value.scalar is switch.off
                else None
            )
    return disabling


def _documents(file: SettingsFile) -> Iterator[tuple[Path, Document]]:
    """Yield the readable settings that apply to the working folder, the nearest last."""
    recipe, cwd = file.recipe, file.options.cwd
    below = [cwd / place for place in (recipe.project_file, recipe.local_file) if place]
    for path in (recipe.user_file(file.places), *below):
        with suppress(InvalidSettings):
            yield (
                path,
                parse_settings(msgspec.structs.replace(file, path=path), read_if_exists(path)),
            )


def _disabled_names(document: Document, path: JsonPath) -> list[object]:
    value = document.find(path) if path else None
    return [] if value is None else [child.value.scalar for child in value.children]
