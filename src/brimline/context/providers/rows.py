"""A provider's usage format as data: rows of path -> bucket."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, cast

import msgspec

from brimline.context.usage import Usage, from_subset
from brimline.errors import InvalidUsage

Bucket: TypeAlias = Literal[
    "input", "cache_read", "cache_write", "cache_write_1h", "output", "reasoning"
]


class CountRow(msgspec.Struct, frozen=True):
    """The path of a count, and its bucket; rows of the same bucket add up.

    `paths` are alternative spellings; the first that exists counts. A missing count is an error if
    it is `required`, else 0.
    """

    bucket: Bucket
    paths: tuple[str, ...]
    required: bool = False


class UsageShape(msgspec.Struct, frozen=True):
    """How one API reports usage.

    `cached` is whether cache reads and writes are added to the prompt (`disjoint`) or as a
    part of it (`subset`).
    """

    cached: Literal["disjoint", "subset"]
    rows: tuple[CountRow, ...]

    def usage(self, reported: object) -> Usage:
        """The usage in a mapping or object of this shape. Raises InvalidUsage."""
        counts: dict[Bucket, int] = {}
        for row in self.rows:
            value = self._count(reported, row)
            if value is not None:
                counts[row.bucket] = counts.get(row.bucket, 0) + value
        prompt, output = counts.get("input", 0), counts.get("output", 0)
        read, written = counts.get("cache_read", 0), counts.get("cache_write", 0)
        make = from_subset if self.cached == "subset" else Usage
        kept_1h = min(counts.get("cache_write_1h", 0), written)
        return make(prompt, read, written, output, counts.get("reasoning"), kept_1h)

    def _count(self, reported: object, row: CountRow) -> int | None:
        for path in row.paths:
            value = get_path(reported, path)
            if value is None:
                continue
            if type(value) is not int or value < 0:
                raise InvalidUsage(path, value)
            return value
        if row.required:
            raise InvalidUsage(row.paths[0], None)
        return None


def get_path(value: object, path: str) -> object:
    """The value at a dotted path in nested mappings or objects, or None."""
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(part)
        else:
            value = getattr(value, part, None)
    return value


def get_text(value: object, *paths: str) -> str | None:
    """The first text at one of the dotted paths, or None."""
    values = (get_path(value, path) for path in paths)
    return next((each for each in values if isinstance(each, str)), None)


def get_items(value: object, path: str) -> Sequence[object]:
    """The items of the list at a dotted path; empty if there is none."""
    items = get_path(value, path)
    return cast("Sequence[object]", items) if isinstance(items, Sequence) else ()
