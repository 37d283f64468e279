"""What setup would change, and the change itself.

A plan only reads. Applying it computes the change again from the file's content at that time,
because another program may have changed the file in between.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from brimline.agents import agents_with_hooks, display_name
from brimline.agents.hook_command import has_hook_token
from brimline.agents.install_spec import InstallSpec
from brimline.agents.transcripts.source import Places
from brimline.errors import InvalidSettings
from brimline.install.created_files import find_created_folder
from brimline.install.extension import extension_file
from brimline.install.install import (
    FileChange,
    SettingsFile,
    SetupOptions,
    find_disabling_setting,
    has_entries,
    has_plugin,
)
from brimline.install.manifest import save_entry
from brimline.install.setup_file import SetupFile
from brimline.install.shared_file import (
    LockedFile,
    backup_path,
    find_leftovers,
    first_missing_folder,
    lock_shared_file,
    read_if_exists,
    remove_empty_folders,
)
from brimline.install.toml_hooks import toml_hooks_file

LINE_POSITION_NOTES = {
    "prepend": "Your own status line runs as before, after Brimline's.",
    "append": "Your own status line runs as before, followed by Brimline's.",
    "replace": "Your own status line is not shown; --remove restores it.",
}
MACHINE_PATHS_NOTE = "This file has paths of this machine: do not commit it to a shared repository."

PlannedFile: TypeAlias = SettingsFile | SetupFile


class Change(msgspec.Struct, frozen=True):
    """The change of one file; a content of None is no file.

    `pending`: there is something to write. `reason`: why nothing can be written, or after a change
    was applied, what could not be cleaned up.
    """

    agent: str
    what: str
    path: Path | None = None
    before: bytes | None = None
    after: bytes | None = None
    notes: tuple[str, ...] = ()
    pending: bool = False
    reason: str | None = None
    file: PlannedFile | None = None


def plan(agents: Iterable[str], places: Places, options: SetupOptions) -> list[Change]:
    """Return the changes of these agents' files; nothing is written."""
    specs = [options.spec_of(agent) for agent in agents_with_hooks(agents)]
    return [change for spec in specs for change in _plan_agent(spec, places, options)]


def plan_setup_file(file: SetupFile, what: str) -> Change:
    """Return the change of a file of setup; nothing is written."""
    return _plan_file(file, file.name, what, _no_notes)


def _no_notes(outcome: FileChange, is_changed: bool) -> tuple[str, ...]:
    return ()


def apply(change: Change) -> Change:
    """Apply a change and return it as applied; raises InvalidSettings if that fails.

    Folders that were created for a file are removed with it, and if writing fails.
    """
    file = change.file
    if file is None or not change.pending:
        return change
    missing = first_missing_folder(file.path)
    created = find_created_folder(file.state, file.path) or missing
    try:
        applied = _write(change, file, created)
    except InvalidSettings:
        if missing is not None:
            remove_empty_folders(file.path, missing)
        raise
    # Some agents are found by their folder: an empty one of ours would make them look installed.
    if created is not None and applied.after is None:
        remove_empty_folders(file.path, created)
    return applied


def _write(change: Change, file: PlannedFile, created: Path | None) -> Change:
    with lock_shared_file(file.path) as locked:
        old_entry, had_backup = file.entry, backup_path(file.path).exists()

        def edit(before: bytes | None) -> bytes | None:
            outcome = file.plan_change(before)
            if outcome.is_first and before is not None:
                locked.save_backup(before)
            if entry := outcome.entry:
                folder = entry.created_folder if created is None else str(created)
                save_entry(
                    file.state, file.path, msgspec.structs.replace(entry, created_folder=folder)
                )
            return outcome.after

        try:
            before, after = locked.update(edit, has_hook_token)
        except InvalidSettings:
            # The file was not written: restore the manifest entry, and remove a new backup.
            with suppress(InvalidSettings):
                if file.entry != old_entry:
                    save_entry(file.state, file.path, old_entry)
                if not had_backup:
                    locked.remove_backup()
            raise
        reason = _clean_up(file, locked) if file.remove else change.reason
        return msgspec.structs.replace(
            change, before=before, after=after, pending=False, reason=reason
        )


def _clean_up(file: PlannedFile, locked: LockedFile) -> str | None:
    """Remove manifest entry and backup; a failure is returned, and the change stays."""
    try:
        if file.entry is not None:
            save_entry(file.state, file.path, None)
        locked.remove_backup()
    except InvalidSettings as error:
        return str(error)
    return None


def _plan_agent(spec: InstallSpec, places: Places, options: SetupOptions) -> Iterator[Change]:
    named = spec.file(places, options.scope, options.cwd)
    if named is None:
        yield Change(spec.agent, f"{display_name(spec.agent)} reads no hooks of a project")
        return
    path = Path(os.path.abspath(named))
    if spec.is_toml:
        file = toml_hooks_file(spec, path, options)
        what = "Brimline's hooks are removed" if options.remove else f"{len(spec.events)} hooks"
    elif spec.is_extension:
        file = extension_file(spec, path, options)
        what = "Brimline's extension is removed" if options.remove else "Brimline's extension"
    else:
        file = SettingsFile(spec, path, places, options)
        what = "Brimline's entries are removed" if options.remove else _describe_entries(file)

    def notes(outcome: FileChange, is_changed: bool) -> Iterator[str]:
        if options.remove:
            return
        if isinstance(file, SettingsFile):
            yield from _settings_notes(file, outcome)
        if options.transport == "http" and not spec.http_events:
            yield f"{display_name(spec.agent)} has no HTTP hooks: commands are installed."
        if options.scope == "project":
            yield MACHINE_PATHS_NOTE
        if is_changed and spec.next_step:
            yield spec.next_step

    yield _plan_file(file, spec.agent, what, notes)
    yield from _plan_old_file(spec, places, options, path)


def _describe_entries(file: SettingsFile) -> str:
    if has_plugin(file):
        return "the status line; the plugin brings the hooks"
    line = " and the status line" if file.spec.has_status_line else ""
    return f"{len(file.spec.events)} hooks{line}"


def _plan_old_file(
    spec: InstallSpec, places: Places, options: SetupOptions, new: Path
) -> Iterator[Change]:
    """Yield the removal from the file to which earlier versions wrote, if they did.

    It was the one that a project shares; now it is one that belongs to this user alone. The removal
    comes last: until then, that file has the options of the installation.
    """
    path = spec.old_file(places, options.scope, options.cwd)
    if path is None:
        return
    removal = msgspec.structs.replace(options, remove=True)
    file = SettingsFile(spec, Path(os.path.abspath(path)), places, removal)
    what = "are removed" if options.remove else f"move to {new.name}"
    if has_entries(file):
        yield _plan_file(file, spec.agent, f"Brimline's entries {what}", _no_notes)


def _settings_notes(file: SettingsFile, outcome: FileChange) -> Iterator[str]:
    line = outcome.entry.status_line if outcome.entry else None
    if line and line.own:
        yield LINE_POSITION_NOTES[line.mode]
    if disabled := find_disabling_setting(file):
        yield f"{disabled.setting} in {disabled.path} disables Brimline's hooks: remove it."


def _plan_file(
    file: PlannedFile, agent: str, what: str, notes: Callable[[FileChange, bool], Iterable[str]]
) -> Change:
    try:
        before = read_if_exists(file.path)
        outcome = file.plan_change(before)
        is_changed = before != outcome.after
        leftovers = file.remove and bool(find_leftovers(file.path))
        unchanged = "nothing to remove" if file.remove else "already set up"
        return Change(
            agent,
            what if is_changed else unchanged,
            path=file.path,
            before=before,
            after=outcome.after,
            notes=tuple(notes(outcome, is_changed)),
            pending=is_changed or outcome.entry != file.entry or leftovers,
            file=file,
        )
    except InvalidSettings as error:
        return Change(agent, "not changed", path=file.path, reason=str(error))
