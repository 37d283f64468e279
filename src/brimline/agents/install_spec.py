"""What is written into an agent's settings, and where they are."""

from collections.abc import Callable, Sequence
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
from brimline.jsonc import Dialect
from brimline.transcripts.source import Places

Scope: TypeAlias = Literal["user", "project"]

START_EVENT = "SessionStart"  # what every client calls the start of a session


def shell_hook(command: HookCommand) -> Hook:
    """A hook of a client that gives the command to a shell."""
    return Hook(type="command", command=command.shell, timeout=HOOK_TIMEOUT_S)


# An extension names its events as other clients name their hooks.
EXTENSION_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "Stop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
)


class WantedHook(msgspec.Struct, frozen=True):
    """A hook that an event is to have."""

    event: str
    hook: Hook


class DisableSetting(msgspec.Struct, frozen=True):
    """A setting with which a client runs no hook where it is `off`.

    `names` is where a client has the names of single hooks that it does not run.
    """

    path: tuple[str, ...]
    off: bool
    names_path: tuple[str, ...] = ()


class InstallSpec(msgspec.Struct, frozen=True):
    """An agent that has hooks.

    `user` finds the user's own file, `project` is the file's place below a project; what is in
    `local` goes before that. The file is an `extension`, all of it ours, where the client has
    extensions and no settings for hooks. `switch` switches all hooks off.
    `over_http` are the events at which the client posts to an address. `oldest` is the first
    version that takes what we write. `then` is what is left for the user to do.
    """

    agent: str
    user_file: Callable[[Places], Path]
    project_file: str
    events: Sequence[str]
    local_file: str | None = None
    disable_setting: DisableSetting | None = None
    hook: Callable[[HookCommand], Hook] = shell_hook
    dialect: Dialect = Dialect()
    is_extension: bool = False
    http_events: Sequence[str] = ()
    has_status_line: bool = False
    min_version: tuple[int, ...] = ()
    next_step: str | None = None

    def file(self, places: Places, scope: Scope, cwd: Path) -> Path:
        """The settings of a scope."""
        return self.user_file(places) if scope == "user" else cwd / self.project_file

    def wanted_hooks(
        self, program: Program, http: HttpTarget | None, autostart: bool = False
    ) -> list[WantedHook]:
        """Every hook; with a target for HTTP those go there that can. One may start the daemon."""
        command = self.hook(program.command("hook", self.agent))
        first = self.hook(program.command("start", self.agent)) if autostart else command
        posted = self._http_hook(http, command.timeout) if http else command
        kinds = dict.fromkeys(self.http_events, posted) | {START_EVENT: first}
        return [WantedHook(event, kinds.get(event, command)) for event in self.events]

    def _http_hook(self, http: HttpTarget, timeout: int) -> Hook:
        url = f"{http.address}/hooks/{self.agent}?{URL_MARK}"
        headers = {"Authorization": f"Bearer {http.token}"}
        return Hook(type="http", url=url, headers=headers, timeout=timeout)
