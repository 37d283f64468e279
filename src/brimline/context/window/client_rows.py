"""Which row of the clients' tables applies to a model and a version of the client."""

import re
from collections.abc import Iterable
from functools import cache
from typing import TypeVar

from brimline.context.window.tables import (
    DATE_SUFFIX,
    LONG_CONTEXT_SUFFIX,
    ClientLimit,
    ClientWindow,
    clients,
    find_model,
    normalize_model,
)

RowT = TypeVar("RowT", ClientWindow, ClientLimit)


@cache
def find_window_row(
    agent: str | None, provider: str | None, model: str | None, version: str | None
) -> ClientWindow | None:
    """The row of a client's windows for this version that matches the model best."""
    rows = (row for row in clients().windows if _is_foreign(model, row.foreign_to))
    return _best_row(rows, agent, provider, model, version)


def _is_foreign(model: str | None, family: str | None) -> bool:
    """Whether a client that knows a family of models does not know this one."""
    if family is None:
        return True
    if model is None:
        return False
    return find_model(model) is None or not normalize_model(model).startswith(family)


@cache
def find_limit_row(
    agent: str | None,
    provider: str | None,
    model: str | None,
    version: str | None,
    has_input_limit: bool,
    enforced_only: bool,
) -> ClientLimit | None:
    """The row of a client's limits for this version that matches the model best."""
    rows = (
        row
        for row in clients().limits
        if (has_input_limit or row.of == "window") and (row.enforced or not enforced_only)
    )
    capped_first = sorted(rows, key=lambda row: row.of != "input")
    return _best_row(capped_first, agent, provider, model, version)


def _best_row(
    rows: Iterable[RowT],
    agent: str | None,
    provider: str | None,
    model: str | None,
    version: str | None,
) -> RowT | None:
    """The row that matches the model best; those of the provider go before all others."""
    applicable = [
        row
        for row in rows
        if row.agent == agent and row.provider in (None, provider) and _applies_to(row, version)
    ]
    matching = [row for row in applicable if _match_score(row.model, model) >= 0]
    return max(
        matching,
        key=lambda row: (row.provider is not None, _match_score(row.model, model)),
        default=None,
    )


def _applies_to(row: ClientWindow | ClientLimit, version: str | None) -> bool:
    """Whether a row applies to a version; an unknown version counts as the newest."""
    if version is None:
        return row.until is None
    parts = _parse_version(version)
    since = row.since is None or _parse_version(row.since) <= parts
    return since and (row.until is None or parts < _parse_version(row.until))


def _match_score(pattern: str, model: str | None) -> int:
    """How well a pattern matches a model: an exact id best, then the longest prefix; -1 if not."""
    if pattern == "*":
        return 0
    if model is None:
        return -1
    if pattern == f"*{LONG_CONTEXT_SUFFIX}":
        return 1_000 if model.endswith(LONG_CONTEXT_SUFFIX) else -1
    if not pattern.endswith("*"):
        name = normalize_model(model)
        return 500 if pattern in (name, DATE_SUFFIX.sub("", name)) else -1
    return len(pattern) if normalize_model(model).startswith(pattern[:-1]) else -1


@cache
def _parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("-")[0]))
