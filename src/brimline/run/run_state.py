"""The state of one run, from its stream and its transcript."""

from collections.abc import Sequence

import msgspec

from brimline.agents import capabilities_of, source
from brimline.agents.transcripts.source import Places
from brimline.context.tracker import Reading, Session, read
from brimline.context.usage import Usage
from brimline.context.window import NO_CLIENT_SETTINGS, NO_OVERRIDES, ClientSettings, Overrides
from brimline.run.result import SessionResult
from brimline.run.stream_reader import StreamReader
from brimline.run.totals import RunView, list_price
from brimline.run.transcript_locator import RunClues, TranscriptLocator


class RunTarget(msgspec.Struct, frozen=True):
    """A command, its folder, and the user's settings for it."""

    command: Sequence[str]
    places: Places
    folder: str
    agent: str | None = None
    overrides: Overrides = NO_OVERRIDES
    until: str | None = None


class RunState:
    """A run while it runs and at its end; `started` is in seconds since the epoch."""

    def __init__(self, target: RunTarget, started: float) -> None:
        self._target = target
        self._started = int(started * 1_000) / 1_000  # the clients write times in milliseconds
        self._locator: TranscriptLocator | None = None
        self._settings: tuple[str | None, ClientSettings] | None = None
        self.stream = StreamReader(target.agent, target.until)

    @property
    def _stream_suffices(self) -> bool:
        return capabilities_of(self.agent).stream_reports_context

    @property
    def agent(self) -> str | None:
        return self.stream.agent

    @property
    def session_id(self) -> str | None:
        transcript = self._transcript_view
        return self.stream.session.id or (transcript.session.id if transcript else None)

    @property
    def model(self) -> str | None:
        return self._best_view.main.model

    @property
    def call_count(self) -> int:
        return len(self._best_view.calls)

    def read_transcript(self) -> None:
        """Read on in the transcript, if the stream alone is not enough."""
        if not self._stream_suffices or not self.stream.is_stream:
            self._read_transcript(last=False)

    def close(self) -> None:
        """Read the last line, and the transcript if something is missing."""
        self.stream.close()
        has_totals = self.stream.outcome.billed is not None or self._stream_is_complete
        if not self._stream_suffices or not has_totals:
            self._read_transcript(last=True)

    def _read_transcript(self, last: bool) -> None:
        if self.agent is None:
            return
        if self._locator is None:
            target = self._target
            self._locator = TranscriptLocator(
                RunClues(self.agent, target.places, target.folder, self._started, target.command)
            )
        self._locator.read_new(self.stream.session.id, last)

    @property
    def _stream_view(self) -> RunView:
        return RunView(self.stream.session, "stream")

    @property
    def _transcript_view(self) -> RunView | None:
        session = self._locator.session if self._locator else None
        return RunView(session, "transcript", self._started) if session else None

    @property
    def _stream_is_complete(self) -> bool:
        """Whether the stream has every call with its final usage."""
        if not self._stream_suffices:
            return False
        calls = self._stream_view.all_calls
        return bool(calls) and all(call.final for call in calls)

    @property
    def _best_view(self) -> RunView:
        """The stream if it has calls with their model, else the transcript if it has calls."""
        stream, transcript = self._stream_view, self._transcript_view
        if stream.main.model is None and transcript is not None and transcript.calls:
            return transcript
        return stream

    def reading(self) -> Reading | None:
        """The main thread's reading now; None if no agent is known."""
        if self.agent is None:
            return None
        view = self._best_view
        settings = self._client_settings(view.session)
        return read(view.session, view.main, view.source, self._target.overrides, settings)

    def _client_settings(self, session: Session) -> ClientSettings:
        """The client's own settings, read once for each project."""
        if self.agent is None:
            return NO_CLIENT_SETTINGS
        project = session.project or self._target.folder
        if self._settings is None or self._settings[0] != project:
            self._settings = project, source(self.agent).settings(self._target.places, project)
        return self._settings[1]

    def result(self, duration: float, failed: bool) -> SessionResult:
        outcome, reading, billed = self.stream.outcome, self.reading(), self._billed()
        sent = [call.usage.sent for call in self._best_view.calls]
        return SessionResult(
            duration_ms=round(duration * 1_000),
            total_cost_usd=outcome.cost or self._list_price(),
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
    def _billing_view(self) -> RunView:
        """The more complete record of what was billed."""
        if self._stream_is_complete:
            return self._stream_view
        return self._transcript_view or self._stream_view

    def _list_price(self) -> float | None:
        """By the stream's total if it has one: it includes calls that are in no transcript."""
        if capabilities_of(self.agent).stream_ends_with_total:
            return list_price(self._stream_view) or list_price(self._billing_view)
        return list_price(self._billing_view)

    def _billed(self) -> Usage | None:
        if self.stream.outcome.billed is not None:
            return self.stream.outcome.billed
        if capabilities_of(self.agent).stream_ends_with_total and (
            total := self._stream_view.total
        ):
            return total
        return self._billing_view.total or self._stream_view.total
