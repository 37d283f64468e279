"""A transcript that is followed while its agent writes it: only what is new is read."""

import os

from brimline.errors import UnreadableTranscript
from brimline.sources import source
from brimline.sources.base import START, Cursor, Transcript
from brimline.tracker import Session, fold


class Follower:
    """One transcript, and the session that was folded of it so far."""

    def __init__(self, agent: str, path: str) -> None:
        self.agent = agent
        self.path = path
        self.session = Session(agent=agent)
        self._cursor: Cursor = START
        self._seen: tuple[int, int] | None = None

    def catch_up(self) -> None:
        """Read what was written since; a file that is not there yet, or not to be read, is nothing.

        A file that became another one, or shorter, is read from its beginning.
        """
        try:
            status = os.stat(self.path)
            now = (status.st_ino, status.st_size)
            if now == self._seen:
                return
            if self._seen and (now[0] != self._seen[0] or now[1] < self._seen[1]):
                self.session, self._cursor = Session(agent=self.agent), START
            made = Transcript(self.agent, self.path, status.st_mtime, status.st_size)
            reader = source(self.agent).read(made, self._cursor, how="quick")
            self.session = fold(self.session, reader)
            self._cursor, self._seen = reader.cursor, now
        except (OSError, UnreadableTranscript):
            return
