"""The daemon as a service of the user's: a systemd unit on Linux, a launchd agent on macOS."""

import os
import plistlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents import all_agents
from brimline.errors import InvalidSettings
from brimline.hooks.client.autostart import COMMAND, LOG
from brimline.setup.managed_file import Beside
from brimline.transcripts.source import Places

Words: TypeAlias = tuple[str, ...]
Manager: TypeAlias = Literal["systemd", "launchd"]

UNIT = "brimline.service"
LABEL = "brimline.serve"
PATIENCE = 20.0
"""So many seconds a service manager may take to do what it is told."""

VARIABLES = (
    "PATH",
    "LANG",
    "BRIMLINE_CONFIG",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)
"""What a service manager does not know of the user: where things are."""


def _variables() -> Iterator[str]:
    yield from VARIABLES
    for agent in all_agents():
        yield from agent.capabilities.location_variables


class Service(msgspec.Struct, frozen=True):
    """The file of a service, and what its manager is told.

    `active` succeeds where it runs. `enable` follows the writing of the file, `start` that; what is
    `renewed` may fail, where nothing is there yet. `stop` comes before the file is taken away,
    `forget` after.
    """

    manager: Manager
    path: Path
    text: bytes
    active: Words
    enable: tuple[Words, ...]
    renewed: tuple[Words, ...]
    start: Words
    stop: tuple[Words, ...]
    forget: tuple[Words, ...]


class Ran(msgspec.Struct, frozen=True):
    """A command that was run, and why it failed, if it did."""

    words: Words
    problem: str | None = None


def service(platform: str, places: Places, state: Path, python: str) -> Service:
    """The service of this system's manager; InvalidSettings for a path that it cannot be told."""
    words = (python, *COMMAND)
    env = {**_env(places.env), "BRIMLINE_STATE_DIR": str(state)}
    if platform == "darwin":
        return _launchd(places.home, words, env, state)
    return _systemd(places, words, env)


def beside(made: Service, state: Path, remove: bool) -> Beside:
    """The service's file as setup writes it, or takes it away."""
    return Beside(
        name="service",
        path=made.path,
        state=state,
        remove=remove,
        put=lambda before: made.text,
        take=lambda before: None,
        whole=True,
    )


def run(commands: Sequence[Words], env: Mapping[str, str]) -> list[Ran]:
    """Tell the manager; one that does not answer, or refuses, is told with the command."""
    return [Ran(words, _problem(words, env)) for words in commands]


def _problem(words: Words, env: Mapping[str, str]) -> str | None:
    program = shutil.which(words[0], path=env.get("PATH"))
    if program is None:
        return f"there is no {words[0]} here"
    try:
        done = subprocess.run(
            [program, *words[1:]],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[0] if said else f"exit code {done.returncode}"


def _env(env: Mapping[str, str]) -> dict[str, str]:
    return {
        name: env[name] for name in _variables() if env.get(name, "").isprintable() and name in env
    }


# systemd.


def _systemd(places: Places, words: Words, env: Mapping[str, str]) -> Service:
    config = Path(places.env.get("XDG_CONFIG_HOME") or places.home / ".config")
    path = config / "systemd" / "user" / UNIT
    tell = ("systemctl", "--user")
    reload = (*tell, "daemon-reload")
    return Service(
        manager="systemd",
        path=path,
        text=_unit(path, words, env).encode(),
        active=(*tell, "is-active", "--quiet", UNIT),
        enable=((*tell, "enable", UNIT), reload),
        renewed=(),
        start=(*tell, "restart", UNIT),
        stop=((*tell, "stop", UNIT), (*tell, "disable", UNIT)),
        forget=(reload,),
    )


def _unit(path: Path, words: Words, env: Mapping[str, str]) -> str:
    program, *rest = words
    if any(sign in program for sign in "\"'\\"):
        problem = f"systemd takes no quote and no backslash in a program's path: got {program}"
        raise InvalidSettings(str(path), "service", problem)
    command = " ".join([_quoted(path, program), *rest])
    lines = [
        "# Written by `brimline setup --service`; `--service --remove` takes it away.",
        "[Unit]",
        "Description=Brimline, which watches the context windows of AI coding agents",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={command}",
        *(f"Environment={_quoted(path, f'{name}={value}')}" for name, value in env.items()),
        "WorkingDirectory=/",
        "Restart=on-failure",
        "RestartSec=5",
        "# Another daemon has the place: to try again would not help.",
        "RestartPreventExitStatus=2",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    return "\n".join(lines)


def _quoted(path: Path, text: str) -> str:
    """A word as a unit has it."""
    if not text.isprintable():
        raise InvalidSettings(str(path), "service", f"a unit cannot be told {text!r}")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


# launchd.


def _launchd(home: Path, words: Words, env: Mapping[str, str], state: Path) -> Service:
    path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    domain = f"gui/{os.getuid()}"
    gone = ("launchctl", "bootout", f"{domain}/{LABEL}")
    return Service(
        manager="launchd",
        path=path,
        text=_plist(path, words, env, state),
        active=("launchctl", "print", f"{domain}/{LABEL}"),
        enable=(("launchctl", "enable", f"{domain}/{LABEL}"),),
        renewed=(gone,),
        start=("launchctl", "bootstrap", domain, str(path)),
        stop=(gone,),
        forget=(),
    )


def _plist(path: Path, words: Words, env: Mapping[str, str], state: Path) -> bytes:
    """The agent; where another daemon has the place, it is tried again now and then."""
    log = str(state / LOG)
    told = {
        "Label": LABEL,
        "ProgramArguments": list(words),
        "EnvironmentVariables": dict(env),
        "WorkingDirectory": "/",
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    try:
        return plistlib.dumps(told, sort_keys=False)
    except (ValueError, UnicodeEncodeError) as error:
        raise InvalidSettings(str(path), "service", str(error)) from error
