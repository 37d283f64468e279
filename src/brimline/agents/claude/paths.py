"""Where Claude Code keeps its transcripts and its settings."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.events import MAIN
from brimline.regular_file import MAX_SETTINGS_BYTES
from brimline.transcripts.document import read_settings
from brimline.transcripts.source import (
    Places,
    Transcript,
    files_below,
    read_session_id,
    to_text,
    transcript_from_entry,
)
from brimline.windows import ClientSettings

SUBAGENT = "agent-"
DEFAULTS = (".claude", ".config/claude")
STATE_FILE = ".claude.json"
PROJECT_FILES = ("settings.json", "settings.local.json")
# The limit for the client's own .claude.json, which keeps a history of every project.
MAX_STATE_BYTES = 16 << 20

SHORT = 200_000  # the window of every model while the long ones are switched off


def roots(places: Places) -> list[Path]:
    """The configuration folders: those that CLAUDE_CONFIG_DIR names, else the usual ones."""
    named = places.env.get("CLAUDE_CONFIG_DIR")
    parts = [part.strip() for part in (named or "").split(",")]
    return [Path(part) for part in parts if part] or [places.home / place for place in DEFAULTS]


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every transcript below `projects`, subagents' files too."""
    for root in roots(places):
        for entry in files_below(str(root / "projects"), ".jsonl"):
            if transcript := transcript_from_entry("claude", entry):
                session, thread = whose(entry.path)
                yield msgspec.structs.replace(
                    transcript, session=to_text(session), thread=to_text(thread)
                )


def whose(path: str) -> tuple[str | None, str]:
    """The session and the thread that a transcript's place tells.

    `<session>.jsonl` is a session's own; `<session>/subagents/agent-<id>.jsonl` a subagent's; an
    older `agent-<id>.jsonl` lies beside the sessions, and only its records name its session.
    """
    folder, _, name = path.rpartition(os.sep)
    stem = name.removesuffix(".jsonl")
    if not stem.startswith(SUBAGENT):
        return stem, MAIN
    parent, _, last = folder.rpartition(os.sep)
    session = parent.rpartition(os.sep)[2] if last == "subagents" else read_session_id(path)
    return session, stem.removeprefix(SUBAGENT)


class _ModelSettings(msgspec.Struct, frozen=True, rename="camel"):
    auto_compact_window: int | None = None


class _ClaudeSettings(msgspec.Struct, frozen=True, rename="camel"):
    auto_compact_enabled: bool | None = None
    auto_compact_window: int | None = None
    model_settings: dict[str, _ModelSettings] = msgspec.field(
        default_factory=dict[str, _ModelSettings]
    )
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def windows(self) -> dict[str, int]:
        """The auto-compact windows by model, `*` for all."""
        every = {"*": self.auto_compact_window} if self.auto_compact_window is not None else {}
        sizes = {name: told.auto_compact_window for name, told in self.model_settings.items()}
        return {name: size for name, size in sizes.items() if size is not None} | every


def settings(places: Places, project: str | None) -> ClientSettings:
    """What the user told Claude Code about compaction: project over user over environment."""
    env = dict(places.env)
    windows: dict[str, int] = {}
    enabled: bool | None = None
    for path in _settings_files(places, project):
        limit = MAX_STATE_BYTES if path.name == STATE_FILE else MAX_SETTINGS_BYTES
        file = read_settings(path, _ClaudeSettings, limit) or _ClaudeSettings()
        env |= file.env
        windows |= file.windows
        if file.auto_compact_enabled is not None:
            enabled = file.auto_compact_enabled
    if (size := env.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "")).isdecimal():
        windows = {"*": int(size)}
    if any(_on(env.get(name)) for name in ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT")):
        enabled = False
    return ClientSettings(
        auto_compact=enabled,
        auto_compact_windows=windows,
        part=_part(env.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "")),
        windows={"*": SHORT} if _on(env.get("CLAUDE_CODE_DISABLE_1M_CONTEXT")) else {},
        place="Claude Code's settings",
    )


def _on(value: str | None) -> bool:
    return (value or "").lower() in ("1", "true", "yes", "on")


def _part(per_cent: str) -> float | None:
    """A part of the window, as the client reads it: anything but a number in (0, 100] is none."""
    try:
        number = float(per_cent)
    except ValueError:
        return None
    return number / 100 if 0 < number <= 100 else None


def _settings_files(places: Places, project: str | None) -> list[Path]:
    """The files in the order in which a later one goes over an earlier."""
    root = roots(places)[0]
    above = root if places.env.get("CLAUDE_CONFIG_DIR") else places.home
    own = [Path(project, ".claude", name) for name in PROJECT_FILES] if project else []
    return [above / STATE_FILE, root / "settings.json", *own]
