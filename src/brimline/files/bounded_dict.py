"""A dict that drops its oldest entries."""

from typing import TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class BoundedDict(dict[KeyT, ValueT]):
    """Holds at most `max_entries`: an entry that is set becomes the newest, the oldest is dropped.

    Only `d[key] = value` has this effect, not `update` or `setdefault`.
    """

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries

    def __setitem__(self, key: KeyT, value: ValueT) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._max_entries:
            del self[next(iter(self))]
