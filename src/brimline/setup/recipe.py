"""What is written into an agent's settings, and where they are."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.jsonc import Dialect
from brimline.setup.command import SECONDS, URL_MARK, Hook, HookCommand, HttpTarget, Program
from brimline.setup.entries import WantedHook
from brimline.transcripts.source import Places

Scope: TypeAlias = Literal["user", "project"]

START = "SessionStart"
"""What every client calls the start of a session."""


def by_shell(command: HookCommand) -> Hook:
    """A hook of a client that gives the command to a shell."""
    return Hook(type="command", command=command.shell, timeout=SECONDS)


class Switch(msgspec.Struct, frozen=True):
    """A setting with which a client runs no hook where it is `off`.

    `names` is where a client has the names of single hooks that it does not run.
    """

    way: tuple[str, ...]
    off: bool
    names: tuple[str, ...] = ()


class Recipe(msgspec.Struct, frozen=True):
    """An agent that has hooks.

    `user` finds the user's own file, `project` is the file's place below a project; what is in
    `local` goes before that. The file is an `extension`, all of it ours, where the client has
    extensions and no settings for hooks. `switch` switches all hooks off.
    `over_http` are the events at which the client posts to an address. `oldest` is the first
    version that takes what we write. `then` is what is left for the user to do.
    """

    agent: str
    user: Callable[[Places], Path]
    project: str
    events: Sequence[str]
    local: str | None = None
    switch: Switch | None = None
    hook: Callable[[HookCommand], Hook] = by_shell
    dialect: Dialect = Dialect()
    extension: bool = False
    over_http: Sequence[str] = ()
    has_status_line: bool = False
    oldest: tuple[int, ...] = ()
    then: str | None = None

    def file(self, places: Places, scope: Scope, cwd: Path) -> Path:
        """The settings of a scope."""
        return self.user(places) if scope == "user" else cwd / self.project

    def wanted(
        self, program: Program, http: HttpTarget | None, autostart: bool = False
    ) -> list[WantedHook]:
        """Every hook; with a target for HTTP those go there that can. One may start the daemon."""
        command = self.hook(program.command("hook", self.agent))
        first = self.hook(program.command("start", self.agent)) if autostart else command
        posted = self._posted(http, command.timeout) if http else command
        kinds = dict.fromkeys(self.over_http, posted) | {START: first}
        return [WantedHook(event, kinds.get(event, command)) for event in self.events]

    def _posted(self, http: HttpTarget, timeout: int) -> Hook:
        url = f"{http.address}/hooks/{self.agent}?{URL_MARK}"
        headers = {"Authorization": f"Bearer {http.token}"}
        return Hook(type="http", url=url, headers=headers, timeout=timeout)
