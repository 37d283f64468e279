"""Where Gemini CLI keeps its chats and its settings."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from brimline.agents.transcripts.client_settings import read_settings
from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    read_session_id,
    to_text,
    transcript_from_entry,
)
from brimline.context.events import MAIN
from brimline.context.window import ClientSettings
from brimline.files.regular_file import read_regular_file

SYSTEM_SETTINGS = (
    "/etc/gemini-cli/settings.json",
    "/Library/Application Support/GeminiCli/settings.json",
)


def root(places: Places) -> Path:
    return Path(places.env.get("GEMINI_CLI_HOME") or places.home) / ".gemini"


def folders(places: Places) -> list[Path]:
    return [root(places) / "tmp"]


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every chat of every project, subagents' too."""
    projects = _projects(root(places))
    for folder in _entries(root(places) / "tmp"):
        project = _owner(folder) or projects.get(folder.name)
        yield from _chats(Path(folder.path, "chats"), project)


def _chats(folder: Path, project: str | None) -> Iterator[Transcript]:
    entries = _entries(folder)
    names = {entry.name for entry in entries}
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _chats(Path(entry.path), project)
            continue
        # An older document that a newer version resumed continues in a file of lines next to it.
        is_document = entry.name.endswith(".json") and f"{entry.name}l" not in names
        if not is_document and not entry.name.endswith(".jsonl"):
            continue
        if chat := transcript_from_entry("gemini", entry):
            session, thread = whose(entry.path)
            yield msgspec.structs.replace(chat, session=session, thread=thread, project=project)


def whose(path: str) -> tuple[str | None, str]:
    """Return the session and the thread of a chat by its path.

    `chats/session-<time>-<id>.jsonl` names its session inside only; `chats/<session>/<id>.jsonl` is
    a subagent's.
    """
    folder, name = os.path.split(path)
    above, session = os.path.split(folder)
    if os.path.basename(above) != "chats":
        return read_session_id(path), MAIN
    return to_text(session), to_text(os.path.splitext(name)[0])


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _owner(folder: "os.DirEntry[str]") -> str | None:
    """The project of a folder of chats, by a file in it."""
    try:
        return read_regular_file(Path(folder.path, ".project_root")).decode().strip() or None
    except (OSError, ValueError):
        return None


class _Registry(msgspec.Struct, frozen=True):
    projects: dict[str, str]


def _projects(folder: Path) -> dict[str, str]:
    """Projects by the names of their folders: the registry's, and the older hash of the path."""
    registry = read_settings(Path(folder, "projects.json"), _Registry) or _Registry({})
    hashed = {sha256(path.encode()).hexdigest(): path for path in registry.projects}
    return hashed | {name: path for path, name in registry.projects.items()}


class _Compression(msgspec.Struct, frozen=True):
    threshold: float | None = msgspec.field(default=None, name="contextPercentageThreshold")


class _GeminiModel(msgspec.Struct, frozen=True, rename="camel"):
    compression_threshold: float | None = None
    chat_compression: _Compression | None = None


class _GeminiSettings(msgspec.Struct, frozen=True, rename="camel"):
    """Where versions keep the threshold: `model.compressionThreshold`, and two older places."""

    model: _GeminiModel | str | None = None
    chat_compression: _Compression | None = None

    def threshold(self) -> float | None:
        model = self.model if isinstance(self.model, _GeminiModel) else _GeminiModel()
        if model.compression_threshold is not None:
            return model.compression_threshold
        older = model.chat_compression or self.chat_compression
        return older.threshold if older else None


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """The threshold of compression: the system's over the project's over the user's."""
    fractions = (_read_threshold(path) for path in _settings_files(places, project))
    valid = [fraction for fraction in fractions if fraction and 0 < fraction <= 1]
    return ClientSettings(fraction=valid[-1] if valid else None, place="Gemini CLI's settings.json")


def _settings_files(places: Places, project: str | None) -> Iterator[Path]:
    if defaults := places.env.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH"):
        yield Path(defaults)
    yield root(places) / "settings.json"
    if project:
        yield Path(project, ".gemini", "settings.json")
    named = places.env.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
    yield from (Path(path) for path in ([named] if named else SYSTEM_SETTINGS))


def _read_threshold(path: Path) -> float | None:
    file = read_settings(path, _GeminiSettings)
    return file.threshold() if file else None
