"""The commands of installed hooks, and how to recognise ours."""

import os
import shlex
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from brimline.files.jsonc import Json

# What the launcher is run for; `start` is a session's start, and also starts the daemon. The next
# two start it if it died within the session. `mcp` runs no hook client, but the MCP server.
Kind: TypeAlias = Literal[
    "hook", "statusline", "start", "hook-restart", "statusline-restart", "mcp"
]

HOOK_NAME = "brimline"  # the name of our hooks in clients that name them

# Hooks of earlier versions name a client itself: setup replaces them.
COMPILED_CLIENT = "brimline-hook"
PYTHON_CLIENT = "brimline/hooks/client/client.py"
OLD_PYTHON_CLIENT = "brimline/hooks/client.py"

# In the state folder: what every installed hook runs. The compiled client, which hooks of earlier
# versions ran, has the same name.
LAUNCHER_NAME = COMPILED_CLIENT

URL_MARK = "by=brimline"  # marks an address as ours: others may have the same path

HOOK_TIMEOUT_S = 2  # after which a client gives up on a hook; ours gives up long before


class HookCommand(msgspec.Struct, frozen=True):
    """A command with absolute paths, word by word."""

    words: tuple[str, ...]

    @property
    def shell(self) -> str:
        return shlex.join(self.words)


class Program(msgspec.Struct, frozen=True):
    """The installed hook client, and the daemon's socket and spool; `compiled` if there is one.

    Agents run the `launcher`, whose path stays the same when the installation changes.
    """

    python: str
    script: str
    socket: str
    spool: str
    compiled: str | None = None

    @property
    def launcher(self) -> str:
        return str(Path(self.spool).with_name(LAUNCHER_NAME))

    def command(self, kind: Kind, agent: str) -> HookCommand:
        return HookCommand((self.launcher, agent, kind))


class Hook(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A hook in an agent's settings, in the order of its fields."""

    type: str | None = None
    name: str | None = None
    command: str | None = None
    args: list[str] | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    timeout: int

    def to_json(self) -> Json:
        value: Json = msgspec.to_builtins(self)
        return value


class HttpTarget(msgspec.Struct, frozen=True):
    """Where a client posts its hooks: the address of this user's daemon, and its hook token."""

    address: str
    token: str


def has_hook_token(settings: bytes) -> bool:
    """Return whether settings have HTTP hooks of ours, and so a token that others must not see."""
    return f"?{URL_MARK}".encode() in settings


def find_program(package: Path, python: str, state: Path, socket: Path) -> Program:
    """Return the hook client of an installation: the compiled one, or else Python's."""
    folder = package / "hooks" / "client"
    script, fast = folder / "client.py", folder / COMPILED_CLIENT
    compiled = str(fast) if os.access(fast, os.X_OK) else None
    return Program(python, str(script), str(socket), str(state / "spool"), compiled)


def is_our_hook(hook: Json) -> bool:
    """Return whether a hook or status line of an agent's settings is ours."""
    if not isinstance(hook, dict):
        return False
    if isinstance(url := hook.get("url"), str):
        return _has_our_mark(url)
    words = _command_words(hook)
    is_launcher = bool(words) and words[0].rpartition("/")[2] == LAUNCHER_NAME
    return is_launcher or names_installation(hook)


def names_installation(hook: Json) -> bool:
    """Return whether a hook is of an earlier version, which wrote the paths of the installation."""
    words = _command_words(hook) if isinstance(hook, dict) else []
    scripts = (f"/{PYTHON_CLIENT}", f"/{OLD_PYTHON_CLIENT}")
    return any(f"/{word}".endswith(scripts) for word in words)


def starts_daemon(hook: Json) -> bool:
    """Return whether a hook of ours, of any version, starts the daemon."""
    kind: Kind = "start"
    return isinstance(hook, dict) and kind in _command_words(hook)


def daemon_address(hook: Json) -> str | None:
    """Return the address of the daemon that a hook of ours posts to; None for a command."""
    url = hook.get("url") if isinstance(hook, dict) else None
    if not isinstance(url, str):
        return None
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _command_words(hook: "dict[str, Json]") -> list[str]:
    """The words of a hook's command, which is for a shell if the client has no `args`."""
    command, words = hook.get("command"), hook.get("args")
    if not isinstance(command, str):
        return []
    if not isinstance(words, list):
        return split_command(command)
    return [command, *(word for word in words if isinstance(word, str))]


def split_command(command: str) -> list[str]:
    """Split a shell's command; empty if a shell would not accept it either."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _has_our_mark(url: str) -> bool:
    try:
        return URL_MARK in urlsplit(url).query
    except ValueError:
        return False
