"""Where Pi keeps its sessions and its settings."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from brimline.agents.transcripts.client_settings import RegistryRows, read_registry, read_settings
from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    files_below,
    to_text,
    transcript_from_entry,
)
from brimline.context.window import ClientSettings, RegistryModel, shipped_registry

MEMORY_FILES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")  # of a folder the first counts


class _Override(msgspec.Struct, frozen=True, rename="camel"):
    context_window: int | None = None
    max_tokens: int | None = None


class _PiModel(_Override, frozen=True, rename="camel"):
    id: str = ""

    def with_defaults(self) -> _Override:
        """What Pi 0.87.1 takes for a model of the user's own that lacks these."""
        return _Override(self.context_window or 128_000, self.max_tokens or 16_384)


class _Provider(msgspec.Struct, frozen=True, rename="camel"):
    models: tuple[_PiModel, ...] = ()
    model_overrides: Mapping[str, _Override] = msgspec.field(default_factory=dict[str, _Override])


class _Models(msgspec.Struct, frozen=True):
    providers: Mapping[str, _Provider] = msgspec.field(default_factory=dict[str, _Provider])

    def rows(self) -> Iterator[tuple[str, _Override]]:
        """Every model as `provider/id`; what a provider overrides comes after what it lists."""
        for name, provider in self.providers.items():
            yield from ((f"{name}/{model.id}", model.with_defaults()) for model in provider.models)
            yield from ((f"{name}/{id}", model) for id, model in provider.model_overrides.items())


class _RefreshedProvider(msgspec.Struct, frozen=True, rename="camel"):
    models: tuple[_PiModel, ...] = ()
    last_modified: float | None = None  # in milliseconds


class _PiCompaction(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool | None = None
    reserve_tokens: int | None = None


class _PiSettings(msgspec.Struct, frozen=True, rename="camel"):
    compaction: _PiCompaction = _PiCompaction()
    session_dir: str | None = None


def agent_folder(places: Places) -> Path:
    """The folder that PI_CODING_AGENT_DIR names, else ~/.pi/agent."""
    named = places.env.get("PI_CODING_AGENT_DIR")
    return _expand(named, places) if named else places.home / ".pi" / "agent"


def memory_files(places: Places, project: str | None) -> list[str]:
    """The user's AGENTS.md, and those of the project and of the folders above it."""
    dirs = [agent_folder(places)]
    if project is not None and Path(project).is_absolute():
        dirs += [Path(project), *Path(project).parents]
    files = (next(filter(Path.is_file, map(each.joinpath, MEMORY_FILES)), None) for each in dirs)
    return list(dict.fromkeys(str(file) for file in files if file is not None))


def folders(places: Places) -> list[Path]:
    """The default folder, and the one of the variable or the settings."""
    default = agent_folder(places) / "sessions"
    named = places.env.get("PI_CODING_AGENT_SESSION_DIR") or _user_settings(places).session_dir
    other = _expand(named, places) if named else default
    if default.is_relative_to(other):
        return [other]
    return [default] if other.is_relative_to(default) else [default, other]


def _expand(named: str, places: Places) -> Path:
    if named == "~" or named.startswith("~/"):
        return places.home / named[2:]
    return Path(named)


def transcripts(places: Places) -> Iterator[Transcript]:
    for folder in folders(places):
        for entry in files_below(str(folder), ".jsonl"):
            if transcript := transcript_from_entry("pi", entry):
                _, _, session = to_text(entry.name).removesuffix(".jsonl").partition("_")
                yield msgspec.structs.replace(transcript, session=session or None)


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """Compaction of settings.json, the project's over the user's; windows of models.json."""
    compaction = _user_settings(places).compaction
    if project:
        own = _read_settings(Path(project, ".pi", "settings.json")).compaction
        compaction = _PiCompaction(
            compaction.enabled if own.enabled is None else own.enabled,
            compaction.reserve_tokens if own.reserve_tokens is None else own.reserve_tokens,
        )
    models = read_settings(agent_folder(places) / "models.json", _Models) or _Models()
    rows = dict(models.rows())
    return ClientSettings(
        auto_compact=compaction.enabled,
        reserve=compaction.reserve_tokens,
        windows={name: row.context_window for name, row in rows.items() if row.context_window},
        max_outputs={name: row.max_tokens for name, row in rows.items() if row.max_tokens},
        place="Pi's settings",
        registry=read_registry(
            agent_folder(places) / "models-store.json", dict[str, _RefreshedProvider], _newer_rows
        ),
    )


def _newer_rows(file: Mapping[str, _RefreshedProvider]) -> RegistryRows:
    """The rows of the providers that are newer than the client's own, as the client does."""
    shipped = shipped_registry("pi")
    made_at = (shipped.made_at if shipped else None) or 0.0
    return {
        name: {
            model.id: RegistryModel(model.context_window, model.max_tokens)
            for model in provider.models
            if model.context_window
        }
        for name, provider in file.items()
        if provider.last_modified is not None and provider.last_modified / 1000 > made_at
    }


def _user_settings(places: Places) -> _PiSettings:
    return _read_settings(agent_folder(places) / "settings.json")


def _read_settings(path: Path) -> _PiSettings:
    return read_settings(path, _PiSettings) or _PiSettings()
