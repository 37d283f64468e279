"""Installing our entries in an agent's settings file, and removing them."""

from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents.hook_command import HttpTarget, Program, daemon_address, starts_daemon
from brimline.agents.install_spec import START_EVENT, InstallSpec, Scope, WantedHook
from brimline.errors import InvalidSettings
from brimline.jsonc import BYTE_ORDER_MARK, WHITESPACE, Document, parse
from brimline.setup.entries import (
    ReplacedStatusLine,
    find_user_status_line,
    has_our_entries,
    has_our_status_line,
    installed_hooks,
    restore_status_line,
    set_hooks,
    set_status_line,
)
from brimline.setup.manifest import (
    LinePosition,
    ManifestEntry,
    StatusLine,
    hash_content,
    load_manifest,
)
from brimline.setup.shared_file import backup_path, read_if_exists
from brimline.transcripts.source import Places

Transport: TypeAlias = Literal["command", "http"]  # how hooks reach the daemon

NO_DAEMON_ADDRESS = "HTTP hooks need a daemon that has run here once: `brimline serve --background`"
PROJECT_IS_SHARED = (
    "HTTP hooks carry a token, and a project's settings may be shared: use --transport command"
)


class SetupOptions(msgspec.Struct, frozen=True):
    """What the user asks for; None keeps what is installed, or is the default.

    `autostart`: the SessionStart hook starts the daemon if none runs; `default_autostart` is its
    default. The default of `transport` is "command", that of `mode` "append". `http_target` is None
    if no daemon has run yet.
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


class FileChange(msgspec.Struct, frozen=True):
    """The new content of a file (None: no file) and its manifest entry.

    `is_first`: the file has had nothing of ours.
    """

    after: bytes | None
    record: ManifestEntry | None = None
    is_first: bool = False


class SettingsFile(msgspec.Struct, frozen=True):
    """An agent's settings file, and what to do with it."""

    recipe: InstallSpec
    path: Path
    places: Places
    options: SetupOptions

    @property
    def state(self) -> Path:
        return self.options.state

    @property
    def remove(self) -> bool:
        return self.options.remove

    @property
    def status_line(self) -> str:
        return self.options.program.command("statusline", self.recipe.agent).shell

    @property
    def record(self) -> ManifestEntry | None:
        return load_manifest(self.options.state).get(str(self.path))

    def plan_change(self, before: bytes | None) -> FileChange:
        """Return the change of a file with this content; raises InvalidSettings."""
        if not self.options.remove:
            return _install(self, before)
        return FileChange(None if before is None else _uninstall(self, before))


def parse_settings(file: SettingsFile, data: bytes | None) -> Document:
    """Parse a settings file; a missing or empty one is an empty object."""
    name = str(file.path)
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        position = f"byte {error.start + 1}"
        raise InvalidSettings(name, position, "expected text in UTF-8") from error
    if not text.strip(WHITESPACE + BYTE_ORDER_MARK):
        text += "{}\r\n" if "\r\n" in text else "{}\n"
    return parse(text, file.recipe.dialect, name)


def _install(file: SettingsFile, before: bytes | None) -> FileChange:
    document = parse_settings(file, before)
    is_first, previous = not has_our_entries(document), file.record
    changed = set_hooks(document, _wanted_hooks(file, document))
    status_line = None
    if file.recipe.has_status_line:
        changed, own = _set_status_line(file, document, changed)
        mode = previous.status_line.mode if previous and previous.status_line else "append"
        status_line = StatusLine(own, file.options.mode or mode)
    after = _encode(changed)
    record = ManifestEntry(
        file.recipe.agent,
        file.options.scope,
        status_line=status_line,
        made=previous.made if previous else None,
    )
    if is_first:
        record = _with_hashes(record, None if before is None else hash_content(before), after)
    elif previous and before and previous.wrote == hash_content(before):
        record = _with_hashes(record, previous.before, after)
    return FileChange(after, record, is_first)


def _wanted_hooks(file: SettingsFile, document: Document) -> list[WantedHook]:
    """Return every hook as the options say, else as it is installed."""
    options, hooks = file.options, installed_hooks(document)
    transport, autostart = options.transport, options.autostart
    if transport is None:
        transport = "http" if any(map(daemon_address, hooks.values())) else "command"
    if autostart is None:
        autostart = (
            starts_daemon(hooks[START_EVENT]) if START_EVENT in hooks else options.default_autostart
        )
    http = _http_target(file) if transport == "http" and file.recipe.http_events else None
    return file.recipe.wanted_hooks(options.program, http, autostart)


def _http_target(file: SettingsFile) -> HttpTarget:
    if file.options.scope == "project":
        raise InvalidSettings(str(file.path), "hooks", PROJECT_IS_SHARED)
    if file.options.http_target is None:
        raise InvalidSettings(str(file.path), "hooks", NO_DAEMON_ADDRESS)
    return file.options.http_target


def _with_hashes(record: ManifestEntry, before: str | None, after: bytes) -> ManifestEntry:
    """Add the hashes that allow to restore the backup: nothing else has changed the file."""
    return msgspec.structs.replace(record, before=before, wrote=hash_content(after))


def _set_status_line(
    file: SettingsFile, document: Document, changed: Document
) -> tuple[Document, ReplacedStatusLine | None]:
    changed, own = set_status_line(changed, file.status_line)
    if own is None and has_our_status_line(document):
        own = _recorded_status_line(file)
    if file.options.scope == "project" and (own is None or own.raw is None):
        own = _inherited_status_line(file)
    return changed, own


def _uninstall(file: SettingsFile, before: bytes) -> bytes | None:
    record = file.record
    if record and record.wrote == hash_content(before):
        if record.before is None:
            return None
        original = read_if_exists(backup_path(file.path))
        if original is not None and hash_content(original) == record.before:
            return original
    document = parse_settings(file, before)
    if not has_our_entries(document):
        return before
    without_hooks = set_hooks(document, (), _parse_backup(file))
    return _encode(restore_status_line(without_hooks, _recorded_status_line(file)))


def _recorded_status_line(file: SettingsFile) -> ReplacedStatusLine | None:
    """Return the user's status line from the manifest, else from the backup."""
    record = file.record
    if record is not None:
        return record.status_line.own if record.status_line else None
    backup = _parse_backup(file)
    return find_user_status_line(backup) if backup else None


def _parse_backup(file: SettingsFile) -> Document | None:
    with suppress(InvalidSettings):
        return parse_settings(file, read_if_exists(backup_path(file.path)))
    return None


def _inherited_status_line(file: SettingsFile) -> ReplacedStatusLine | None:
    """Return the status line of the user's settings, which a project's overrides."""
    path = file.recipe.user_file(file.places)
    user = msgspec.structs.replace(file, path=path)
    with suppress(InvalidSettings):
        document = parse_settings(user, read_if_exists(path))
        own = (
            _recorded_status_line(user)
            if has_our_status_line(document)
            else find_user_status_line(document)
        )
        return own and ReplacedStatusLine(own.command)
    return None


def _encode(document: Document) -> bytes:
    try:
        return document.text.encode("utf-8")
    except UnicodeEncodeError as error:
        problem = "the path of Brimline's hook is not UTF-8, and cannot be written as JSON"
        raise InvalidSettings(document.name, "hooks", problem) from error
