"""What is known of one run, from its stream and from its transcript."""

from collections.abc import Sequence

import msgspec

from brimline.agents import source
from brimline.run.result import SessionResult
from brimline.run.stream_reader import Tap
from brimline.run.totals import Seen, price
from brimline.run.transcript_locator import Follower, Hunt
from brimline.tracker import Reading, Session, read
from brimline.transcripts.source import Places
from brimline.usage import Usage
from brimline.windows import NO_CLIENT_SETTINGS, NO_OVERRIDES, ClientSettings, Overrides

FOLLOWED = frozenset({"codex", "gemini", "opencode"})
"""Agents whose stream does not tell how full the window is: totals alone, or no model."""

RUN_TOTALS = frozenset({"gemini"})
"""Agents whose stream ends with what the run was billed in all."""


class Job(msgspec.Struct, frozen=True):
    """What is run, and where: a command, in a folder, under the user's settings."""

    command: Sequence[str]
    places: Places
    folder: str
    agent: str | None = None
    overrides: Overrides = NO_OVERRIDES
    until: str | None = None


class Track:
    """Everything that is known of one run while it runs, and at its end.

    `began` is when, in seconds since the epoch: what a transcript had before is not the run's.
    """

    def __init__(self, job: Job, began: float) -> None:
        self._job = job
        self._began = int(began * 1_000) / 1_000  # the clients write times in milliseconds
        self._follower: Follower | None = None
        self._settings: tuple[str | None, ClientSettings] | None = None
        self.tap = Tap(job.agent, job.until)

    @property
    def agent(self) -> str | None:
        """Whose run it is."""
        return self.tap.agent

    @property
    def session_id(self) -> str | None:
        """The agent's own id of the session."""
        followed = self._transcript
        return self.tap.session.id or (followed.session.id if followed else None)

    @property
    def calls(self) -> int:
        """How many calls the main thread made."""
        return len(self._seen.calls)

    def look(self) -> None:
        """Read what is new in the transcript, where the stream alone does not tell enough."""
        if self.agent in FOLLOWED or not self.tap.streams:
            self._look(last=False)

    def close(self) -> None:
        """Take in what is left: the last line, and the transcript where something is missing."""
        self.tap.close()
        if self.agent in FOLLOWED or (self.tap.outcome.billed is None and not self._whole):
            self._look(last=True)

    def _look(self, last: bool) -> None:
        if self.agent is None:
            return
        if self._follower is None:
            job = self._job
            hunt = Hunt(self.agent, job.places, job.folder, self._began, job.command)
            self._follower = Follower(hunt)
        self._follower.look(self.tap.session.id, last)

    @property
    def _stream(self) -> Seen:
        return Seen(self.tap.session, "stream")

    @property
    def _transcript(self) -> Seen | None:
        session = self._follower.session if self._follower else None
        return Seen(session, "transcript", self._began) if session else None

    @property
    def _whole(self) -> bool:
        """Whether the stream told every call to its end."""
        calls = self._stream.all_calls
        return self.agent not in FOLLOWED and bool(calls) and all(call.final for call in calls)

    @property
    def _seen(self) -> Seen:
        """The stream, if it tells calls and their model; else the transcript, if it has any."""
        stream, transcript = self._stream, self._transcript
        if stream.main.model is None and transcript is not None and transcript.calls:
            return transcript
        return stream

    def reading(self) -> Reading | None:
        """The state of the main thread now; None where it is no agent's run."""
        if self.agent is None:
            return None
        seen = self._seen
        told = self._client_settings(seen.session)
        return read(seen.session, seen.main, seen.source, self._job.overrides, told)

    def _client_settings(self, session: Session) -> ClientSettings:
        """What the user told the client, read once."""
        if self.agent is None:
            return NO_CLIENT_SETTINGS
        project = session.project or self._job.folder
        if self._settings is None or self._settings[0] != project:
            self._settings = project, source(self.agent).settings(self._job.places, project)
        return self._settings[1]

    def result(self, duration: float, failed: bool) -> SessionResult:
        """What the run came to, after so many seconds."""
        outcome, reading, billed = self.tap.outcome, self.reading(), self._billed()
        sent = [call.usage.sent for call in self._seen.calls]
        return SessionResult(
            duration_ms=round(duration * 1_000),
            total_cost_usd=outcome.cost or price(self._bill.all_calls),
            num_turns=(len(sent) or None) if outcome.turns is None else outcome.turns,
            is_error=failed or bool(outcome.failed),
            input_tokens=billed.input if billed else None,
            output_tokens=billed.output if billed else None,
            cache_read_tokens=billed.cache_read if billed else None,
            cache_write_tokens=billed.cache_write if billed else None,
            context_tokens=sent[-1] if sent else None,
            peak_context_tokens=max(sent, default=None),
            context_window=reading.window.tokens if sent and reading and reading.window else None,
        )

    @property
    def _bill(self) -> Seen:
        """The one of the two that tells the more of what was billed."""
        return self._stream if self._whole else self._transcript or self._stream

    def _billed(self) -> Usage | None:
        if self.tap.outcome.billed is not None:
            return self.tap.outcome.billed
        if self.agent in RUN_TOTALS and (total := self._stream.total):
            return total
        return self._bill.total or self._stream.total
