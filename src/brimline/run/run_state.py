"""The state of one run, from its stream and its transcript, and the totals of its calls."""

from collections.abc import Iterable, Sequence

import msgspec

from brimline.agents import capabilities_of, get_agent, source
from brimline.agents.transcripts.source import START, Cursor, Places, Transcript
from brimline.context.client_report import Quotas
from brimline.context.events import MAIN, Call, Event, Spent
from brimline.context.prices import sum_costs
from brimline.context.tracker import Reading, Session, Thread, fold, read
from brimline.context.usage import ZERO, Usage
from brimline.context.window import NO_CLIENT_SETTINGS, NO_OVERRIDES, ClientSettings, Overrides
from brimline.files.project_folder import resolve_path
from brimline.run.result import SessionResult
from brimline.run.stream_reader import StreamReader
from brimline.sessions.files import READ_ERRORS

# words of a command that resumes an older session
RESUME_WORDS = frozenset(
    {"-c", "--continue", "-r", "--resume", "resume", "--last", "-s", "--session"}
)
CLOCK_SLACK_S = 0.05  # file times are of a coarser clock, and may lag by this


class RunClues(msgspec.Struct, frozen=True):
    """What is known of a run whose transcript is looked for; `since` is when it started."""

    agent: str
    places: Places
    folder: str
    since: float
    command: Sequence[str]

    def is_named(self, session: str | None) -> bool:
        """Whether the command names this session, as a word or as an option's value."""
        return session is not None and any(
            word == session or word.endswith(f"={session}") for word in self.command
        )


class TranscriptLocator:
    """Finds a run's transcript and reads on in it; `session` is its content, if found."""

    def __init__(self, clues: RunClues) -> None:
        self._clues = clues
        self._transcript: Transcript | None = None
        self._cursor: Cursor = START
        self.session: Session | None = None

    def read_new(self, session: str | None, last: bool = False) -> None:
        """Read what is new; `session` is the session's id, if known.

        The last call also reads the subagents' transcripts. Unreadable files are skipped: they may
        be half written.
        """
        try:
            if self._transcript is None:
                self._find(session)
            else:
                self._read_on()
            if last and self._transcript is not None:
                self._add_subagents(self._transcript)
        except READ_ERRORS:
            return

    def _find(self, session: str | None) -> None:
        clues = self._clues
        mains = [t for t in get_agent(clues.agent).transcripts(clues.places) if t.thread == MAIN]
        for transcript in _candidates(mains, clues, session):
            self._cursor, read = _read(transcript, START, Session(agent=clues.agent))
            if session is not None or _belongs_to_run(transcript, read, clues):
                self._transcript, self.session = transcript, read
                return

    def _read_on(self) -> None:
        if self._transcript is not None and self.session is not None:
            self._cursor, self.session = _read(self._transcript, self._cursor, self.session)

    def _add_subagents(self, own: Transcript) -> None:
        for other in get_agent(own.agent).transcripts(self._clues.places):
            if other.session == own.session and other.thread != MAIN and self.session is not None:
                _, self.session = _read(other, START, self.session)


def _candidates(
    mains: Iterable[Transcript], clues: RunClues, session: str | None
) -> Iterable[Transcript]:
    """The session of this id; else those written since the run started, newest first."""
    if session is not None:
        return [t for t in mains if t.session == session]
    fresh = [t for t in mains if t.modified >= clues.since - CLOCK_SLACK_S]
    named = [t for t in fresh if clues.is_named(t.session)]
    return named or sorted(fresh, key=lambda t: -t.modified)


def _read(transcript: Transcript, cursor: Cursor, session: Session) -> tuple[Cursor, Session]:
    reader = source(transcript.agent).read(transcript, cursor)
    project = session.project
    folded = fold(session, reader)
    if project is not None:
        folded = msgspec.structs.replace(folded, project=project)
    return reader.cursor, folded


def _belongs_to_run(transcript: Transcript, session: Session, clues: RunClues) -> bool:
    """Whether a session is in the run's folder and started with it, or is resumed by it."""
    if clues.is_named(transcript.session):
        return True
    project = transcript.project or session.project
    if project is None or resolve_path(project) != resolve_path(clues.folder):
        return False
    view = RunView(session, "transcript", clues.since)
    is_resumed = not RESUME_WORDS.isdisjoint(clues.command)
    return bool(view.calls) and (is_resumed or len(view.calls) == len(view.main.calls))


class RunView(msgspec.Struct, frozen=True):
    """The part of a session that belongs to a run, by its stream or its transcript.

    `since` is when the run started: a transcript may be older. A stream has none.
    """

    session: Session
    source: str
    since: float | None = None

    @property
    def main(self) -> Thread:
        return self.session.threads.get(MAIN) or Thread(MAIN)

    @property
    def calls(self) -> list[Call]:
        return self._calls_of_run(self.main)

    @property
    def all_calls(self) -> list[Call]:
        return [
            call for thread in self.session.threads.values() for call in self._calls_of_run(thread)
        ]

    @property
    def total(self) -> Usage | None:
        """All tokens of this run, or None if there are none."""
        total = sum((each.usage for each in (*self.all_calls, *self.spendings)), ZERO)
        return total if total.held else None

    @property
    def spendings(self) -> list[Spent]:
        """Tokens of this run without an occupancy."""
        threads = self.session.threads.values()
        spendings = (spent for thread in threads for spent in thread.billed_spendings)
        return [each for each in spendings if is_since(each, self.since)]

    def _calls_of_run(self, thread: Thread) -> list[Call]:
        return calls_since(thread.calls.values(), self.since)


def calls_since(calls: Iterable[Call], at: float | None) -> list[Call]:
    """The calls since a time, and those without a time."""
    return [call for call in calls if is_since(call, at)]


def is_since(event: Event, at: float | None) -> bool:
    """Whether an event is not before a time; one without a time is not."""
    return at is None or event.at is None or event.at >= at


def list_price(view: RunView) -> float | None:
    """The cost by list prices, else by the client; None without calls, or if one has no price."""
    return sum_costs([*view.all_calls, *view.spendings])


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

    @property
    def first_sent(self) -> int | None:
        """What the main thread's first call sent."""
        calls = self._best_view.calls
        return calls[0].usage.sent if calls else None

    @property
    def quotas(self) -> Quotas | None:
        """The account's quotas, as the client reported them last."""
        transcript = self._transcript_view
        return self.stream.session.quotas or (transcript.session.quotas if transcript else None)

    @property
    def compaction_count(self) -> int:
        """How often the client compacted the main thread."""
        return sum(not each.inferred for each in self._best_view.main.compactions)

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
        """The stream if it suffices and its calls have a model, else a transcript with calls."""
        stream, transcript = self._stream_view, self._transcript_view
        is_incomplete = stream.main.model is None or not self._stream_suffices
        if is_incomplete and transcript is not None and transcript.calls:
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
