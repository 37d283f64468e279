"""The difference between two JSON views of a session, as the stream sends it.

A change has the session's `id` and only the fields of its view that changed:

    session   an object with the changed fields of the row
    threads   an object with the changed fields of each changed thread, by name; or the whole list,
              if a thread is new or their order changed
    trend     {"keep": n, "add": [...]}: the first n points stay, these follow
    the rest  the new value

Whoever holds any view from `before` to a later one, and then applies all changes since `before` in
order, ends with the latest view: a change sets values and never depends on the old ones.
"""

from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]


class TrendChange(msgspec.Struct, frozen=True):
    """The first `keep` points stay, and the points in `add` follow."""

    keep: int
    add: list[int]


def find_change(before: Json, after: Json) -> Json | None:
    """The change from one view of a session to another; None if they are equal."""
    change = _changed_fields(before, after)
    if not change:
        return None
    if "session" in change:
        change["session"] = _changed_fields(before["session"], after["session"])
    if "threads" in change:
        change["threads"] = _changed_threads(before["threads"], after["threads"])
    if "trend" in change:
        change["trend"] = _changed_trend(before["trend"], after["trend"])
    return {"id": after["session"]["id"], **change}


def apply_change(view: Json, change: Json) -> Json:
    """The view after a change; the given one stays as it was."""
    merged = {**view, **{name: value for name, value in change.items() if name != "id"}}
    if "session" in change:
        merged["session"] = {**view["session"], **change["session"]}
    if isinstance(change.get("threads"), dict):
        rows = change["threads"]
        merged["threads"] = [{**row, **rows.get(row["thread"], {})} for row in view["threads"]]
    if "trend" in change:
        trend = change["trend"]
        merged["trend"] = [*view["trend"][: trend["keep"]], *trend["add"]]
    return merged


def _changed_fields(before: Json, after: Json) -> Json:
    return {name: value for name, value in after.items() if before[name] != value}


def _changed_threads(before: list[Json], after: list[Json]) -> Json | list[Json]:
    if [row["thread"] for row in before] != [row["thread"] for row in after]:
        return after
    pairs = zip(before, after, strict=True)
    return {new["thread"]: _changed_fields(old, new) for old, new in pairs if old != new}


def _changed_trend(before: list[int], after: list[int]) -> Json:
    keep = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        keep += 1
    return {"keep": keep, "add": after[keep:]}
