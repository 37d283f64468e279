"""Digest a transcript as it grows: before a compaction only its end is left to be read."""

import os
from collections.abc import Mapping
from threading import Lock

from brimline.agents import get_agent
from brimline.agents.transcripts.lines import Lines, open_transcript
from brimline.files.foreign_json import recover_objects
from brimline.handoff.digest import TranscriptDigest, digest_transcript, extend_digest
from brimline.handoff.draft import MAX_DRAFT_CHARS, render_draft
from brimline.handoff.records import (
    CHUNK_BYTES,
    MAX_WHOLE_FILE_BYTES,
    is_file_of_lines,
    iter_records,
)


class GrowingDigest:
    """The digest of one transcript; each read continues where the last one ended.

    A document, a database and a huge file are read again as a whole. Threads may share it. Its
    methods raise UnknownAgent, UnreadableTranscript and OSError.
    """

    def __init__(self, path: str, session: str, agent: str) -> None:
        self.path = path
        self.offset = 0  # as far as it was read
        self._session = session
        self._agent = agent
        self._lock = Lock()
        self._inode = 0
        self._digest = TranscriptDigest()
        self._reader = get_agent(agent).content_reader()

    def read_on(self) -> None:
        """Read what was appended; a file that was replaced, or is shorter, from its beginning."""
        with self._lock:
            self._read()

    def draft(self, prompt: str = "", most_chars: int = MAX_DRAFT_CHARS) -> str:
        """Read on and return a draft; `prompt` as in `draft_handoff`."""
        with self._lock:
            self._read()
            digest = self._digest.with_message(prompt) if prompt else self._digest
            return render_draft(digest, self._agent, where=self.path, most_chars=most_chars)

    def changed_files(self) -> Mapping[str, float | None]:
        """Read on and return the files that the agent's tools changed, and when."""
        with self._lock:
            self._read()
            return dict(self._digest.changed_files)

    def _read(self) -> None:
        with open_transcript(self.path) as file:
            status = os.fstat(file.fileno())
            if not is_file_of_lines(self.path, file) or status.st_size > MAX_WHOLE_FILE_BYTES:
                records = iter_records(self.path, self._session)
                self._digest = digest_transcript(records, self._agent)
                self.offset = status.st_size
                return
            if status.st_ino != self._inode or status.st_size < self.offset:
                self._restart(status.st_ino)
            file.seek(self.offset)
            lines = Lines(file, self.offset, CHUNK_BYTES)
            try:
                self._digest = extend_digest(self._digest, lines, self._reader)
                objects = recover_objects(lines.rest)  # of a last line that has no end
                self._digest = extend_digest(self._digest, objects, self._reader)
            except BaseException:
                self._restart(0)  # a part of it is in the digest
                raise
            self.offset = lines.offset + (len(lines.rest) if objects else 0)

    def _restart(self, inode: int) -> None:
        self.offset, self._inode = 0, inode
        self._digest = TranscriptDigest()
        self._reader = get_agent(self._agent).content_reader()
