"""A thread as it is now: what its files tell, and what its client told that is not in them yet."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from brimline.events import MAIN, Call, WindowReported
from brimline.tracker import Reading, Session, Thread, fold, read
from brimline.windows import NO_CLIENT_SETTINGS, ClientSettings, Overrides

BY_FILE = "transcript"


class Present(NamedTuple):
    """What a reading is made from: with the same it would be the same.

    `told` is a call that the client tells of and the transcript does not yet, `window` what it said
    of the window, `most` the most that it told a call of this model to have sent.
    """

    thread: Thread
    windows: Mapping[str, int]
    told: Call | None = None
    window: int | None = None
    most: int = 0
    cycle: int = 0
    compacting: bool = False
    model: str | None = None
    settings: ClientSettings = NO_CLIENT_SETTINGS

    def reading(self, session: Session, by: str, overrides: Overrides) -> Reading:
        """The reading of a session's only thread; `by` is who told what no file tells."""
        thread = next(iter(session.threads.values()))
        if thread.name != MAIN:
            return read(session, thread, BY_FILE, overrides, self.settings)
        if self.window is not None:
            session = fold(session, [WindowReported(tokens=self.window)])
            thread = session.threads[MAIN]
        now = self._now(thread)
        if self.told is None:
            return self._read(session, now, BY_FILE, overrides)
        told = msgspec.structs.replace(self.told, model=self.model or now.model)
        held = msgspec.structs.replace(now, current=None)
        session = msgspec.structs.replace(session, threads={MAIN: held}, records_compactions=True)
        ahead = fold(session, [told]).threads[MAIN]
        now = msgspec.structs.replace(ahead, compacting=self.compacting)
        return self._read(session, now, by, overrides)

    def _now(self, thread: Thread) -> Thread:
        """The thread in its cycle; of one that its file has not told yet nothing is held."""
        return msgspec.structs.replace(
            thread,
            current=None if thread.cycle < self.cycle else thread.current,
            cycle=self.cycle,
            compacting=self.compacting or thread.compacting,
        )

    def _read(self, session: Session, now: Thread, by: str, overrides: Overrides) -> Reading:
        model, most = self.model, self.most
        return read(session, now, by, overrides, self.settings, model=model, most_sent=most)
