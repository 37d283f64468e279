"""Where Qwen Code keeps its chats and its settings."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.agents.transcripts.client_settings import read_settings
from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    files_below,
    to_text,
    transcript_from_entry,
)
from brimline.context.events import MAIN
from brimline.context.window import ClientSettings
from brimline.files.foreign_json import JsonDecoder
from brimline.files.regular_file import MAX_SETTINGS_BYTES, read_regular_file

SUBAGENT = "agent-"
CHAT_FOLDERS = ("chats", "archive")  # a chat that the user archived is in a folder below `chats`
MEMORY_FILES = ("QWEN.md", "AGENTS.md")
SYSTEM_SETTINGS = (
    "/etc/qwen-code/settings.json",
    "/Library/Application Support/QwenCode/settings.json",
)


def root(places: Places) -> Path:
    """The folder of its settings."""
    return _expand(places.env.get("QWEN_HOME"), places) or places.home / ".qwen"


def folders(places: Places) -> list[Path]:
    """The folder of its chats, by the variable, the user's settings or the default."""
    output = _read(root(places) / "settings.json").advanced.runtime_output_dir
    named = places.env.get("QWEN_RUNTIME_DIR") or output
    return [(_expand(named, places) or root(places)) / "projects"]


def _expand(named: str | None, places: Places) -> Path | None:
    """A folder as the client takes it; None without a name, and for one below each project."""
    if not named:
        return None
    path = places.home / named[2:] if named == "~" or named.startswith("~/") else Path(named)
    return path if path.is_absolute() else None


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every chat of every project, subagents' too."""
    for folder in folders(places):
        for entry in files_below(str(folder), ".jsonl"):
            owner = whose(entry.path)
            if owner and (transcript := transcript_from_entry("qwen", entry)):
                yield msgspec.structs.replace(transcript, session=owner[0], thread=owner[1])


def whose(path: str) -> tuple[str, str] | None:
    """Return the session and the thread of a chat by its path; None if it is no chat.

    `chats/<session>.jsonl` is a session's own, `subagents/<session>/agent-<id>.jsonl` a subagent's.
    """
    folder, name = os.path.split(to_text(path))
    stem = name.removesuffix(".jsonl")
    above, last = os.path.split(folder)
    if last in CHAT_FOLDERS:
        return stem, MAIN
    is_subagent = os.path.basename(above) == "subagents" and stem.startswith(SUBAGENT)
    return (last, stem.removeprefix(SUBAGENT)) if is_subagent else None


def subagent_path(chat: str, agent: str) -> str:
    """Return where the chat of a subagent is, by that of its session."""
    folder, name = os.path.split(chat)
    session = name.removesuffix(".jsonl")
    return os.path.join(os.path.dirname(folder), "subagents", session, f"{SUBAGENT}{agent}.jsonl")


class SubagentFile(msgspec.Struct, frozen=True):
    """What `agent-<id>.meta.json` says of a subagent (0.24.4); its records have no model."""

    description: str | None = None
    model: str | None = None


_subagent_file = JsonDecoder(SubagentFile)


def read_subagent_file(path: str) -> SubagentFile:
    """Return what the file next to a subagent's chat says; empty if it cannot be read."""
    try:
        data = read_regular_file(f"{path.removesuffix('.jsonl')}.meta.json", MAX_SETTINGS_BYTES)
    except OSError:
        return SubagentFile()
    return _subagent_file.decode_or_none(data) or SubagentFile()


def subagent_title(path: str) -> str | None:
    """Return the task of a subagent, in the words of the call that started it."""
    return read_subagent_file(path).description


def memory_files(places: Places, project: str | None) -> list[str]:
    """The user's QWEN.md and AGENTS.md, and those of the project and of the folders above it."""
    dirs = [root(places)]
    if project is not None and Path(project).is_absolute():
        dirs += [Path(project), *Path(project).parents]
    files = (folder / name for folder in dirs for name in MEMORY_FILES)
    return list(dict.fromkeys(str(file) for file in files if file.is_file()))


class _QwenContext(msgspec.Struct, frozen=True, rename="camel"):
    auto_compact_threshold: float | None = None


class _QwenAdvanced(msgspec.Struct, frozen=True, rename="camel"):
    runtime_output_dir: str | None = None


class _QwenSettings(msgspec.Struct, frozen=True):
    context: _QwenContext = _QwenContext()
    advanced: _QwenAdvanced = _QwenAdvanced()


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """The share at which it compacts: the system's over the project's over the user's."""
    files = map(_read, _settings_files(places, project))
    shares = [file.context.auto_compact_threshold for file in files]
    valid = [share for share in shares if share is not None and 0 < share <= 1]
    return ClientSettings(fraction=valid[-1] if valid else None, place="Qwen Code's settings.json")


def _settings_files(places: Places, project: str | None) -> Iterator[Path]:
    if defaults := places.env.get("QWEN_CODE_SYSTEM_DEFAULTS_PATH"):
        yield Path(defaults)
    yield root(places) / "settings.json"
    if project:
        yield Path(project, ".qwen", "settings.json")
    named = places.env.get("QWEN_CODE_SYSTEM_SETTINGS_PATH")
    yield from (Path(path) for path in ([named] if named else SYSTEM_SETTINGS))


def _read(path: Path) -> _QwenSettings:
    return read_settings(path, _QwenSettings) or _QwenSettings()
