"""Where Pi keeps its sessions and its settings."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from brimline.transcripts.client_settings import read_settings
from brimline.transcripts.source import Places, Transcript, files_below, transcript_from_entry
from brimline.windows import ClientSettings


class _Override(msgspec.Struct, frozen=True, rename="camel"):
    context_window: int | None = None
    max_tokens: int | None = None


class _PiModel(_Override, frozen=True, rename="camel"):
    id: str = ""


class _Provider(msgspec.Struct, frozen=True, rename="camel"):
    models: tuple[_PiModel, ...] = ()
    model_overrides: Mapping[str, _Override] = msgspec.field(default_factory=dict[str, _Override])


class _Models(msgspec.Struct, frozen=True):
    providers: Mapping[str, _Provider] = msgspec.field(default_factory=dict[str, _Provider])

    def rows(self) -> Iterator[tuple[str, _Override]]:
        """Every model by its id; what a provider overrides comes after what it lists."""
        for provider in self.providers.values():
            yield from ((model.id, model) for model in provider.models)
            yield from provider.model_overrides.items()


class _Compaction(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool | None = None
    reserve_tokens: int | None = None


class _PiSettings(msgspec.Struct, frozen=True, rename="camel"):
    compaction: _Compaction = _Compaction()
    session_dir: str | None = None


def agent_folder(places: Places) -> Path:
    """The folder that PI_CODING_AGENT_DIR names, else ~/.pi/agent."""
    named = places.env.get("PI_CODING_AGENT_DIR")
    return _expanded(named, places) if named else places.home / ".pi" / "agent"


def folders(places: Places) -> list[Path]:
    """The usual folder, and the one that the variable or the settings name instead."""
    usual = agent_folder(places) / "sessions"
    named = places.env.get("PI_CODING_AGENT_SESSION_DIR") or _user(places).session_dir
    other = _expanded(named, places) if named else usual
    if usual.is_relative_to(other):
        return [other]
    return [usual] if other.is_relative_to(usual) else [usual, other]


def _expanded(named: str, places: Places) -> Path:
    if named == "~" or named.startswith("~/"):
        return places.home / named[2:]
    return Path(named)


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every session."""
    for folder in folders(places):
        for entry in files_below(str(folder), ".jsonl"):
            if transcript := transcript_from_entry("pi", entry):
                _, _, session = entry.name.removesuffix(".jsonl").partition("_")
                yield msgspec.structs.replace(transcript, session=session or None)


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """Compaction from settings.json, a project's laid over the user's; windows from models.json."""
    set_to = _user(places).compaction
    if project:
        set_to = _over(set_to, _settings(Path(project, ".pi", "settings.json")).compaction)
    rows = dict(_models(agent_folder(places) / "models.json").rows())
    return ClientSettings(
        auto_compact=set_to.enabled,
        reserve=set_to.reserve_tokens,
        windows={name: row.context_window for name, row in rows.items() if row.context_window},
        max_outputs={name: row.max_tokens for name, row in rows.items() if row.max_tokens},
        place="Pi's settings",
    )


def _over(under: _Compaction, over: _Compaction) -> _Compaction:
    enabled = under.enabled if over.enabled is None else over.enabled
    reserve = under.reserve_tokens if over.reserve_tokens is None else over.reserve_tokens
    return _Compaction(enabled, reserve)


def _user(places: Places) -> _PiSettings:
    return _settings(agent_folder(places) / "settings.json")


def _settings(path: Path) -> _PiSettings:
    return read_settings(path, _PiSettings) or _PiSettings()


def _models(path: Path) -> _Models:
    return read_settings(path, _Models) or _Models()
