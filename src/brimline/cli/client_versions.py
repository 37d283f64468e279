"""The versions of the installed clients, and a warning, once, about those that are not tested."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents import agent_names, agents_with_hooks, display_name, get_agent, source
from brimline.agents.transcripts.source import Places
from brimline.context.tracker import Session, fold
from brimline.errors import MalformedJson
from brimline.files.atomic_file import replace_file
from brimline.files.foreign_json import JsonDecoder
from brimline.files.private_folder import create_private_folder
from brimline.files.regular_file import read_regular_file
from brimline.sessions.files import READ_ERRORS

WARNED_FILE = "newer-clients.json"  # in the state folder: the last version warned about, by agent
MAX_FILE_BYTES = 1 << 20


class _Package(msgspec.Struct):
    version: str


_package = JsonDecoder(_Package)
_warned = JsonDecoder(dict[str, str])


def find_version(agent: str, places: Places) -> str | None:
    """Return the version of a client: of its npm package, else of its newest transcript."""
    return _package_version(agent, places) or _transcript_version(agent, places)


def find_versions_for_hooks(places: Places) -> dict[str, tuple[int, ...]]:
    """Return the versions of the clients that take some of our hooks only since a version."""
    deciding = (each for each in agents_with_hooks(agent_names())
                if get_agent(each).install_spec.newer_events)  # fmt: skip
    versions = {agent: find_version(agent, places) for agent in deciding}
    return {agent: _numbers(version) for agent, version in versions.items() if version}


def _package_version(agent: str, places: Places) -> str | None:
    """Read the version from the package of the client's command, without starting it."""
    command = get_agent(agent).capabilities.start_command
    executable = shutil.which(command[0], path=places.env.get("PATH", "")) if command else None
    if executable is None:
        return None
    for folder in Path(os.path.realpath(executable)).parents:
        if "node_modules" not in folder.parts:
            return None
        with suppress(OSError, MalformedJson):
            return _package.decode(
                read_regular_file(folder / "package.json", MAX_FILE_BYTES)
            ).version
    return None


def _transcript_version(agent: str, places: Places) -> str | None:
    transcripts = get_agent(agent).transcripts(places)
    newest = max(transcripts, key=lambda each: each.modified, default=None)
    if newest is None:
        return None
    try:
        return fold(Session(), source(agent).read(newest, how="end")).version
    except READ_ERRORS:
        return None


def is_newer(version: str, tested: str) -> bool:
    """Return whether a version is newer than the tested one; ignores a suffix such as `-beta`."""
    return _numbers(version) > _numbers(tested)


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def take_warnings(state: Path, versions: Mapping[str, str | None]) -> dict[str, str]:
    """Return a warning for each client that is newer than the tested one: once for each version."""
    warned = _read_warned(state)
    newer: dict[str, str] = {}
    warnings: dict[str, str] = {}
    for agent, version in versions.items():
        tested = get_agent(agent).capabilities.tested_version
        if version and tested and is_newer(version, tested) and warned.get(agent) != version:
            newer[agent] = version
            warnings[agent] = (
                f"{display_name(agent)} {version} is newer than {tested}, the newest version that "
                "Brimline was tested with. If figures are missing or wrong, update Brimline."
            )
    if newer:
        with suppress(OSError):  # then it warns again
            create_private_folder(state)
            replace_file(state / WARNED_FILE, msgspec.json.encode(warned | newer))
    return warnings


def _read_warned(state: Path) -> dict[str, str]:
    try:
        return _warned.decode(read_regular_file(state / WARNED_FILE, MAX_FILE_BYTES))
    except (OSError, MalformedJson):
        return {}
