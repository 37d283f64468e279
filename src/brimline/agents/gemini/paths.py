"""Where Gemini CLI keeps its chats and its settings."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from brimline.events import MAIN
from brimline.regular_file import read_regular_file
from brimline.transcripts.client_settings import read_settings
from brimline.transcripts.source import Places, Transcript, read_session_id
from brimline.windows import ClientSettings

SYSTEM = (
    "/etc/gemini-cli/settings.json",
    "/Library/Application Support/GeminiCli/settings.json",
)


def root(places: Places) -> Path:
    """The client's own folder."""
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
        elif entry.name.endswith(".jsonl") or _is_older(entry.name, names):
            yield from _transcript(entry, project)


def _is_older(name: str, beside: set[str]) -> bool:
    """A whole document; once it was resumed by a newer version, lines beside it go on from it."""
    return name.endswith(".json") and f"{name}l" not in beside


def _transcript(entry: "os.DirEntry[str]", project: str | None) -> Iterator[Transcript]:
    session, thread = whose(entry.path)
    try:
        if not entry.is_file():
            return
        status = entry.stat()
    except OSError:
        return
    yield Transcript(
        agent="gemini",
        path=entry.path,
        modified=status.st_mtime,
        size=status.st_size,
        session=session,
        thread=thread,
        project=project,
    )


def whose(path: str) -> tuple[str | None, str]:
    """The session and the thread that a chat's place tells.

    `chats/session-<time>-<id>.jsonl` names its session inside only; `chats/<session>/<id>.jsonl` is
    a subagent's.
    """
    folder, name = os.path.split(path)
    above, session = os.path.split(folder)
    if os.path.basename(above) != "chats":
        return read_session_id(path), MAIN
    return session, os.path.splitext(name)[0]


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _owner(folder: "os.DirEntry[str]") -> str | None:
    """The project that a folder of chats says it belongs to."""
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

    def fraction(self) -> float | None:
        model = self.model if isinstance(self.model, _GeminiModel) else _GeminiModel()
        if model.compression_threshold is not None:
            return model.compression_threshold
        older = model.chat_compression or self.chat_compression
        return older.threshold if older else None


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """What the user told Gemini CLI about compression: system over project over user."""
    found: float | None = None
    for path in _settings_files(places, project):
        found = _load(path) or found
    return ClientSettings(fraction=found, place="Gemini CLI's settings.json")


def _settings_files(places: Places, project: str | None) -> Iterator[Path]:
    if defaults := places.env.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH"):
        yield Path(defaults)
    yield root(places) / "settings.json"
    if project:
        yield Path(project, ".gemini", "settings.json")
    named = places.env.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
    yield from (Path(path) for path in ([named] if named else SYSTEM))


def _load(path: Path) -> float | None:
    """A file's threshold; one that can be none tells nothing."""
    file = read_settings(path, _GeminiSettings)
    fraction = file.fraction() if file else None
    return fraction if fraction and 0 < fraction <= 1 else None
