"""What the user told opencode about windows and compaction."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.transcripts.document import read_settings
from brimline.transcripts.source import Places
from brimline.windows import ClientSettings

NAMES = ("opencode.json", "opencode.jsonc")


class _Limit(msgspec.Struct, frozen=True):
    context: int | None = None
    input: int | None = None
    output: int | None = None


class _OpencodeModel(msgspec.Struct, frozen=True):
    limit: _Limit = _Limit()


class _Provider(msgspec.Struct, frozen=True):
    models: dict[str, _OpencodeModel] = msgspec.field(default_factory=dict[str, _OpencodeModel])


class _Compaction(msgspec.Struct, frozen=True):
    auto: bool | None = None


class _Config(msgspec.Struct, frozen=True):
    provider: dict[str, _Provider] = msgspec.field(default_factory=dict[str, _Provider])
    compaction: _Compaction = _Compaction()


def settings(places: Places, project: str | None) -> ClientSettings:
    """opencode's configuration: environment over project over user."""
    auto: bool | None = None
    limits: dict[str, _Limit] = {}
    for config in _configs(places, project):
        if config.compaction.auto is not None:
            auto = config.compaction.auto
        for provider in config.provider.values():
            limits |= {name: model.limit for name, model in provider.models.items()}
    if places.env.get("OPENCODE_DISABLE_AUTOCOMPACT", "").lower() in ("1", "true"):
        auto = False
    return ClientSettings(
        auto_compact=auto,
        auto_compact_windows={m: limit.input for m, limit in limits.items() if limit.input},
        windows={m: limit.context for m, limit in limits.items() if limit.context},
        max_outputs={m: limit.output for m, limit in limits.items() if limit.output},
        place="opencode.json",
    )


def _configs(places: Places, project: str | None) -> Iterator[_Config]:
    """Every configuration that is there, in the order in which the client merges them."""
    content = places.env.get("OPENCODE_CONFIG_CONTENT", "").encode("utf-8", "replace")
    for place in (*_files(places, project), content):
        if config := read_settings(place, _Config):
            yield config


def _files(places: Places, project: str | None) -> Iterator[Path]:
    user = places.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    yield from (user / name for name in ("config.json", *NAMES))
    if named := places.env.get("OPENCODE_CONFIG"):
        yield Path(named)
    for folder in reversed(_upwards(project)):
        yield from (folder / name for name in NAMES)
        yield from (folder / ".opencode" / name for name in NAMES)
    if named := places.env.get("OPENCODE_CONFIG_DIR"):
        yield from (Path(named) / name for name in NAMES)


def _upwards(project: str | None) -> list[Path]:
    """The project's folder and those above it, up to the repository's."""
    found: list[Path] = []
    folder = Path(project) if project else None
    while folder is not None and folder.is_absolute():
        found.append(folder)
        last = (folder / ".git").exists() or folder.parent == folder
        folder = None if last else folder.parent
    return found
