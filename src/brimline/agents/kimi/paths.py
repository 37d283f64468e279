"""Where Kimi Code keeps its sessions and its settings."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.agents.transcripts.client_settings import read_settings, read_toml_settings
from brimline.agents.transcripts.source import (
    Places,
    Transcript,
    files_below,
    to_text,
    transcript_from_entry,
)
from brimline.context.window import ClientSettings

WIRE_NAME = "wire.jsonl"


def root(places: Places) -> Path:
    return places.folder("KIMI_CODE_HOME", ".kimi-code")


def folders(places: Places) -> list[Path]:
    return [root(places) / "sessions"]


class _Workspace(msgspec.Struct, frozen=True):
    root: str | None = None


class _Workspaces(msgspec.Struct, frozen=True):
    workspaces: dict[str, _Workspace] = {}


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every thread of every session; the project is known by the folder of its workspace."""
    registry = read_settings(root(places) / "workspaces.json", _Workspaces) or _Workspaces()
    for folder in folders(places):
        for entry in files_below(str(folder), WIRE_NAME):
            # <workspace>/<session>/agents/<thread>/wire.jsonl
            parts = Path(to_text(entry.path)).relative_to(to_text(str(folder))).parts
            if len(parts) != 5 or not (found := transcript_from_entry("kimi", entry)):
                continue
            workspace, session, _, thread, _ = parts
            project = registry.workspaces.get(workspace, _Workspace()).root
            yield msgspec.structs.replace(found, session=session, thread=thread, project=project)


class _KimiModel(msgspec.Struct, frozen=True):
    model: str | None = None
    max_context_size: int | None = None
    max_input_size: int | None = None


class _LoopControl(msgspec.Struct, frozen=True):
    reserved_context_size: int | None = None
    compaction_trigger_ratio: float | None = None


class _KimiConfig(msgspec.Struct, frozen=True):
    models: dict[str, _KimiModel] = {}
    loop_control: _LoopControl = _LoopControl()


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """The windows of the user's models, and where it compacts."""
    config = read_toml_settings(root(places) / "config.toml", _KimiConfig) or _KimiConfig()
    windows: dict[str, int] = {}
    for alias, model in config.models.items():
        if size := model.max_input_size or model.max_context_size:
            windows |= {alias: size, model.model or alias: size}
    named, size = (places.env.get(f"KIMI_MODEL_{key}", "") for key in ("NAME", "MAX_CONTEXT_SIZE"))
    if named and size.isdecimal():
        windows[named] = int(size)
    return ClientSettings(
        windows=windows,
        fraction=config.loop_control.compaction_trigger_ratio,
        reserve=config.loop_control.reserved_context_size,
        place="Kimi Code's settings",
    )
