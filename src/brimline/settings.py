"""One frozen Settings: argument > environment > project file > user file > default."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from brimline.errors import InvalidSettings
from brimline.windows import Overrides

PREFIX = "BRIMLINE_"
PROJECT_FILE = ".brimline.toml"

Colour: TypeAlias = Literal["auto", "always", "never"]

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user can set. `windows` and `limits` are by model, agent, `agent/model` or `*`."""

    windows: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    limits: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    default_window: int | None = None
    since: str = "24h"
    colour: Colour = "auto"
    cache_dir: str | None = None

    @property
    def overrides(self) -> Overrides:
        """What windows and limits are resolved with."""
        return Overrides(self.windows, self.limits, self.default_window)


def seconds(text: str, field: str = "since", place: str = "argument") -> float:
    """A span of time such as 90m, 24h, 7d or 2w in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text.strip())
    if not match:
        raise InvalidSettings(
            place, field, f"expected a span such as 90m, 24h, 7d, 2w: got {text!r}"
        )
    return float(match[1]) * _UNITS[match[2]]


def load(
    env: Mapping[str, str], home: Path, cwd: Path, arguments: Mapping[str, Any] | None = None
) -> Settings:
    """The settings from every layer; InvalidSettings names the place and the field."""
    merged: dict[str, Any] = {}
    for path in (user_file(env, home), project_file(cwd)):
        if path is not None and path.is_file():
            _merge(merged, _toml(path), str(path))
    _merge(merged, _environment(env), "environment")
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    _merge(merged, given, "argument")
    return _convert(merged, "settings")


def user_file(env: Mapping[str, str], home: Path) -> Path:
    """The user's own file: BRIMLINE_CONFIG, else below XDG_CONFIG_HOME or ~/.config."""
    if named := env.get(f"{PREFIX}CONFIG"):
        return Path(named)
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "brimline" / "config.toml"


def project_file(cwd: Path) -> Path | None:
    """The nearest project file from here upwards."""
    return next((path for path in project_files(cwd) if path.is_file()), None)


def project_files(cwd: Path) -> list[Path]:
    """Where a project file could be, the nearest first."""
    return [folder / PROJECT_FILE for folder in (cwd, *cwd.parents)]


def cache_dir(settings: Settings, env: Mapping[str, str], home: Path) -> Path:
    """Where what can be made anew is kept."""
    if settings.cache_dir:
        return Path(settings.cache_dir).expanduser()
    return Path(env.get("XDG_CACHE_HOME") or home / ".cache") / "brimline"


def _merge(merged: dict[str, Any], layer: Mapping[str, Any], place: str) -> None:
    """Lay one layer over the others; it is checked by itself so that an error names its place."""
    checked = _convert(dict(layer), place)
    for name in layer:
        value = getattr(checked, name)
        merged[name] = {**merged.get(name, {}), **value} if isinstance(value, dict) else value


def _convert(values: dict[str, Any], place: str) -> Settings:
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at ")
        raise InvalidSettings(place, where.strip("`$.") or "settings", problem) from error
    for table in ("windows", "limits"):
        for key, tokens in getattr(settings, table).items():
            if tokens <= 0:
                raise InvalidSettings(
                    place, f"{table}.{key}", f"expected more than 0: got {tokens}"
                )
    if settings.default_window is not None and settings.default_window <= 0:
        problem = f"expected more than 0: got {settings.default_window}"
        raise InvalidSettings(place, "default_window", problem)
    seconds(settings.since, place=place)
    return settings


def _toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidSettings(str(path), "file", str(error)) from error


def _environment(env: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, read in _READERS.items():
        variable = PREFIX + name.upper()
        if text := env.get(variable):
            try:
                found[name] = read(text)
            except ValueError as error:
                raise InvalidSettings(variable, name, str(error)) from error
    return found


def _table(text: str) -> dict[str, int]:
    """`model=tokens,agent=tokens`."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return {name.strip(): int(tokens.replace("_", "")) for name, _, tokens in pairs}


_READERS: dict[str, Callable[[str], Any]] = {
    "windows": _table,
    "limits": _table,
    "default_window": int,
    "since": str,
    "colour": str,
    "cache_dir": str,
}
