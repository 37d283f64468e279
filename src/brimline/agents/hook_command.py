"""What is installed: the hook's command, and how ours is told from others'."""

import os
import shlex
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from brimline.jsonc import Json

# What the hook client is run for; `start` is a session's start, which starts the daemon too.
Kind: TypeAlias = Literal["hook", "statusline", "start"]

HOOK_NAME = "brimline"  # the name of our hooks in clients that name them

COMPILED_CLIENT = "brimline-hook"
PYTHON_CLIENT = "brimline/hooks/client/client.py"
OLD_PYTHON_CLIENT = "brimline/hooks/client.py"  # where it was: setup replaces commands that name it

# What a shell checks before it becomes Python's own client: Python fails with an error if it or its
# script is gone, or if stdin is a directory. An exit code of 2 keeps an agent from going on.
SHELL_GUARD = (
    '[ -x "$0" ] && [ -r "$3" ] && ! [ -d /dev/stdin ] || exit 0; exec "$0" "$@" 2>/dev/null'
)

URL_MARK = "by=brimline"  # marks an address as ours: others may have the same path

HOOK_TIMEOUT_S = 2  # how long a client waits for a hook at most; ours gives up long before


class HookCommand(msgspec.Struct, frozen=True):
    """A command with absolute paths, word by word."""

    words: tuple[str, ...]

    @property
    def shell(self) -> str:
        """The command for a client that gives it to a shell."""
        return shlex.join(self.words)


class Program(msgspec.Struct, frozen=True):
    """The hook client that is installed here, and where it finds the daemon and the spool.

    `fast` is the compiled one, where there is one.
    """

    python: str
    script: str
    socket: str
    spool: str
    compiled: str | None = None

    @property
    def python_words(self) -> tuple[str, ...]:
        """Python's own client."""
        return self.python, "-I", "-S", self.script

    @property
    def client_words(self) -> tuple[str, ...]:
        """How the client is run; the compiled one is told of Python to start the daemon by it."""
        if self.compiled is None:
            return "/bin/sh", "-c", SHELL_GUARD, *self.python_words
        return self.compiled, self.python, self.script

    def command(self, kind: Kind, agent: str) -> HookCommand:
        """What an agent is to run."""
        return HookCommand((*self.client_words, kind, agent, self.socket, self.spool))


class Hook(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A hook as it stands in an agent's settings, in the order of its fields."""

    type: str
    name: str | None = None
    command: str | None = None
    args: list[str] | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    timeout: int

    def to_json(self) -> Json:
        """As JSON has it."""
        told: Json = msgspec.to_builtins(self)
        return told


class HttpTarget(msgspec.Struct, frozen=True):
    """Where a client posts its hooks: the address of this user's daemon, and the token of hooks."""

    address: str
    token: str


def has_hook_token(settings: bytes) -> bool:
    """Return whether settings have hooks of ours that post: their token is not for others."""
    return f"?{URL_MARK}".encode() in settings


def find_program(package: Path, python: str, state: Path, socket: Path) -> Program:
    """The hook client of an installation: the compiled one where there is one, else Python's."""
    folder = package / "hooks" / "client"
    script, fast = folder / "client.py", folder / COMPILED_CLIENT
    compiled = str(fast) if os.access(fast, os.X_OK) else None
    return Program(python, str(script), str(socket), str(state / "spool"), compiled)


def is_our_hook(told: Json) -> bool:
    """Whether a hook, or a status line, as it stands in the settings, is one of ours."""
    if not isinstance(told, dict):
        return False
    url = told.get("url")
    if isinstance(url, str):
        return URL_MARK in _query(url)
    return _runs_our_client(_command_words(told))


def starts_daemon(told: Json) -> bool:
    """Whether a hook of ours, whichever installation's, starts the daemon."""
    kind: Kind = "start"
    return isinstance(told, dict) and _command_words(told)[-4:-3] == [kind]


def daemon_address(told: Json) -> str | None:
    """The address of the daemon that a hook of ours posts to; None where it is a command."""
    url = told.get("url") if isinstance(told, dict) else None
    if not isinstance(url, str):
        return None
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _command_words(told: "dict[str, Json]") -> list[Json]:
    """What a hook runs, word by word; a client that takes no `args` gives it to a shell."""
    command, words = told.get("command"), told.get("args")
    if not isinstance(command, str):
        return []
    return [command, *words] if isinstance(words, list) else [*split_command(command)]


def split_command(command: str) -> list[str]:
    """The words of a shell's command; none where a shell would not take it either."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _runs_our_client(words: list[Json]) -> bool:
    texts = [word for word in words if isinstance(word, str)]
    first = texts[0] if texts else ""
    return first.rpartition("/")[2] == COMPILED_CLIENT or any(_is_script(word) for word in texts)


def _is_script(word: str) -> bool:
    return f"/{word}".endswith((f"/{PYTHON_CLIENT}", f"/{OLD_PYTHON_CLIENT}"))


def _query(url: str) -> str:
    try:
        return urlsplit(url).query
    except ValueError:
        return ""
