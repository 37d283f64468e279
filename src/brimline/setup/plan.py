"""What setup would change, and the change itself.

A plan only reads. Applying it computes the change again from the file's content at that time,
because another program may have changed the file in between.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents import display_name, get_agent
from brimline.agents.hook_command import has_hook_token
from brimline.agents.install_spec import InstallSpec
from brimline.errors import InvalidSettings
from brimline.setup.disabled_hooks import find_disabling_setting
from brimline.setup.extension import extension_file
from brimline.setup.install import FileChange, SettingsFile, SetupOptions
from brimline.setup.managed_file import ManagedFile
from brimline.setup.manifest import ManifestEntry, save_entry
from brimline.setup.shared_file import (
    LockedFile,
    backup_path,
    find_leftovers,
    first_missing_folder,
    lock_shared_file,
    read_if_exists,
    remove_empty_folders,
)
from brimline.transcripts.source import Places

LINE_POSITION_NOTES = {
    "prepend": "Your own status line runs as before, after Brimline's.",
    "append": "Your own status line runs as before, followed by Brimline's.",
    "replace": "Your own status line is not shown; --remove restores it.",
}
MACHINE_PATHS_NOTE = "This file has paths of this machine: do not commit it to a shared repository."


class Change(msgspec.Struct, frozen=True):
    """The change of one file; a content of None is no file.

    `pending`: there is something to write. `problem`: why nothing can be written, or after a change
    was applied, what could not be cleaned up.
    """

    agent: str
    what: str
    path: Path | None = None
    before: bytes | None = None
    after: bytes | None = None
    notes: tuple[str, ...] = ()
    pending: bool = False
    problem: str | None = None
    file: SettingsFile | ManagedFile | None = None


def plan(agents: Iterable[str], places: Places, wish: SetupOptions) -> list[Change]:
    """Return the changes of these agents' files; nothing is written."""
    return [_plan_agent(get_agent(agent).name, places, wish) for agent in agents]


def apply(change: Change) -> Change:
    """Apply a change and return it as applied; raises InvalidSettings if that fails.

    Folders that were created for a file are removed with it, and if writing fails.
    """
    job = change.file
    if job is None or not change.pending:
        return change
    new, kept = first_missing_folder(job.path), job.record
    made = Path(kept.made) if kept and kept.made else new
    try:
        done = _write(change, job, made)
    except InvalidSettings:
        if new is not None:
            remove_empty_folders(job.path, new)
        raise
    if made is not None and done.after is None:
        remove_empty_folders(job.path, made)
    return done


def _write(change: Change, job: SettingsFile | ManagedFile, made: Path | None) -> Change:
    with lock_shared_file(job.path) as file:
        known, copied = job.record, backup_path(job.path).exists()

        def work(before: bytes | None) -> bytes | None:
            outcome = job.plan_change(before)
            if outcome.is_first and before is not None:
                file.save_backup(before)
            if outcome.record is not None:
                save_entry(job.state, job.path, _with_created_folder(outcome.record, made))
            return outcome.after

        try:
            before, after = file.update(work, has_hook_token)
        except InvalidSettings:
            _roll_back(job, file, known, copied)
            raise
        done = msgspec.structs.replace(change, before=before, after=after, pending=False)
        return _clean_up(job, file, done) if job.remove else done


def _with_created_folder(kept: ManifestEntry, made: Path | None) -> ManifestEntry:
    return kept if made is None else msgspec.structs.replace(kept, made=str(made))


def _roll_back(
    job: SettingsFile | ManagedFile, file: LockedFile, known: ManifestEntry | None, copied: bool
) -> None:
    """Restore the manifest entry, and remove a new backup: the file was not written."""
    with suppress(InvalidSettings):
        if job.record != known:
            save_entry(job.state, job.path, known)
        if not copied:
            file.remove_backup()


def _clean_up(job: SettingsFile | ManagedFile, file: LockedFile, done: Change) -> Change:
    """Remove manifest entry and backup; a failure is reported, and the change stays."""
    try:
        if job.record is not None:
            save_entry(job.state, job.path, None)
        file.remove_backup()
    except InvalidSettings as error:
        return msgspec.structs.replace(done, problem=str(error))
    return done


def _plan_agent(agent: str, places: Places, wish: SetupOptions) -> Change:
    recipe = get_agent(agent).install_spec
    path = Path(os.path.abspath(recipe.file(places, wish.scope, wish.cwd)))
    if recipe.is_extension:
        return _plan_extension(recipe, path, wish)
    job = SettingsFile(recipe, path, places, wish)
    try:
        before = read_if_exists(job.path)
        outcome = job.plan_change(before)
        return Change(
            agent,
            _describe(job, before, outcome),
            path=job.path,
            before=before,
            after=outcome.after,
            notes=_notes(job, before, outcome),
            pending=_is_pending(job, before, outcome),
            file=job,
        )
    except InvalidSettings as error:
        return Change(agent, "not changed", path=job.path, problem=str(error))


def _plan_extension(recipe: InstallSpec, path: Path, wish: SetupOptions) -> Change:
    what = "Brimline's extension is removed" if wish.remove else "Brimline's extension"
    change = plan_managed_file(extension_file(recipe, path, wish), what)
    if wish.remove or change.problem:
        return change
    then = change.before != change.after and recipe.next_step
    notes = (*_general_notes(recipe, wish), *([then] if then else ()))
    return msgspec.structs.replace(change, notes=notes)


def plan_managed_file(file: ManagedFile, what: str, notes: tuple[str, ...] = ()) -> Change:
    """Return the change of a managed file; nothing is written."""
    try:
        before = read_if_exists(file.path)
        outcome = file.plan_change(before)
    except InvalidSettings as error:
        return Change(file.name, "not changed", path=file.path, problem=str(error))
    return Change(
        file.name,
        _describe_unchanged(file.remove) if before == outcome.after else what,
        path=file.path,
        before=before,
        after=outcome.after,
        notes=notes,
        pending=_is_pending(file, before, outcome),
        file=file,
    )


def _is_pending(job: SettingsFile | ManagedFile, before: bytes | None, outcome: FileChange) -> bool:
    """Return whether there is anything to write or to clean up."""
    changes = before != outcome.after or outcome.record != job.record
    return changes or (job.remove and bool(find_leftovers(job.path)))


def _describe_unchanged(remove: bool) -> str:
    return "nothing to remove" if remove else "already set up"


def _describe(job: SettingsFile, before: bytes | None, outcome: FileChange) -> str:
    if before == outcome.after:
        return _describe_unchanged(job.remove)
    if job.remove:
        return "Brimline's entries are removed"
    hooks = f"{len(job.recipe.events)} hooks"
    return f"{hooks} and the status line" if job.recipe.has_status_line else hooks


def _notes(job: SettingsFile, before: bytes | None, outcome: FileChange) -> tuple[str, ...]:
    if job.remove:
        return ()
    notes: list[str] = []
    shown = outcome.record.status_line if outcome.record else None
    if shown and shown.own:
        notes.append(LINE_POSITION_NOTES[shown.mode])
    if off := find_disabling_setting(job):
        notes.append(f"{off.setting} in {off.path} disables Brimline's hooks: remove it.")
    notes += _general_notes(job.recipe, job.options)
    if before != outcome.after and job.recipe.next_step:
        notes.append(job.recipe.next_step)
    return tuple(notes)


def _general_notes(recipe: InstallSpec, wish: SetupOptions) -> Iterator[str]:
    if wish.transport == "http" and not recipe.http_events:
        yield f"{display_name(recipe.agent)} has no HTTP hooks: commands are installed."
    if wish.scope == "project":
        yield MACHINE_PATHS_NOTE
