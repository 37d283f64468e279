"""Where Claude Code keeps its transcripts and its settings."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.agents.transcripts.client_settings import read_settings
from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    files_below,
    read_session_id,
    to_text,
    transcript_from_entry,
)
from brimline.context.events import MAIN
from brimline.context.window import LONG_CONTEXT_SUFFIX, LONG_WINDOW, ClientSettings
from brimline.files.foreign_json import JsonDecoder
from brimline.files.regular_file import MAX_SETTINGS_BYTES, read_regular_file

SUBAGENT = "agent-"
DEFAULTS = (".claude", ".config/claude")
STATE_FILE = ".claude.json"
MEMORY_FILE, LOCAL_MEMORY_FILE = "CLAUDE.md", "CLAUDE.local.md"
LOCAL_SETTINGS = "settings.local.json"  # of a project, this user's alone
PROJECT_FILES = ("settings.json", LOCAL_SETTINGS)
# The limit for the client's own .claude.json, which keeps a history of every project.
MAX_STATE_BYTES = 16 << 20

SHORT_WINDOW = 200_000  # of every model if long contexts are disabled


def roots(places: Places) -> list[Path]:
    """The configuration folders: those of CLAUDE_CONFIG_DIR, else the default ones."""
    named = places.env.get("CLAUDE_CONFIG_DIR")
    parts = [part.strip() for part in (named or "").split(",")]
    return [Path(part) for part in parts if part] or [places.home / place for place in DEFAULTS]


def memory_files(places: Places, project: str | None) -> list[str]:
    """The user's CLAUDE.md, and those of the project and of the folders above it."""
    files = [root / MEMORY_FILE for root in roots(places)]
    if project is not None and Path(project).is_absolute():
        for folder in (Path(project), *Path(project).parents):
            files += [folder / name for name in (MEMORY_FILE, LOCAL_MEMORY_FILE)]
            files.append(folder / ".claude" / MEMORY_FILE)
    paths = dict.fromkeys(os.path.realpath(file) for file in files if file.is_file())
    return list(paths)


def folders(places: Places) -> list[Path]:
    return [root / "projects" for root in roots(places)]


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every transcript below `projects`, subagents' files too."""
    for folder in folders(places):
        for entry in files_below(str(folder), ".jsonl"):
            if transcript := transcript_from_entry("claude", entry):
                session, thread = whose(entry.path)
                yield msgspec.structs.replace(
                    transcript, session=to_text(session), thread=to_text(thread)
                )


def whose(path: str) -> tuple[str | None, str]:
    """Return the session and the thread of a transcript by its path.

    `<session>.jsonl` is a session's own; `<session>/subagents/agent-<id>.jsonl` a subagent's; an
    older `agent-<id>.jsonl` is next to the sessions, and only its records name its session.
    """
    folder, _, name = path.rpartition(os.sep)
    stem = name.removesuffix(".jsonl")
    if not stem.startswith(SUBAGENT):
        return stem, MAIN
    parent, _, last = folder.rpartition(os.sep)
    session = parent.rpartition(os.sep)[2] if last == "subagents" else read_session_id(path)
    return session, stem.removeprefix(SUBAGENT)


class _SubagentFile(msgspec.Struct, frozen=True):
    description: str | None = None


_subagent_file = JsonDecoder(_SubagentFile)


def subagent_title(path: str) -> str | None:
    """Return the task of a subagent, in the words of the call that started it.

    The client writes `agent-<id>.meta.json` next to the transcript (2.1.325).
    """
    try:
        data = read_regular_file(f"{path.removesuffix('.jsonl')}.meta.json", MAX_SETTINGS_BYTES)
    except OSError:
        return None
    file = _subagent_file.decode_or_none(data)
    return file.description if file else None


class _ModelSettings(msgspec.Struct, frozen=True, rename="camel"):
    auto_compact_window: int | None = None


class _ClaudeSettings(msgspec.Struct, frozen=True, rename="camel"):
    model: str | None = None
    auto_compact_enabled: bool | None = None
    auto_compact_window: int | None = None
    model_settings: dict[str, _ModelSettings] = msgspec.field(
        default_factory=dict[str, _ModelSettings]
    )
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def windows(self) -> dict[str, int]:
        """The auto-compact windows by model, `*` for all."""
        sizes = {name: model.auto_compact_window for name, model in self.model_settings.items()}
        sizes["*"] = self.auto_compact_window
        return {name: size for name, size in sizes.items() if size is not None}


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """Settings of compaction: the project's over the user's over the environment."""
    env = dict(places.env)
    windows: dict[str, int] = {}
    model: str | None = None
    enabled: bool | None = None
    for path in _settings_files(places, project):
        limit = MAX_STATE_BYTES if path.name == STATE_FILE else MAX_SETTINGS_BYTES
        file = read_settings(path, _ClaudeSettings, limit) or _ClaudeSettings()
        env |= file.env
        windows |= file.windows
        model = file.model or model
        if file.auto_compact_enabled is not None:
            enabled = file.auto_compact_enabled
    if (size := env.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "")).isdecimal():
        windows = {"*": int(size)}
    if _is_on(env.get("DISABLE_AUTO_COMPACT")) or _is_on(env.get("DISABLE_COMPACT")):
        enabled = False
    return ClientSettings(
        auto_compact=enabled,
        auto_compact_windows=windows,
        part=_part(env.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "")),
        windows={"*": SHORT_WINDOW}
        if _is_on(env.get("CLAUDE_CODE_DISABLE_1M_CONTEXT"))
        else _long_windows(env.get("ANTHROPIC_MODEL") or model or ""),
        place="Claude Code's settings",
    )


def _long_windows(model: str) -> dict[str, int]:
    """The windows of a model that the user chose with the suffix for a long context."""
    name = model.removesuffix(LONG_CONTEXT_SUFFIX)
    if name == model:
        return {}
    return {name if "-" in name else f"claude-{name}*": LONG_WINDOW}


def _is_on(value: str | None) -> bool:
    return (value or "").lower() in ("1", "true", "yes", "on")


def _part(percent: str) -> float | None:
    """A part of the window; like the client, ignore anything but a number in (0, 100]."""
    try:
        number = float(percent)
    except ValueError:
        return None
    return number / 100 if 0 < number <= 100 else None


def _settings_files(places: Places, project: str | None) -> list[Path]:
    """The files; later ones take precedence."""
    root = roots(places)[0]
    above = root if places.env.get("CLAUDE_CONFIG_DIR") else places.home
    own = [Path(project, ".claude", name) for name in PROJECT_FILES] if project else []
    return [above / STATE_FILE, root / "settings.json", *own]
