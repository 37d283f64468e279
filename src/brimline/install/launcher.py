"""The launcher, a small script in the state folder that every installed hook runs.

Agents' settings name only the launcher, so they stay valid when Brimline is upgraded or moved. It
runs the hook client of one installation. If that is gone it exits silently: an agent would show an
error at each turn otherwise.
"""

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents.hook_command import LAUNCHER_NAME, Program, find_program
from brimline.errors import InvalidSettings
from brimline.files.atomic_file import write_draft
from brimline.files.socket_path import socket_path
from brimline.install.shared_file import lock_shared_file, read_if_exists, translate_errors

LAUNCHER_MODE = 0o700
CACHE_TAG = "CACHEDIR.TAG"  # in the topmost folder of a cache; uv has it in every environment, too

PIPX_METADATA, PIPX_INSTALLED = "pipx_metadata.json", "venvs"

# Python fails if stdin is a directory, and an exit code of 2 keeps an agent from continuing. With
# an event's ID the daemon may have received it: only the Python client can spool such an event.
TEMPLATE = """\
#!/bin/sh
# Written by `brimline setup`. Runs Brimline's hook client; exits silently if it is gone.
#     brimline-hook AGENT KIND [ID]
{variables}
[ "${{2-}}" = mcp ] && [ -x "$python" ] &&
  BRIMLINE_STATE_DIR="${{spool%/*}}" exec "$python" -P -m brimline mcp
exec 2>/dev/null
[ $# -eq 2 ] && [ -x "$compiled" ] &&
  exec "$compiled" "$python" "$script" "$2" "$1" "$socket" "$spool"
[ -x "$python" ] && [ -r "$script" ] && ! [ -d /dev/stdin ] || exit 0
exec "$python" -I -S "$script" ${{3:+--no-daemon "$3"}} "$2" "$1" "$socket" "$spool"
"""


def local_program(state: Path) -> Program:
    """Return the hook client of this installation."""
    package = Path(os.path.abspath(__file__)).parent.parent
    return find_program(package, sys.executable, state, socket_path(state, os.getuid()))


def launcher_source(program: Program) -> bytes:
    paths = msgspec.structs.asdict(program).items()
    variables = "\n".join(f"{name}={shlex.quote(path or '')}" for name, path in paths)
    return os.fsencode(TEMPLATE.format(variables=variables))


def read_launcher(state: Path) -> Program | None:
    """Return the program that the launcher runs; None if there is no launcher that can be read."""
    with suppress(InvalidSettings, ValueError, msgspec.ValidationError):
        text = os.fsdecode(read_if_exists(state / LAUNCHER_NAME) or b"")
        words = (word.partition("=") for word in shlex.split(text, comments=True))
        return msgspec.convert({name: path for name, _, path in words if path}, Program)
    return None


def write_launcher(program: Program) -> bool:
    """Have the launcher run this program, and return whether another one was replaced.

    InvalidSettings if it cannot be written.
    """
    path = Path(program.launcher)
    with lock_shared_file(path, private=True), translate_errors(path, "written"):
        if is_current(program) and os.access(path, os.X_OK):
            return False
        is_replaced = path.exists()
        draft = write_draft(path, launcher_source(program), sync=True)
        draft.chmod(LAUNCHER_MODE)
        draft.replace(path)
        return is_replaced


def refresh_launcher(program: Program) -> None:
    """Update the launcher after an upgrade; one of another installation that works is kept."""
    path = Path(program.launcher)
    if not path.exists() or is_current(program) or find_cache(Path(program.python)):
        return
    current = read_launcher(path.parent)
    if current is None or is_gone(current) or _bin_folder(current) == _bin_folder(program):
        write_launcher(program)


def is_current(program: Program) -> bool:
    """Return whether the launcher is what setup would write now; raises InvalidSettings."""
    return read_if_exists(Path(program.launcher)) == launcher_source(program)


def is_gone(program: Program) -> bool:
    """Return whether the installation of a program is gone, or was moved."""
    return not (os.access(program.python, os.X_OK) and os.access(program.script, os.R_OK))


def find_cache(path: Path) -> Path | None:
    """Return the cache that an environment's program is in; None if it is in none.

    `uvx` marks its cache, and also each environment (0.13.7), as a cache. `pipx run` does not: its
    environments are those of pipx that are not in its folder of installed programs.
    """
    environment = path.parents[1]
    if (environment / PIPX_METADATA).exists() and environment.parent.name != PIPX_INSTALLED:
        return environment.parent
    return next((folder for folder in path.parents[2:] if (folder / CACHE_TAG).exists()), None)


def _bin_folder(program: Program) -> Path:
    return Path(program.python).parent
