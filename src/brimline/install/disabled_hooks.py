"""Settings of the user or a project that disable our hooks."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents.hook_command import HOOK_NAME
from brimline.errors import InvalidSettings
from brimline.files.jsonc import Document, JsonPath
from brimline.install.install import SettingsFile, read_settings


class DisablingSetting(msgspec.Struct, frozen=True):
    """A setting that disables our hooks, and its file."""

    setting: str
    path: Path


def find_disabling_setting(file: SettingsFile) -> DisablingSetting | None:
    """Return the setting that disables our hooks in the working folder.

    The file nearest to the project decides about all hooks; a hook that any file names is disabled.
    """
    switch, disabling = file.spec.disable_setting, None
    if switch is None:
        return None
    for path, document in _documents(file):
        if HOOK_NAME in _disabled_names(document, switch.names_path):
            return DisablingSetting(f"{'.'.join(switch.names_path)}: {HOOK_NAME}", path)
        value = document.find(switch.path)
        if value is not None and isinstance(value.scalar, bool):
            is_off = value.scalar is switch.off
            disabling = DisablingSetting(".".join(switch.path), path) if is_off else None
    return disabling


def _documents(file: SettingsFile) -> Iterator[tuple[Path, Document]]:
    """Yield the readable settings that apply to the working folder, the nearest last."""
    spec, cwd = file.spec, file.options.cwd
    in_project = [cwd / name for name in (spec.project_file, spec.local_file) if name]
    for path in (spec.user_file(file.places), *in_project):
        with suppress(InvalidSettings):
            yield path, read_settings(path, spec.dialect)


def _disabled_names(document: Document, path: JsonPath) -> list[object]:
    value = document.find(path) if path else None
    return [] if value is None else [child.value.scalar for child in value.children]
