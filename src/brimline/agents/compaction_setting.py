"""A client's own setting that moves its compaction, and the value for a wanted limit.

What a value does is asked of `context.window`, which knows the client's rule.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.context.window import (
    NO_CLIENT_SETTINGS,
    ClientSettings,
    Limit,
    ResolveContext,
    Window,
    limit_of,
    window_of,
)
from brimline.files.jsonc import Dialect, Json, JsonPath

# The field of ClientSettings that has the value: a number of tokens, or a share of the window.
LimitField: TypeAlias = Literal[
    "limit", "fraction", "reserve", "input_reserve", "auto_compact_windows", "windows"
]
WITHIN_SHARE = 0.01  # a limit this close to the wanted one is that


class CompactionSetting(msgspec.Struct, frozen=True, kw_only=True):
    """Where a client has the setting; `key` is its place in the file.

    `is_shared`: others may have the file, with the project. `model` is the key of the maps of
    ClientSettings. `dialect` is None for TOML, where a key is one text: `table.key` in a table.
    `siblings` are written next to the value if the client needs them there. The client takes values
    within `bounds`. `note` tells the user what else the value changes.
    """

    field: LimitField
    key: JsonPath
    file: Path
    is_shared: bool = False
    model: str = "*"
    dialect: Dialect | None = Dialect()
    siblings: Mapping[str, Json] = {}
    bounds: tuple[float, float] | None = None
    note: str | None = None

    def applied(self, settings: ClientSettings, value: float) -> ClientSettings:
        """Return the client's settings with this value."""
        if self.field in ("auto_compact_windows", "windows"):
            table = {**getattr(settings, self.field), self.model: round(value)}
            return msgspec.structs.replace(settings, **{self.field: table})
        return msgspec.structs.replace(settings, **{self.field: value})


class PlannedLimit(msgspec.Struct, frozen=True):
    """The value to write, and the limit that follows from it."""

    value: float
    limit: Limit
    is_wanted: bool


def limit_without_history(known: ResolveContext) -> Limit | None:
    """Return the limit by a client's settings and rules alone, if it heeds them."""
    unseen = msgspec.structs.replace(known, compacted_at=(), sustained=0, first_sent=None)
    return limit_of(unseen, window_of(unseen))


def is_near(tokens: int, wanted: int) -> bool:
    """Return whether a limit is the wanted one."""
    return abs(tokens - wanted) <= WITHIN_SHARE * wanted


def limit_with(setting: CompactionSetting, known: ResolveContext, value: float) -> Limit | None:
    """Return the limit by a value, if the client heeds it."""
    settings = setting.applied(known.settings, value)
    return limit_without_history(msgspec.structs.replace(known, settings=settings))


def plan_limit(
    setting: CompactionSetting, known: ResolveContext, wanted: int
) -> PlannedLimit | None:
    """Return the value by which the client compacts at this many tokens, or nearest to that.

    None if the window or the client's rule is unknown.
    """
    window = window_of(known)
    if window is None or (value := _value_for(setting, known, window, wanted)) is None:
        return None
    if setting.bounds:
        value = min(max(value, setting.bounds[0]), setting.bounds[1])
    limit = limit_with(setting, known, value)
    if limit is None:
        return None
    return PlannedLimit(value, limit, is_near(limit.tokens, wanted))


def _value_for(
    setting: CompactionSetting, known: ResolveContext, window: Window, wanted: int
) -> float | None:
    match setting.field:
        case "limit":
            # A client that has a rule of its own compacts by that at the latest.
            default = limit_of(msgspec.structs.replace(known, settings=NO_CLIENT_SETTINGS), window)
            return min(wanted, default.tokens) if default else wanted
        case "fraction":
            return round(wanted / window.tokens, 4)
        case "reserve" | "input_reserve":
            # With none, a client that takes the smaller of a share and a reserve compacts earlier.
            half = window.tokens // 2
            with_half = limit_with(setting, known, half)
            return max(0, with_half.tokens + half - wanted) if with_half else None
        case "auto_compact_windows" | "windows":
            whole = limit_with(setting, known, window.tokens)
            return wanted + window.tokens - whole.tokens if whole else None
