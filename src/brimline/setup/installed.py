"""What is installed in an agent's settings."""

import os
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents import get_agent
from brimline.agents.hook_command import Program, daemon_address
from brimline.agents.install_spec import START_EVENT, InstallSpec, Scope
from brimline.errors import InvalidSettings
from brimline.jsonc import Document, Json
from brimline.setup.disabled_hooks import DisablingSetting, find_disabling_setting
from brimline.setup.entries import STATUS_LINE, has_our_status_line, installed_hooks
from brimline.setup.extension import extension_source, is_our_extension
from brimline.setup.install import SettingsFile, SetupOptions, parse_settings
from brimline.setup.shared_file import read_if_exists
from brimline.transcripts.source import Places

LineState: TypeAlias = Literal["current", "old", "gone"]


class InstalledHooks(msgspec.Struct, frozen=True):
    """Our hooks in one file; `problem` is why it could not be read.

    `missing` are the events without a hook, `outdated` those whose command is not what setup would
    write now, of another installation for example. `addresses` are those that HTTP hooks post to.
    `autostart`: the SessionStart hook starts the daemon. `status_line` is None if setup installed
    none. `disabled_by` may be a setting of another file.
    """

    agent: str
    path: Path
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    autostart: bool = False
    status_line: LineState | None = None
    disabled_by: DisablingSetting | None = None
    problem: str | None = None
    scope: Scope = "user"


def find_installed(
    agent: str, places: Places, options: SetupOptions, scope: Scope
) -> InstalledHooks:
    """Return what is installed in the settings of a scope; nothing is written."""
    recipe = get_agent(agent).install_spec
    path = Path(os.path.abspath(recipe.file(places, scope, options.cwd)))
    if recipe.is_extension:
        installed = _find_extension(recipe, path, options.program)
    else:
        installed = _find_in_settings(SettingsFile(recipe, path, places, options))
    return msgspec.structs.replace(installed, scope=scope)


def _find_in_settings(file: SettingsFile) -> InstalledHooks:
    try:
        document = parse_settings(file, read_if_exists(file.path))
        line = _line_state(file, document)
    except InvalidSettings as error:
        return InstalledHooks(file.recipe.agent, file.path, problem=str(error))
    installed = _compare_hooks(
        file.recipe, file.path, installed_hooks(document), file.options.program
    )
    return msgspec.structs.replace(
        installed, status_line=line, disabled_by=find_disabling_setting(file)
    )


def _line_state(file: SettingsFile, document: Document) -> LineState | None:
    if has_our_status_line(document):
        command = document.find((STATUS_LINE, "command"))
        return "current" if command and command.scalar == file.status_line else "old"
    record = file.record
    return "gone" if record and record.status_line else None


def _find_extension(recipe: InstallSpec, path: Path, program: Program) -> InstalledHooks:
    """Return our extension: a file that differs from ours is outdated as a whole."""
    try:
        content = read_if_exists(path)
        current, first = (
            extension_source(recipe, program, autostart) for autostart in (False, True)
        )
    except InvalidSettings as error:
        return InstalledHooks(recipe.agent, path, problem=str(error))
    events = tuple(recipe.events)
    if content is None or not is_our_extension(content):
        return InstalledHooks(recipe.agent, path, missing=events)
    old = () if content in (current, first) else events
    return InstalledHooks(
        recipe.agent, path, events=events, outdated=old, autostart=content == first
    )


def _compare_hooks(
    recipe: InstallSpec, path: Path, hooks: dict[str, Json], program: Program
) -> InstalledHooks:
    first = recipe.hook(program.command("start", recipe.agent)).to_json()
    command = recipe.hook(program.command("hook", recipe.agent)).to_json()
    posts = {event: daemon_address(one) for event, one in hooks.items()}
    return InstalledHooks(
        agent=recipe.agent,
        path=path,
        events=tuple(hooks),
        missing=tuple(event for event in recipe.events if event not in hooks),
        outdated=tuple(
            event
            for event, one in hooks.items()
            if one not in (command, first) and not posts[event]
        ),
        addresses=tuple(sorted({address for address in posts.values() if address})),
        autostart=hooks.get(START_EVENT) == first,
    )
