"""A file of our own among an agent's extensions: put there, brought up to date, taken out.

It is made of the part that asks, which all have, and the agent's own. That part asks the daemon
itself: these agents run on Node or Bun, where starting a process takes longer than all the rest. A
file of the same name that somebody else wrote is left alone.
"""

import json
from pathlib import Path

from brimline import agents
from brimline.agents.hook_command import HOOK_TIMEOUT_S, Program
from brimline.agents.install_spec import InstallSpec
from brimline.errors import InvalidSettings
from brimline.hooks.client.exchange import (
    ANSWER_DEADLINE_S,
    MAX_LINE_BYTES,
    MAX_REPLY_BYTES,
    MAX_VALUE_BYTES,
    NAMES,
)
from brimline.setup.install import SetupOptions
from brimline.setup.managed_file import ManagedFile

FILE_MARK = "// Written by `brimline setup`, which writes it anew: what you change here is lost."
SETTINGS_PLACEHOLDER = '"@TOLD@"'  # where the settings go in the script

AUTOSTART_MARK = b'"autostart": true'  # by what an extension is known that starts the daemon

SHARED_PART = Path(__file__).with_name("extension.js")


def extension_source(recipe: InstallSpec, program: Program, autostart: bool) -> bytes:
    """All that stands in the file; InvalidSettings where the hook's path cannot."""
    told = {
        "agent": recipe.agent,
        "socket": program.socket,
        "spool": program.spool,
        "alone": program.python_words,
        "autostart": autostart,
        "answer": round(1000 * ANSWER_DEADLINE_S),
        "patience": 1000 * HOOK_TIMEOUT_S,
        "names": [name.decode() for name in NAMES],
        "longest": {"line": MAX_LINE_BYTES, "reply": MAX_REPLY_BYTES, "value": MAX_VALUE_BYTES},
    }
    own_part = Path(agents.__file__).parent / recipe.agent / "extension.js"
    parts = [part.read_text("utf-8") for part in (SHARED_PART, own_part)]
    code = "\n".join((FILE_MARK, *parts)).replace(
        SETTINGS_PLACEHOLDER, json.dumps(told, ensure_ascii=False)
    )
    try:
        return code.encode()
    except UnicodeEncodeError as error:
        problem = "the path of Brimline's hook is not UTF-8, and cannot stand in a file"
        raise InvalidSettings(recipe.agent, "hook", problem) from error


def is_our_extension(data: bytes) -> bool:
    """Whether setup wrote a file, this version's or another's."""
    return data.startswith(FILE_MARK.encode())


def extension_file(recipe: InstallSpec, path: Path, wish: SetupOptions) -> ManagedFile:
    """The file, and what becomes of it."""

    def put(before: bytes | None) -> bytes:
        if before is not None and not is_our_extension(before):
            raise InvalidSettings(str(path), "file", "somebody else wrote it. Move it away first")
        return extension_source(recipe, wish.program, _autostart(before, wish))

    def take(before: bytes) -> bytes | None:
        return None if is_our_extension(before) else before

    return ManagedFile(recipe.agent, path, wish.state, wish.remove, put, take, scope=wish.scope)


def _autostart(before: bytes | None, wish: SetupOptions) -> bool:
    """Whether it starts the daemon: as it is asked for, else as the one that is there."""
    if wish.autostart is not None:
        return wish.autostart
    return wish.default_autostart if before is None else AUTOSTART_MARK in before
