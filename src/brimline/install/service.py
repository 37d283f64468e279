"""The daemon as a user service: a systemd unit on Linux, a launchd agent on macOS."""

import os
import plistlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents import all_agents
from brimline.agents.transcripts.source import Places
from brimline.errors import InvalidSettings
from brimline.hooks.client.autostart import LOG_NAME, SERVE_ARGUMENTS
from brimline.install.setup_file import SetupFile

Words: TypeAlias = tuple[str, ...]
Manager: TypeAlias = Literal["systemd", "launchd"]

UNIT_NAME = "brimline.service"
LABEL = "brimline.serve"
COMMAND_TIMEOUT_S = 20.0

# A service manager does not pass them on.
USER_VARIABLES = ("PATH", "LANG", "BRIMLINE_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME")

UNIT_HEAD = """\
# Written by `brimline setup --service`; `--service --remove` removes it.
[Unit]
Description=Brimline, which watches the context windows of AI coding agents

[Service]
Type=exec"""
UNIT_TAIL = """\
WorkingDirectory=/
Restart=on-failure
RestartSec=5
# 2: another daemon runs, so do not retry.
RestartPreventExitStatus=2

[Install]
WantedBy=default.target
"""


class Service(msgspec.Struct, frozen=True):
    """The file of a service, and the commands of its manager.

    `check_active` succeeds if it runs. After the file is written, `enable`, `before_start` (which
    may fail) and `start` are run. `stop` is run before the file is removed, `after_removal` after.
    """

    manager: Manager
    path: Path
    text: bytes
    check_active: Words
    enable: tuple[Words, ...]
    before_start: tuple[Words, ...]
    start: Words
    stop: tuple[Words, ...]
    after_removal: tuple[Words, ...]


class CommandResult(msgspec.Struct, frozen=True):
    """A command that was run; `reason` is why it failed."""

    words: Words
    reason: str | None = None


def find_service(platform: str, places: Places, state: Path, python: str) -> Service:
    """Return the service for this system's manager; raises InvalidSettings for unusable paths."""
    words = (python, *SERVE_ARGUMENTS)
    names = [*USER_VARIABLES]
    for agent in all_agents():
        names += agent.capabilities.location_variables
    passed = {name: places.env[name] for name in names if name in places.env}
    env = {name: value for name, value in passed.items() if value.isprintable()}
    env["BRIMLINE_STATE_DIR"] = str(state)
    if platform == "darwin":
        return _launchd(places.home, words, env, state)
    return _systemd(places, words, env)


def service_file(service: Service, state: Path, remove: bool) -> SetupFile:
    """Return the change that writes or removes the file of a service."""
    return SetupFile(
        name="service",
        path=service.path,
        state=state,
        remove=remove,
        add_ours=lambda before: service.text,
        remove_ours=lambda before: None,
        is_all_ours=True,
    )


def run_commands(commands: Sequence[Words], env: Mapping[str, str]) -> list[CommandResult]:
    """Run commands of the service manager, and return their results."""
    return [CommandResult(words, _run_command(words, env)) for words in commands]


def _run_command(words: Words, env: Mapping[str, str]) -> str | None:
    program = shutil.which(words[0], path=env.get("PATH"))
    if program is None:
        return f"{words[0]} is not installed"
    try:
        result = subprocess.run(
            [program, *words[1:]],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if result.returncode == 0:
        return None
    errors = result.stderr.decode("utf-8", "replace").strip().splitlines()
    return errors[0] if errors else f"exit code {result.returncode}"


# systemd.


def _systemd(places: Places, words: Words, env: Mapping[str, str]) -> Service:
    config = Path(places.env.get("XDG_CONFIG_HOME") or places.home / ".config")
    path = config / "systemd" / "user" / UNIT_NAME
    systemctl = ("systemctl", "--user")
    reload = (*systemctl, "daemon-reload")
    return Service(
        manager="systemd",
        path=path,
        text=_unit(path, words, env).encode(),
        check_active=(*systemctl, "is-active", "--quiet", UNIT_NAME),
        enable=((*systemctl, "enable", UNIT_NAME), reload),
        before_start=(),
        start=(*systemctl, "restart", UNIT_NAME),
        stop=((*systemctl, "stop", UNIT_NAME), (*systemctl, "disable", UNIT_NAME)),
        after_removal=(reload,),
    )


def _unit(path: Path, words: Words, env: Mapping[str, str]) -> str:
    program, *rest = words
    if any(sign in program for sign in "\"'\\"):
        reason = f"systemd allows no quotes or backslashes in the path of a program: got {program}"
        raise InvalidSettings(str(path), "service", reason)
    command = " ".join([_quote(path, program), *rest])
    variables = [f"Environment={_quote(path, f'{name}={value}')}" for name, value in env.items()]
    return "\n".join([UNIT_HEAD, f"ExecStart={command}", *variables, UNIT_TAIL])


def _quote(path: Path, text: str) -> str:
    """Quote a word for a systemd unit."""
    if not text.isprintable():
        raise InvalidSettings(str(path), "service", f"{text!r} cannot be written to a unit")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


# launchd.


def _launchd(home: Path, words: Words, env: Mapping[str, str], state: Path) -> Service:
    path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    domain = f"gui/{os.getuid()}"
    bootout = ("launchctl", "bootout", f"{domain}/{LABEL}")
    return Service(
        manager="launchd",
        path=path,
        text=_plist(path, words, env, state),
        check_active=("launchctl", "print", f"{domain}/{LABEL}"),
        enable=(("launchctl", "enable", f"{domain}/{LABEL}"),),
        before_start=(bootout,),
        start=("launchctl", "bootstrap", domain, str(path)),
        stop=(bootout,),
        after_removal=(),
    )


def _plist(path: Path, words: Words, env: Mapping[str, str], state: Path) -> bytes:
    """Return the launchd agent; while another daemon runs, launchd retries every minute."""
    log = str(state / LOG_NAME)
    content = {
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
        return plistlib.dumps(content, sort_keys=False)
    except (ValueError, UnicodeEncodeError) as error:
        raise InvalidSettings(str(path), "service", str(error)) from error
