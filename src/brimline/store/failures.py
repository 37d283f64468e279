"""The errors of a store."""

from brimline.errors import BrimlineError


class StoreFailed(BrimlineError):
    """The store cannot be opened, written or read; the request had no effect."""

    def __init__(self, place: str, reason: str, hint: str | None = None) -> None:
        self.place, self.reason, self.hint = place, reason, hint
        super().__init__(f"{place}: {reason}")


class NewerStore(BrimlineError):
    """A newer Brimline has written the store; it was not changed."""

    def __init__(self, place: str, found: int, known: int) -> None:
        self.place, self.found, self.known = place, found, known
        self.hint = "Update Brimline, or use another file or database."
        super().__init__(
            f"{place}: expected a store of version {known} or older, found version {found}"
        )
