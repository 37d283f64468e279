"""What is installed in an agent's settings."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents import agent_names, agents_with_hooks
from brimline.agents.hook_command import (
    Program,
    daemon_address,
    names_installation,
    starts_daemon,
)
from brimline.agents.install_spec import START_EVENT, InstallSpec, Scope
from brimline.agents.transcripts.source import Places
from brimline.errors import InvalidSettings
from brimline.files.jsonc import Document, Json
from brimline.install.entries import STATUS_LINE, has_our_status_line, installed_hooks
from brimline.install.extension import LAUNCHER_MARK, extension_source, is_our_extension
from brimline.install.install import (
    DisablingSetting,
    SettingsFile,
    SetupOptions,
    find_disabling_setting,
    has_entries,
    has_plugin,
    read_settings,
)
from brimline.install.manifest import load_manifest
from brimline.install.mcp_entry import mcp_records
from brimline.install.shared_file import lock_shared_file, read_if_exists, translate_errors
from brimline.install.toml_hooks import installed_toml_hooks

LineState: TypeAlias = Literal["current", "old", "gone"]


class InstalledHooks(msgspec.Struct, frozen=True):
    """Our hooks in one file; `reason` is why it could not be read.

    `missing` are the events without a hook, `outdated` those whose command is not what setup would
    write now, of an earlier version for example. `names_installation`: such commands fail when
    Brimline is moved or removed. `addresses` are those that HTTP hooks post to. `autostart`: hooks
    start the daemon. `status_line` is None if setup installed none. `disabled_by` may be a setting
    of another file. `plugin` is our plugin, if it is enabled: it brings the hooks, unless there
    are others.
    """

    agent: str
    path: Path
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
    names_installation: bool = False
    addresses: tuple[str, ...] = ()
    autostart: bool = False
    status_line: LineState | None = None
    disabled_by: DisablingSetting | None = None
    reason: str | None = None
    scope: Scope = "user"
    plugin: str | None = None


def find_installed(
    agent: str, places: Places, options: SetupOptions, scope: Scope
) -> InstalledHooks:
    """Return what is installed in the settings of a scope; nothing is written."""
    spec = options.spec_of(agent)
    named = spec.file(places, scope, options.cwd)
    if named is None:
        return InstalledHooks(
            agent, spec.user_file(places), missing=tuple(spec.events), scope=scope
        )
    path = Path(os.path.abspath(named))
    if old := spec.old_file(places, scope, options.cwd):
        file = SettingsFile(spec, Path(os.path.abspath(old)), places, options)
        if has_entries(file):
            path = file.path
    try:
        if spec.is_extension:
            return _find_extension(spec, path, options.program, scope)
        if spec.is_toml:
            hooks = installed_toml_hooks(path, read_if_exists(path) or b"")
            return _describe_hooks(spec, path, hooks, options.program, scope)
        return _find_in_settings(SettingsFile(spec, path, places, options), scope)
    except InvalidSettings as error:
        return InstalledHooks(spec.agent, path, reason=str(error), scope=scope)


def remove_unused_launcher(places: Places, options: SetupOptions) -> None:
    """Remove the launcher if no agent's settings name it any more."""
    path = Path(options.program.launcher)
    if not path.exists():
        return
    with lock_shared_file(path, private=True), translate_errors(path, "removed"):
        if not _is_used(places, options):
            path.unlink(missing_ok=True)


def _find_extension(
    spec: InstallSpec, path: Path, program: Program, scope: Scope
) -> InstalledHooks:
    """Return our extension: a file that differs from ours is outdated as a whole."""
    content, events = read_if_exists(path), tuple(spec.events)
    plain, starting = (extension_source(spec, program, autostart) for autostart in (False, True))
    if content is None or not is_our_extension(content):
        return InstalledHooks(spec.agent, path, missing=events, scope=scope)
    return InstalledHooks(
        agent=spec.agent,
        path=path,
        events=events,
        outdated=() if content in (plain, starting) else events,
        names_installation=LAUNCHER_MARK not in content,
        autostart=content == starting,
        scope=scope,
    )


def _find_in_settings(file: SettingsFile, scope: Scope) -> InstalledHooks:
    spec = file.spec
    document = read_settings(file.path, spec.dialect)
    hooks = installed_hooks(document)
    found = _describe_hooks(spec, file.path, hooks, file.options.program, scope)
    plugin = str(spec.plugin[-1]) if spec.plugin and has_plugin(file) else None
    return msgspec.structs.replace(
        found,
        autostart=found.autostart if hooks else plugin is not None,
        status_line=_line_state(file, document, starts_daemon(hooks.get(START_EVENT))),
        disabled_by=find_disabling_setting(file),
        plugin=plugin,
    )


def _describe_hooks(
    spec: InstallSpec, path: Path, hooks: Mapping[str, Json], program: Program, scope: Scope
) -> InstalledHooks:
    """Return what is installed, by our hooks of each event."""
    autostart = starts_daemon(hooks.get(START_EVENT))
    wanted = {
        each.event: each.hook.to_json() for each in spec.wanted_hooks(program, None, autostart)
    }
    addresses = {event: daemon_address(hook) for event, hook in hooks.items()}
    return InstalledHooks(
        agent=spec.agent,
        path=path,
        events=tuple(hooks),
        missing=tuple(event for event in spec.events if event not in hooks),
        outdated=tuple(
            event
            for event, hook in hooks.items()
            if hook != wanted.get(event) and not addresses[event]
        ),
        names_installation=any(map(names_installation, hooks.values())),
        addresses=tuple(sorted({address for address in addresses.values() if address})),
        autostart=autostart and hooks[START_EVENT] == wanted[START_EVENT],
        scope=scope,
    )


def _line_state(file: SettingsFile, document: Document, autostart: bool) -> LineState | None:
    if has_our_status_line(document):
        command = document.find((STATUS_LINE, "command"))
        return "current" if command and command.scalar == file.status_line(autostart) else "old"
    return "gone" if file.entry and file.entry.status_line else None


def _is_used(places: Places, options: SetupOptions) -> bool:
    entries = load_manifest(options.state).items()
    if any(entry.agent in agent_names() and os.path.exists(path) for path, entry in entries):
        return True
    if mcp_records(options.state).load():
        return True
    scopes: tuple[Scope, ...] = ("user", "project")
    return any(
        find_installed(agent, places, options, scope).events
        for agent in agents_with_hooks(agent_names())
        for scope in scopes
    )
