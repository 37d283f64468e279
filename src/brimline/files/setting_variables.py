"""Settings in environment variables, such as BRIMLINE_LEVELS."""

from collections.abc import Callable, Mapping
from typing import Any

from brimline.errors import InvalidSettings

PREFIX = "BRIMLINE_"
# What loops call the windows: a number for everything, or a table like `windows`.
LOOP_WINDOWS = "context_window_tokens"


def read_variables(env: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of an environment, in tables; raises InvalidSettings."""
    settings: dict[str, Any] = {}
    for name, read in _READERS.items():
        table, _, field = name.rpartition(".")
        # The variables of `daemon` are named without it.
        variable = PREFIX + (field if table in ("", "daemon") else f"{table}_{field}").upper()
        if text := env.get(variable):
            layer = settings.setdefault(table, {}) if table else settings
            try:
                layer[field] = read(text)
            except ValueError as error:
                raise InvalidSettings(variable, name, str(error)) from error
    return settings


def _number_or_table(text: str) -> dict[str, int] | int:
    return _table(text) if "=" in text else int(text)


def _switch(text: str) -> bool:
    """`0` or `1`."""
    if text not in ("0", "1"):
        raise ValueError(f"expected 0 or 1: got {text!r}")
    return text == "1"


def _numbers(text: str) -> list[float]:
    """`50,65`."""
    return [float(part) for part in text.split(",") if part.strip()]


def _names(text: str) -> list[str]:
    """`one,other`."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _table(text: str) -> dict[str, int]:
    """`model=tokens,agent=tokens`."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return {name.strip(): int(tokens.replace("_", "")) for name, _, tokens in pairs}


def _texts(text: str) -> dict[str, str]:
    """`name=value,name=value`, as in OTEL_EXPORTER_OTLP_HEADERS."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return {name.strip(): value.strip() for name, _, value in pairs}


_READERS: dict[str, Callable[[str], Any]] = {
    "windows": _table,
    LOOP_WINDOWS: _number_or_table,
    "limits": _table,
    "default_window": int,
    "since": str,
    "colour": str,
    "cache_dir": str,
    "levels": _numbers,
    "levels_of": str,
    "levels_calls": _numbers,
    "tone": str,
    "parent": str,
    "budget": float,
    "daemon.autostart": _switch,
    "daemon.keep": str,
    "daemon.database": str,
    "uplink.url": str,
    "uplink.token": str,
    "telemetry.export": str,
    "telemetry.headers": _texts,
    "telemetry.forward": str,
    "telemetry.forward_headers": _texts,
    "fleet.proxy_user_header": str,
    "fleet.trusted_proxies": _names,
    "fleet.proxy_organisation": str,
}
