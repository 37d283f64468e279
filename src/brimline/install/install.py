"""Installing our entries in an agent's settings file, removing them, and what disables them."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents import get_agent
from brimline.agents.hook_command import (
    HOOK_NAME,
    HttpTarget,
    Program,
    daemon_address,
    starts_daemon,
)
from brimline.agents.install_spec import START_EVENT, InstallSpec, Scope, WantedHook
from brimline.agents.transcripts.source import Places
from brimline.errors import InvalidSettings
from brimline.files.jsonc import BYTE_ORDER_MARK, WHITESPACE, Dialect, Document, JsonPath, parse
from brimline.install.created_files import is_created
from brimline.install.entries import (
    INTERVAL,
    ReplacedStatusLine,
    find_user_status_line,
    has_our_entries,
    has_our_status_line,
    has_refresh_interval,
    installed_hooks,
    restore_status_line,
    set_hooks,
    set_refresh_interval,
    set_status_line,
)
from brimline.install.manifest import (
    LinePosition,
    ManifestEntry,
    StatusLine,
    hash_content,
    load_manifest,
    restore_original,
)
from brimline.install.shared_file import backup_path, read_if_exists

Transport: TypeAlias = Literal["command", "http"]  # how hooks reach the daemon

NO_DAEMON_ADDRESS = (
    "HTTP hooks need the daemon's address: start it once with `brimline serve --background`"
)
PROJECT_IS_SHARED = (
    "HTTP hooks carry a token, and a project's settings may be shared: use --transport command"
)


class SetupOptions(msgspec.Struct, frozen=True):
    """What the user asks for; None keeps what is installed, or is the default.

    `autostart`: hooks and the status line start the daemon if none runs; `default_autostart` is its
    default. The default of `transport` is "command", that of `mode` "append". `http_target` is None
    if no daemon has run yet. `versions` are those of the clients that are known.
    """

    program: Program
    state: Path
    cwd: Path
    remove: bool = False
    scope: Scope = "user"
    mode: LinePosition | None = None
    transport: Transport | None = None
    http_target: HttpTarget | None = None
    autostart: bool | None = None
    default_autostart: bool = False
    versions: Mapping[str, tuple[int, ...]] = {}

    def spec_of(self, agent: str) -> InstallSpec:
        """Return what setup writes for the version of an agent's client."""
        return get_agent(agent).install_spec.for_version(self.versions.get(agent, ()))


class FileChange(msgspec.Struct, frozen=True):
    """The new content of a file (None: no file) and its manifest entry.

    `is_first`: the file has had nothing of ours.
    """

    after: bytes | None
    entry: ManifestEntry | None = None
    is_first: bool = False


class SettingsFile(msgspec.Struct, frozen=True):
    """An agent's settings file, and what to do with it."""

    spec: InstallSpec
    path: Path
    places: Places
    options: SetupOptions

    @property
    def state(self) -> Path:
        return self.options.state

    @property
    def remove(self) -> bool:
        return self.options.remove

    def status_line(self, autostart: bool) -> str:
        kind = "statusline-restart" if autostart else "statusline"
        return self.options.program.command(kind, self.spec.agent).shell

    @property
    def entry(self) -> ManifestEntry | None:
        return load_manifest(self.options.state).get(str(self.path))

    def plan_change(self, before: bytes | None) -> FileChange:
        """Return the change of a file with this content; raises InvalidSettings."""
        if not self.remove:
            return _install(self, before)
        entry = self.entry
        if entry and not entry.wrote(before):
            entry = None
        return FileChange(
            restore_original(self.path, before, entry, lambda content: _uninstall(self, content))
        )


def read_settings(path: Path, dialect: Dialect) -> Document:
    """Read and parse a settings file; raises InvalidSettings."""
    return parse_settings(path, dialect, read_if_exists(path))


def has_entries(file: SettingsFile) -> bool:
    """Return whether setup has changed a file; False if that cannot be read."""
    with suppress(InvalidSettings):
        return file.entry is not None or has_our_entries(
            read_settings(file.path, file.spec.dialect)
        )
    return False


def parse_settings(path: Path, dialect: Dialect, data: bytes | None) -> Document:
    """Parse a settings file; a missing or empty one is an empty object."""
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        position = f"byte {error.start + 1}"
        raise InvalidSettings(str(path), position, "expected text in UTF-8") from error
    if not text.strip(WHITESPACE + BYTE_ORDER_MARK):
        text += "{}\r\n" if "\r\n" in text else "{}\n"
    return parse(text, dialect, str(path))


def _install(file: SettingsFile, before: bytes | None) -> FileChange:
    document = parse_settings(file.path, file.spec.dialect, before)
    is_first, old = not has_our_entries(document), file.entry
    earlier = _earlier_file(file) if is_first else None
    previous = old or (earlier and earlier.entry)
    installed = read_settings(earlier.path, earlier.spec.dialect) if earlier else document
    autostart = _wanted_autostart(file, installed)
    changed = set_hooks(document, _wanted_hooks(file, document, autostart))
    status_line = None
    if file.spec.has_status_line:
        changed, own = _set_status_line(file, document, changed, autostart)
        mode = previous.status_line.mode if previous and previous.status_line else "append"
        changed, interval = _set_interval(file, document, changed)
        status_line = StatusLine(own, file.options.mode or mode, interval)
    after = _encode(changed)
    # With both hashes the backup can be restored: nothing else has changed the file.
    original_hash = written_hash = None
    if is_first:
        original_hash = None if before is None else hash_content(before)
        written_hash = hash_content(after)
    elif old and old.wrote(before):
        original_hash, written_hash = old.original_hash, hash_content(after)
    entry = ManifestEntry(
        file.spec.agent,
        file.options.scope,
        original_hash,
        written_hash,
        status_line,
        previous.created_folder if previous else None,
        before is None or is_created(file.state, file.path),
    )
    return FileChange(after, entry, is_first)


def _earlier_file(file: SettingsFile) -> SettingsFile | None:
    """Return the file of a project to which an earlier version wrote; None if none did."""
    path = file.spec.old_file(file.places, file.options.scope, file.options.cwd)
    earlier = path and msgspec.structs.replace(file, path=Path(os.path.abspath(path)))
    return earlier if earlier and has_entries(earlier) else None


def _wanted_autostart(file: SettingsFile, document: Document) -> bool:
    """Return whether to start the daemon: as the options say, else as it is installed."""
    if file.options.autostart is not None:
        return file.options.autostart
    start = installed_hooks(document).get(START_EVENT)
    return file.options.default_autostart if start is None else starts_daemon(start)


def _wanted_hooks(file: SettingsFile, document: Document, autostart: bool) -> list[WantedHook]:
    """Return every hook as the options say, else as it is installed; none beside our plugin."""
    if has_plugin(file):
        return []
    options, transport = file.options, file.options.transport
    if transport is None:
        hooks = installed_hooks(document).values()
        transport = "http" if any(map(daemon_address, hooks)) else "command"
    if transport == "command" or not file.spec.http_events:
        return file.spec.wanted_hooks(options.program, None, autostart)
    if options.scope == "project":
        raise InvalidSettings(str(file.path), "hooks", PROJECT_IS_SHARED)
    if options.http_target is None:
        raise InvalidSettings(str(file.path), "hooks", NO_DAEMON_ADDRESS)
    return file.spec.wanted_hooks(options.program, options.http_target, autostart)


def _set_status_line(
    file: SettingsFile, document: Document, changed: Document, autostart: bool
) -> tuple[Document, ReplacedStatusLine | None]:
    changed, own = set_status_line(changed, file.status_line(autostart))
    if own is None and has_our_status_line(document):
        own = _recorded_status_line(file)
    if file.options.scope == "project" and (own is None or own.raw is None):
        own = _inherited_status_line(file)
    return changed, own


def _set_interval(
    file: SettingsFile, document: Document, changed: Document
) -> tuple[Document, int | None]:
    """Add an interval unless the user has set one; return it if it is ours, also from earlier."""
    # A line that is drawn while the daemon starts would otherwise stay until the next call.
    seconds = file.spec.refresh_interval_s
    changed, is_ours = set_refresh_interval(changed, seconds)
    if not is_ours and has_our_status_line(document):
        recorded = _recorded_interval(file)
        is_ours = has_refresh_interval(changed, recorded)
        seconds = recorded or seconds
    return changed, seconds if is_ours else None


def _uninstall(file: SettingsFile, before: bytes) -> bytes | None:
    document = parse_settings(file.path, file.spec.dialect, before)
    if not has_our_entries(document):
        return before
    without_hooks = set_hooks(document, (), _read_backup(file))
    own, interval = _recorded_status_line(file), _recorded_interval(file)
    restored = restore_status_line(without_hooks, own, interval)
    is_new = file.entry is not None and file.entry.is_new_file
    return None if is_new and restored.is_empty else _encode(restored)


def _recorded_status_line(file: SettingsFile) -> ReplacedStatusLine | None:
    """Return the user's status line from the manifest, else from the backup."""
    if entry := file.entry:
        return entry.status_line.own if entry.status_line else None
    backup = _read_backup(file)
    return find_user_status_line(backup) if backup else None


def _recorded_interval(file: SettingsFile) -> int | None:
    """Return the interval that we added, from the manifest; without it, if the backup has none."""
    if entry := file.entry:
        return entry.status_line.interval if entry.status_line else None
    backup = _read_backup(file)
    is_users = backup is None or backup.find(INTERVAL) is not None
    return None if is_users else file.spec.refresh_interval_s


def _read_backup(file: SettingsFile) -> Document | None:
    with suppress(InvalidSettings):
        return read_settings(backup_path(file.path), file.spec.dialect)
    return None


def _inherited_status_line(file: SettingsFile) -> ReplacedStatusLine | None:
    """Return the status line that a project's file overrides: of its shared file, or the user's."""
    spec = file.spec
    in_project = [file.options.cwd / spec.project_file] if spec.project_file else []
    for path in (*in_project, spec.user_file(file.places)):
        other = msgspec.structs.replace(file, path=Path(os.path.abspath(path)))
        with suppress(InvalidSettings):
            document = read_settings(other.path, spec.dialect)
            is_ours = has_our_status_line(document)
            own = _recorded_status_line(other) if is_ours else find_user_status_line(document)
            if own is not None:
                return ReplacedStatusLine(own.command)
    return None


def _encode(document: Document) -> bytes:
    try:
        return document.text.encode("utf-8")
    except UnicodeEncodeError as error:
        reason = "the path of Brimline's hook is not UTF-8, and cannot be written as JSON"
        raise InvalidSettings(document.name, "hooks", reason) from error


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


def has_plugin(file: SettingsFile) -> bool:
    """Return whether our plugin brings the hooks: the file nearest to the project decides."""
    if file.spec.plugin is None:
        return False
    values = (document.find(file.spec.plugin) for _, document in _documents(file))
    return [value.scalar for value in values if value is not None][-1:] == [True]


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
