"""Brimline's extension of an agent: a file of our own among the agent's extensions.

It consists of extension.js, the same for all agents, and the agent's own extension.js. It connects
to the daemon itself: these agents run on Node or Bun, where starting a process takes longer than
all the rest. A file of the same name that is not ours is never changed.
"""

import json
from pathlib import Path

from brimline.agents import get_agent
from brimline.agents.hook_command import HOOK_TIMEOUT_S, Program
from brimline.agents.install_spec import InstallSpec
from brimline.errors import InvalidSettings
from brimline.hooks.client.exchange import (
    ANSWER_DEADLINE_S,
    EXIT_DEADLINE_S,
    MAX_LINE_BYTES,
    MAX_REPLY_BYTES,
    MAX_VALUE_BYTES,
    PASSED_VARIABLES,
)
from brimline.install.install import SetupOptions
from brimline.install.setup_file import SetupFile

FILE_MARK = "// Written by `brimline setup`, which "  # the same in all versions
FIRST_LINE = f"{FILE_MARK}overwrites it: changes that you make here are lost."
CONFIG_PLACEHOLDER = '"@CONFIG@"'
LAUNCHER_MARK = b'"launcher": '  # missing in extensions that have the paths of the installation
AUTOSTART_MARK = b'"autostart": true'  # in an extension that starts the daemon

SHARED_PART = Path(__file__).with_name("extension.js")


def extension_source(spec: InstallSpec, program: Program, autostart: bool) -> bytes:
    """Return the content of the file; raises InvalidSettings if a path is not UTF-8."""
    config = {
        "agent": spec.agent,
        "socket": program.socket,
        "launcher": program.launcher,
        "autostart": autostart,
        "answerTimeoutMs": round(1000 * ANSWER_DEADLINE_S),
        "spoolWaitMs": round(1000 * (EXIT_DEADLINE_S - ANSWER_DEADLINE_S)),
        "timeoutMs": 1000 * HOOK_TIMEOUT_S,
        "variables": [name.decode() for name in PASSED_VARIABLES],
        "maxLineBytes": MAX_LINE_BYTES,
        "maxReplyBytes": MAX_REPLY_BYTES,
        "maxValueBytes": MAX_VALUE_BYTES,
    }
    agent_part = Path(get_agent(spec.extension_of or spec.agent).folder, "extension.js")
    parts = [part.read_text("utf-8") for part in (SHARED_PART, agent_part)]
    code = "\n".join((FIRST_LINE, *parts))
    try:
        return code.replace(CONFIG_PLACEHOLDER, json.dumps(config, ensure_ascii=False)).encode()
    except UnicodeEncodeError as error:
        reason = "the path of Brimline's hook is not UTF-8, and cannot be written to a file"
        raise InvalidSettings(spec.agent, "hook", reason) from error


def is_our_extension(data: bytes) -> bool:
    """Return whether setup wrote a file, in this version or another."""
    return data.startswith(FILE_MARK.encode())


def extension_file(spec: InstallSpec, path: Path, options: SetupOptions) -> SetupFile:
    """Return the change that writes or removes the extension."""

    def add(before: bytes | None) -> bytes:
        if before is not None and not is_our_extension(before):
            reason = "it exists and is not Brimline's. Move it away first"
            raise InvalidSettings(str(path), "file", reason)
        autostart = options.autostart
        if autostart is None:
            is_new = before is None
            autostart = options.default_autostart if is_new else AUTOSTART_MARK in before
        return extension_source(spec, options.program, autostart)

    def remove(before: bytes) -> bytes | None:
        return None if is_our_extension(before) else before

    return SetupFile(
        spec.agent, path, options.state, options.remove, add, remove, scope=options.scope
    )
