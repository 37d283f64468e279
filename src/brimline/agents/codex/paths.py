"""Where Codex keeps its rollouts and its settings."""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from brimline.agents.codex.records import CodexLine, Meta
from brimline.regular_file import open_regular_file, read_regular_file
from brimline.transcripts.source import Places, Transcript, files_below, transcript_from_entry
from brimline.windows import ClientSettings

FOLDERS = ("sessions", "archived_sessions")
GRANTED = 95  # the part of the configured window, in per cent, that Codex fills

HEADER = 1 << 20


def home(places: Places) -> Path:
    """The folder that CODEX_HOME names, else ~/.codex."""
    return places.folder("CODEX_HOME", ".codex")


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every rollout, archived ones and subagents' too."""
    for folder in FOLDERS:
        for entry in files_below(str(home(places) / folder), ".jsonl"):
            rollout = (
                transcript_from_entry("codex", entry) if entry.name.startswith("rollout-") else None
            )
            if rollout:
                yield _headed(rollout)


def _headed(rollout: Transcript) -> Transcript:
    meta = _header(rollout.path)
    if meta is None:
        return rollout
    return msgspec.structs.replace(
        rollout, session=meta.session, thread=meta.thread, project=meta.cwd
    )


def _header(path: str) -> Meta | None:
    try:
        return _first(path)
    except (OSError, msgspec.DecodeError):
        return None


@lru_cache(maxsize=1 << 16)
def _first(path: str) -> Meta:
    """The first record of a rollout, which never changes; only it tells whose the file is."""
    with os.fdopen(open_regular_file(path), "rb") as file:
        line = msgspec.json.decode(file.readline(HEADER), type=CodexLine)
    if line.type is None and line.id is not None:
        return Meta(id=line.id)
    return msgspec.json.decode(line.payload, type=Meta)


class _Profile(msgspec.Struct, frozen=True):
    model_context_window: int | None = None
    model_auto_compact_token_limit: int | None = None


class _Config(_Profile, frozen=True):
    profile: str | None = None
    profiles: Mapping[str, _Profile] = msgspec.field(default_factory=dict[str, _Profile])

    def chosen(self) -> _Profile:
        """The file's own settings under those of the profile that it chooses."""
        over = self.profiles.get(self.profile or "")
        return _over(self, over) if over else self


def _over(under: _Profile, over: _Profile) -> _Profile:
    return _Profile(
        over.model_context_window or under.model_context_window,
        over.model_auto_compact_token_limit or under.model_auto_compact_token_limit,
    )


def settings(places: Places, project: str | None) -> ClientSettings:
    """What config.toml says about window and limit; a project's own is laid over the user's."""
    told = _load(home(places) / "config.toml")
    if project:
        told = _over(told, _load(Path(project, ".codex", "config.toml")))
    window = told.model_context_window
    return ClientSettings(
        limit=told.model_auto_compact_token_limit,
        windows={"*": window * GRANTED // 100} if window else {},
        place="Codex's config.toml",
    )


def _load(path: Path) -> _Profile:
    """A settings file; what cannot be read or is not as expected tells nothing: it is not ours."""
    try:
        text = read_regular_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return _Profile()
    import tomllib

    try:
        return msgspec.convert(tomllib.loads(text), _Config).chosen()
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError):
        return _Profile()
