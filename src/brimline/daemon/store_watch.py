"""Watch the file of the store while the daemon runs."""

import asyncio
from collections.abc import Callable

from brimline.store.sqlite import SqliteStore

WATCH_EVERY_S = 1.0
FIRST_CHECK_AFTER_S = 5.0  # after the daemon has read the transcripts at its start
CHECK_EVERY_S = 86_400.0


class StoreWatch:
    """Calls `react` within seconds with what happened to the file.

    Damage inside the file is searched for soon after the start and once a day.
    """

    def __init__(
        self,
        store: SqliteStore,
        react: Callable[[str], None],
        first_check_after_s: float = FIRST_CHECK_AFTER_S,
    ) -> None:
        self._store, self._react = store, react
        self._first_check_after_s = first_check_after_s

    async def watch_file(self) -> None:
        """Look at the file every second until something happened to it."""
        while (problem := self._store.find_problem()) is None:
            await asyncio.sleep(WATCH_EVERY_S)
        self._react(problem)

    async def check_content(self) -> None:
        """Check the whole content regularly; damage is what `watch_file` sees from then on."""
        await asyncio.sleep(self._first_check_after_s)
        while True:
            await self._store.check_content()
            await asyncio.sleep(CHECK_EVERY_S)
