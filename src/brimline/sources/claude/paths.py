"""Where Claude Code keeps its transcripts and its settings."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.events import MAIN
from brimline.sources.base import Places, Transcript, files_below, found, printable, session_in
from brimline.sources.lines import MALFORMED
from brimline.windows import ClientSettings

SUBAGENT = "agent-"
DEFAULTS = (".claude", ".config/claude")
SHORT = 200_000
"""The window of every model while the long ones are switched off."""


def roots(places: Places) -> list[Path]:
    """The configuration folders: those that CLAUDE_CONFIG_DIR names, else the usual ones."""
    named = places.env.get("CLAUDE_CONFIG_DIR")
    parts = [part.strip() for part in (named or "").split(",")]
    return [Path(part) for part in parts if part] or [places.home / place for place in DEFAULTS]


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every transcript below `projects`, subagents' files too."""
    for root in roots(places):
        for entry in files_below(str(root / "projects"), ".jsonl"):
            if transcript := found("claude", entry):
                session, thread = whose(entry.path)
                yield msgspec.structs.replace(
                    transcript, session=printable(session), thread=printable(thread)
                )


def whose(path: str) -> tuple[str | None, str]:
    """The session and the thread that a transcript's place tells.

    `<session>.jsonl` is a session's own; `<session>/subagents/agent-<id>.jsonl` a subagent's; an
    older `agent-<id>.jsonl` lies beside the sessions, and only its records name its session.
    """
    folder, name = os.path.split(path)
    stem = name.removesuffix(".jsonl")
    if not stem.startswith(SUBAGENT):
        return stem, MAIN
    parent, last = os.path.split(folder)
    session = os.path.basename(parent) if last == "subagents" else session_in(path)
    return session, stem.removeprefix(SUBAGENT)


class _ModelSettings(msgspec.Struct, frozen=True, rename="camel"):
    auto_compact_window: int | None = None


class _Settings(msgspec.Struct, frozen=True, rename="camel"):
    auto_compact_enabled: bool | None = None
    auto_compact_window: int | None = None
    model_settings: dict[str, _ModelSettings] = msgspec.field(
        default_factory=dict[str, _ModelSettings]
    )
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])


def settings(places: Places, project: str | None) -> ClientSettings:
    """What the user told Claude Code about compaction: project over user over environment."""
    root = roots(places)[0]
    above = root if places.env.get("CLAUDE_CONFIG_DIR") else places.home
    found = [_load(above / ".claude.json"), _load(root / "settings.json")]
    if project:
        found += [
            _load(Path(project, ".claude", f"settings{kind}.json")) for kind in ("", ".local")
        ]
    env = dict(places.env)
    windows: dict[str, int] = {}
    enabled: bool | None = None
    for told in found:
        env |= told.env
        windows |= {
            m: s.auto_compact_window
            for m, s in told.model_settings.items()
            if s.auto_compact_window is not None
        }
        if told.auto_compact_window is not None:
            windows["*"] = told.auto_compact_window
        if told.auto_compact_enabled is not None:
            enabled = told.auto_compact_enabled
    if (size := env.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "")).isdecimal():
        windows = {"*": int(size)}
    if any(_on(env.get(name)) for name in ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT")):
        enabled = False
    return ClientSettings(
        auto_compact=enabled,
        auto_compact_windows=windows,
        windows={"*": SHORT} if _on(env.get("CLAUDE_CODE_DISABLE_1M_CONTEXT")) else {},
        place="Claude Code's settings",
    )


def _on(value: str | None) -> bool:
    return (value or "").lower() in ("1", "true", "yes", "on")


def _load(path: Path) -> _Settings:
    """A settings file; what cannot be read or is not as expected tells nothing: it is not ours."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Settings)
    except (OSError, *MALFORMED):
        return _Settings()
