"""What setup writes into an agent's settings, and where they are."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents.hook_command import (
    HOOK_TIMEOUT_S,
    URL_MARK,
    Hook,
    HookCommand,
    HttpTarget,
    Program,
)
from brimline.agents.transcripts.source import Places
from brimline.files.jsonc import Dialect, Json, JsonPath

Scope: TypeAlias = Literal["user", "project"]

START_EVENT = "SessionStart"  # what every client calls the start of a session


def shell_hook(command: HookCommand) -> Hook:
    """Return a hook for a client that runs commands by a shell."""
    return Hook(type="command", command=command.shell, timeout=HOOK_TIMEOUT_S)


# The events of Codex, and of our own extensions, which use the same names.
STANDARD_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "Stop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
)


class WantedHook(msgspec.Struct, frozen=True):
    """The hook that setup installs for an event."""

    event: str
    hook: Hook


class DisableSetting(msgspec.Struct, frozen=True):
    """A setting that disables all hooks if its value is `off`.

    `names_path` is the setting with the names of single disabled hooks.
    """

    path: tuple[str, ...]
    off: bool
    names_path: tuple[str, ...] = ()


class McpPlace(msgspec.Struct, frozen=True):
    """A client's list of MCP servers, and the place of ours in it; `dialect` is None for TOML."""

    file: Path
    key: JsonPath
    dialect: Dialect | None = Dialect()


def stdio_server(command: HookCommand) -> dict[str, Json]:
    """Return an MCP server as most clients configure it."""
    program, *words = command.words
    return {"command": program, "args": list(words)}


class McpSpec(msgspec.Struct, frozen=True):
    """Where a client has its MCP servers, and how one is written.

    `place` returns None for a scope that has no list.
    """

    place: Callable[[Places, Scope, Path], McpPlace | None]
    server: Callable[[HookCommand], dict[str, Json]] = stdio_server


class InstallSpec(msgspec.Struct, frozen=True):
    """Where an agent's hooks are configured, and which hooks setup installs there.

    `user_file` is the user's file; `project_file` is below a project, None if the client reads none
    there. If a project also has a
    `local_file`, of this user alone, that takes precedence and setup writes there. With
    `is_extension` the whole file is ours: the client has extensions and no settings for hooks; a
    fork has the extension of another agent (`extension_of`). With
    `is_toml` each hook is a table `[[hooks]]` of a file in TOML. For
    `http_events` the client can post to an address. After `refresh_interval_s` the client draws its
    status line again by itself. `min_version` is the first version that accepts what we write.
    An older client than those of `newer_events` gets no hook for these events.
    `next_step` is what the user must do after the installation. `plugin` is a setting that is true
    if our plugin brings the hooks. `mcp` is None if the client has no MCP servers.
    """

    agent: str
    user_file: Callable[[Places], Path]
    project_file: str | None
    events: Sequence[str] = STANDARD_EVENTS
    newer_events: Mapping[str, tuple[int, ...]] = {}
    local_file: str | None = None
    disable_setting: DisableSetting | None = None
    hook: Callable[[HookCommand], Hook] = shell_hook
    dialect: Dialect = Dialect()
    is_extension: bool = False
    extension_of: str = ""
    is_toml: bool = False
    http_events: Sequence[str] = ()
    has_status_line: bool = False
    refresh_interval_s: int = 0
    min_version: tuple[int, ...] = ()
    next_step: str | None = None
    plugin: JsonPath | None = None
    mcp: McpSpec | None = None

    def for_version(self, version: tuple[int, ...]) -> "InstallSpec":
        """Return the spec for a version of the client; one that is unknown, (), is a new one."""
        if not version:
            return self
        newer = {event for event, since in self.newer_events.items() if version < since}
        events = [event for event in self.events if event not in newer]
        return msgspec.structs.replace(self, events=events)

    def file(self, places: Places, scope: Scope, cwd: Path) -> Path | None:
        """Return the file of a scope to which setup writes; None if the client reads none there."""
        if scope == "user":
            return self.user_file(places)
        name = self.local_file or self.project_file
        return None if name is None else cwd / name

    def old_file(self, places: Places, scope: Scope, cwd: Path) -> Path | None:
        """Return another file of a scope, to which earlier versions wrote; None if there is none.

        In the home folder a project's shared file is the user's own.
        """
        if scope == "user" or self.local_file is None or self.project_file is None:
            return None
        path = cwd / self.project_file
        is_users = os.path.realpath(path) == os.path.realpath(self.user_file(places))
        return None if is_users else path

    def wanted_hooks(
        self, program: Program, http: HttpTarget | None, autostart: bool = False
    ) -> list[WantedHook]:
        """Return all hooks: over HTTP if possible and `http` is given, else commands.

        With `autostart` every command also starts the daemon if none runs.
        """
        command = self.hook(program.command("hook-restart" if autostart else "hook", self.agent))
        first = self.hook(program.command("start", self.agent)) if autostart else command
        posted = self._http_hook(http, command.timeout) if http else command
        kinds = dict.fromkeys(self.http_events, posted) | {START_EVENT: first}
        return [WantedHook(event, kinds.get(event, command)) for event in self.events]

    def _http_hook(self, http: HttpTarget, timeout: int) -> Hook:
        url = f"{http.address}/hooks/{self.agent}?{URL_MARK}"
        headers = {"Authorization": f"Bearer {http.token}"}
        return Hook(type="http", url=url, headers=headers, timeout=timeout)
