"""Where Codex keeps its rollouts and its settings."""

import glob
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from brimline.agents.codex.records import CodexLine, HistoryBase, Meta
from brimline.agents.transcripts.client_settings import read_toml_settings
from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    files_below,
    transcript_from_entry,
)
from brimline.context.window import ClientSettings
from brimline.errors import MalformedJson
from brimline.files.foreign_json import decode_json
from brimline.files.regular_file import open_regular_file

GRANTED_PERCENT = 95  # of the configured window: of 100,000 Codex 0.166 reports 95,000
MAX_HEADER_BYTES = 1 << 20
FOLDERS = ("sessions", "archived_sessions")
_THREAD = re.compile(r"/rollout-[\dT-]{20}([\w-]+)\.jsonl$")


def home(places: Places) -> Path:
    """The folder that CODEX_HOME names, else ~/.codex."""
    return places.folder("CODEX_HOME", ".codex")


def folders(places: Places) -> list[Path]:
    return [home(places) / name for name in FOLDERS]


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every rollout, archived ones and subagents' too."""
    for folder in folders(places):
        for entry in files_below(str(folder), ".jsonl"):
            if not entry.name.startswith("rollout-"):
                continue
            if rollout := transcript_from_entry("codex", entry):
                yield _with_header(rollout)


class EarlierFile(msgspec.Struct, frozen=True):
    """The file that a rollout continues up to an ordinal, and the rollout's own thread."""

    path: str
    end_ordinal: int
    thread: str


def find_earlier(path: str) -> EarlierFile | None:
    """Find the file that a rollout continues; None if there is none, or if it is gone."""
    try:
        meta = _read_header(path)
        base: HistoryBase | None = decode_json(meta.history_base, HistoryBase | None)
    except (OSError, MalformedJson):
        return None
    found = _find_rollout(base.thread_id, path) if base is not None else None
    if base is None or found is None or found == path:
        return None
    return EarlierFile(found, base.end_ordinal_exclusive, meta.thread)


def _find_rollout(thread: str, known_path: str) -> str | None:
    """The first file of a thread in the folders of another rollout."""
    parents = Path(known_path).parents
    roots = [parent for parent in parents if parent.name in FOLDERS] or [parents[0]]
    pattern = f"rollout-*-{glob.escape(thread)}.jsonl"
    for folder in (roots[-1], *(roots[-1].parent / name for name in FOLDERS)):
        if found := min(folder.rglob(pattern), default=None):
            return str(found)
    return None


def _with_header(rollout: Transcript) -> Transcript:
    try:
        meta = _read_header(rollout.path)
    except OSError:
        return rollout
    except MalformedJson:  # the name has the thread, which is the session unless it is a subagent's
        named = _THREAD.search(rollout.path)
        return msgspec.structs.replace(rollout, session=named[1] if named else None)
    return msgspec.structs.replace(
        rollout, session=meta.session, thread=meta.thread, project=meta.cwd
    )


@lru_cache(maxsize=1 << 16)
def _read_header(path: str) -> Meta:
    """The first record of a rollout, which never changes; only it names the session."""
    with os.fdopen(open_regular_file(path), "rb") as file:
        line = decode_json(file.readline(MAX_HEADER_BYTES), CodexLine)
    if line.type is None and line.id is not None:
        return Meta(id=line.id)
    return decode_json(line.payload, Meta)


class _Profile(msgspec.Struct, frozen=True):
    model_context_window: int | None = None
    model_auto_compact_token_limit: int | None = None


class _CodexConfig(_Profile, frozen=True):
    profile: str | None = None
    profiles: Mapping[str, _Profile] = msgspec.field(default_factory=dict[str, _Profile])

    def chosen(self) -> _Profile:
        """The file's settings with those of its chosen profile over them."""
        over = self.profiles.get(self.profile or "")
        return _over(self, over) if over else self


def _over(under: _Profile, over: _Profile) -> _Profile:
    return _Profile(
        over.model_context_window or under.model_context_window,
        over.model_auto_compact_token_limit or under.model_auto_compact_token_limit,
    )


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """Window and limit of config.toml; a project's values replace the user's."""
    config = _load(home(places) / "config.toml")
    if project:
        config = _over(config, _load(Path(project, ".codex", "config.toml")))
    window = config.model_context_window
    return ClientSettings(
        limit=config.model_auto_compact_token_limit,
        windows={"*": window * GRANTED_PERCENT // 100} if window else {},
        place="Codex's config.toml",
    )


def _load(path: Path) -> _Profile:
    """A settings file; empty if it is unreadable or malformed: that is not ours to report."""
    config = read_toml_settings(path, _CodexConfig)
    return config.chosen() if config else _Profile()
