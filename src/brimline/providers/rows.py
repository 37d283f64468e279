"""A provider's usage as data: rows of path -> bucket, and whether the prompt has the cache in."""

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

import msgspec

from brimline.errors import InvalidUsage
from brimline.usage import Usage, from_subset

Bucket: TypeAlias = Literal["input", "cache_read", "cache_write", "output", "reasoning"]


class Row(msgspec.Struct, frozen=True):
    """Where a provider keeps a count, and the bucket it goes to; two rows of one bucket add up.

    `paths` are spellings of one place, the first that is there counts. A count that is `required`
    and missing is an error; any other is 0 when the provider leaves it out.
    """

    bucket: Bucket
    paths: tuple[str, ...]
    required: bool = False


class Shape(msgspec.Struct, frozen=True):
    """How one API reports usage.

    `cached` says whether what was read from and written to the cache is counted beside the prompt
    (`disjoint`) or as a part of it (`subset`).
    """

    name: str
    cached: Literal["disjoint", "subset"]
    rows: tuple[Row, ...]

    def usage(self, reported: object) -> Usage:
        """The usage in a mapping or object of this shape; InvalidUsage names what is wrong."""
        counts: dict[Bucket, int] = {}
        for row in self.rows:
            value = self._count(reported, row)
            if value is not None:
                counts[row.bucket] = counts.get(row.bucket, 0) + value
        prompt, output = counts.get("input", 0), counts.get("output", 0)
        read, written = counts.get("cache_read", 0), counts.get("cache_write", 0)
        make = from_subset if self.cached == "subset" else _disjoint
        return make(prompt, read, written, output, counts.get("reasoning"))

    def _count(self, reported: object, row: Row) -> int | None:
        for path in row.paths:
            value = walk(reported, path)
            if value is None:
                continue
            if type(value) is not int or value < 0:
                raise InvalidUsage(path, value)
            return value
        if row.required:
            raise InvalidUsage(row.paths[0], None)
        return None


def _disjoint(prompt: int, read: int, written: int, output: int, reasoning: int | None) -> Usage:
    return Usage(prompt, read, written, output, reasoning)


def walk(value: object, path: str) -> object:
    """What a dotted path leads to in nested mappings or objects; None where it leads nowhere."""
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(part)
        else:
            value = getattr(value, part, None)
    return value
