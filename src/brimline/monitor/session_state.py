"""The state machine of one session: its files, and what its hooks reported before them."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from brimline.agents.observations import (
    WITHOUT_REPLY,
    EnvironmentVariables,
    Observation,
    ObservationKind,
    Pane,
)
from brimline.context.cache_misses import compute_prompt_cache
from brimline.context.client_report import ClientReport, PromptCache, Quotas
from brimline.context.events import MAIN
from brimline.context.forecast import CallsLeft, forecast
from brimline.context.tracker import Reading, Session, Thread
from brimline.context.window import NO_CLIENT_SETTINGS, NO_OVERRIDES, ClientSettings, Overrides
from brimline.monitor.client_figures import ClientReported, PendingInputs
from brimline.monitor.snapshot import PROGRAM, TELEMETRY, TRANSCRIPT, ReadingInputs, Snapshot
from brimline.monitor.transcript_follower import FollowedFiles
from brimline.store.rows import ThreadRow

SEQ_PER_CALL = 1_000  # more than the observations between two calls

# A turn is under way, or a program makes calls.
ACTIVE_KINDS: frozenset[ObservationKind] = frozenset({"prompt", "tool", "stopped", "pushed"})

NO_THREAD = Thread(MAIN)
ReportT = TypeVar("ReportT", Quotas, PromptCache)
MAX_COMPACTION_S = 300.0  # a client that repeats its figure for longer does not compact


class SessionState:
    """One session. Its cycle never goes back: hooks report a compaction before the transcript.

    `cycle` is the main thread's as stored. While the transcript does not contain the last
    compaction yet, what is held is unknown. `_first_seen_at` is set until the session has records
    of its own. `has_hooks`, `takes_messages`, `is_active`: since it is in memory, a hook or status
    line of it came, its program took messages, a turn of it was under way. `has_lost_calls`: its
    file has fewer calls than were known.
    """

    def __init__(self, agent: str, session: str) -> None:
        self.agent, self.id = agent, session
        self.cycle = self.seq = self._stored_calls = 0
        self.is_new = True
        self._first_seen_at: float | None = None
        self.compacting = self.cleared = False
        self.model: str | None = None
        self.version: str | None = None
        self._folder: str | None = None
        self.parent: str | None = None
        self.manager_id: str | None = None
        self.machine: str | None = None  # whose daemon reports it to a fleet's server
        self.pane: Pane | None = None
        self.ended_at: float | None = None
        self.has_just_ended = False  # by the last observation
        self.last_prompt = ""  # of the main thread; the transcript may not have it yet
        self.host: str | None = None
        self.user: str | None = None
        self.team: str | None = None
        self.env: EnvironmentVariables | None = None
        self.is_interactive: bool | None = None
        self.last_readings: Mapping[str, Reading] = {}
        self._last_snapshot: Snapshot | None = None
        self.client = ClientReported()
        self.calls_without_hook = 0
        self.has_hooks = self.takes_messages = self.is_active = False
        self.has_lost_calls = False
        self.files = FollowedFiles(agent)
        self._inputs = PendingInputs()
        self._is_pushed = self.is_telemetry = self.replaces_telemetry = False
        self._calls_at_compaction, self._cycle_at_compaction, self._compacting_at = 0, 0, 0.0

    def restore(self, row: ThreadRow, seen_at: float) -> None:
        self.cycle, self.seq, self._stored_calls = row.cycle, row.seq, row.calls
        self.compacting, self._compacting_at = row.state == "compacting", seen_at
        self._cycle_at_compaction = row.cycle
        self._is_pushed, self.is_telemetry = row.source == PROGRAM, row.source == TELEMETRY
        if not row.calls:  # its transcript had not been written
            self._first_seen_at = seen_at
        self.client.restore(row, self.model)

    async def apply(self, observation: Observation) -> None:
        """Read the files on, and apply what they do not contain yet."""
        if self.is_new and observation.kind != "pushed":  # their times are a program's own
            self._first_seen_at = observation.at
        elif (self._main.at or 0.0) >= (self._first_seen_at or 0.0):
            self._first_seen_at = None  # what was inherited is read
        self._update_description(observation)
        if self.is_telemetry and (observation.transcript or observation.file):
            self._drop_telemetry()
        calls, cycle = self.calls or self._stored_calls, self.cycle
        if observation.transcript:
            self.files.set_transcript(observation.transcript)
        self.is_telemetry = self.is_telemetry or observation.is_telemetry
        self._is_pushed = self._is_pushed or observation.kind == "pushed"
        if observation.events:
            self.files.add_events(observation.events)
        await self.files.catch_up(observation.file)
        is_read = self.files.has_files and not self.files.is_behind
        self.has_lost_calls = is_read and self.calls < calls
        if observation.added_bytes:
            self._inputs.add(observation.thread, observation.at, observation.added_bytes)
        self._inputs.update(self.folded.threads)
        new_calls = max(0, self.calls - calls)  # after a restart the files may be still to be read
        # Setup installs the status line together with the hooks.
        self.has_hooks = self.has_hooks or observation.kind not in WITHOUT_REPLY
        is_turn = observation.kind in ACTIVE_KINDS and not observation.is_late
        self.is_active = self.is_active or is_turn
        from_hook = observation.transcript is not None or observation.kind not in WITHOUT_REPLY
        # A client with telemetry alone may be on a machine without hooks.
        is_silent = not from_hook and not observation.is_telemetry
        self.calls_without_hook = self.calls_without_hook + new_calls if is_silent else 0
        if observation.thread == MAIN:
            self.last_prompt = observation.prompt or self.last_prompt
            self._apply_event(observation)
        self.cycle = max(self.cycle, self._main.cycle)
        self.client.drop_older_cycles(self.cycle)
        self.cleared = self.cleared or self._was_cleared(cycle)
        self._update_liveness(observation, new_calls > 0)

    def _drop_telemetry(self) -> None:
        """Drop what telemetry reported, as its files are now known: these contain the same calls.

        Its calls have other ids there, so that they would count twice.
        """
        self.files.drop_pushed()
        self.is_telemetry, self.replaces_telemetry = False, True
        self.cycle = self._stored_calls = 0

    def _apply_event(self, observation: Observation) -> None:
        match observation.kind:
            case "compacting" if not self._is_stale(observation):
                self.compacting, self._compacting_at = True, observation.at
                self._calls_at_compaction, self._cycle_at_compaction = self.calls, self._main.cycle
            case "compacted" if not (observation.is_late and self.folded.records_compactions):
                self._end_cycle(observation)
            case "cleared" if not self._is_stale(observation):
                before = self.cycle
                self._end_cycle(observation)
                self.cleared = self.cycle > before  # there was something to be cleared
                if self.cleared and self._main.calls:
                    self.files.add_clear()
            case "status" if not self._is_stale(observation):
                self._apply_status(observation)
            case "prompt" | "tool" | "stopped" | "started" if not self._is_before_compaction(
                observation
            ):
                self.compacting = False
            case "wrote" | "pushed" if self.calls > self._calls_at_compaction:
                self.compacting = False
            case _:
                pass

    def _was_cleared(self, before: int) -> bool:
        """Return whether, by the files, a clear and no compaction ended the last cycle.

        A fall that a client does not record, which records its compactions, is a clear: in plan
        mode Claude Code clears the context, and continues from the plan alone.
        """
        main = self._main
        if self.cycle == before or main.cycle < self.cycle:
            return False
        recorded = self.folded.records_compactions
        return not any(
            each.cycle == self.cycle - 1 and not (each.inferred and recorded)
            for each in main.compactions
        )

    def is_inherited(self, cycle: int) -> bool:
        """Return whether a compaction ended a cycle before this session was first seen.

        A fork copies the history of another session (Claude Code's --fork-session), and writes it
        only after the hook of its start.
        """
        since = self._first_seen_at
        return since is not None and any(
            each.cycle == cycle and each.at is not None and each.at < since
            for each in self._main.compactions
        )

    def _update_liveness(self, observation: Observation, called: bool) -> None:
        """Update `ended_at`: a hook or a call revives a session, a subagent's end does not.

        Copilot CLI writes the last call to its file after the hook of the end (1.0.102).
        """
        at = self._main.at
        was_before_end = self.ended_at is not None and at is not None and at <= self.ended_at
        has_ended = (observation.kind == "ended" and observation.thread == MAIN) or self._main.ended
        self.has_just_ended = has_ended and self.ended_at is None
        if has_ended:
            self.ended_at = observation.at
        elif (called and not was_before_end) or observation.kind not in (*WITHOUT_REPLY, "ended"):
            self.ended_at = None

    def _update_description(self, observation: Observation) -> None:
        self.model = observation.model or self.model
        self.version = observation.version or self.version
        self._folder = self._folder or observation.project
        self.parent = observation.parent or self.parent
        self.manager_id = observation.manager_id or self.manager_id
        self.pane = observation.pane or self.pane
        self.host = observation.host or self.host
        self.user = observation.user or self.user
        self.team = observation.team or self.team
        self.env = self.env if observation.env is None else observation.env
        if observation.is_interactive is not None:
            self.is_interactive = observation.is_interactive

    def _is_stale(self, observation: Observation) -> bool:
        """Return whether a late observation is older than the transcript."""
        return observation.is_late and (self._main.at or 0.0) > observation.at

    def _is_before_compaction(self, observation: Observation) -> bool:
        """Return whether a late hook is older than the compaction that is under way.

        A hook that the daemon did not answer in time comes from the spool up to a second later. If
        it ended the compaction, a level would fire during it, and be cancelled at its end.
        """
        return observation.is_late and observation.at < self._compacting_at

    def _end_cycle(self, observation: Observation) -> None:
        """End a cycle once, however often its compaction is reported, before or after its record.

        It is the cycle before the record if no call came after that, else the present one.
        """
        main = self._main
        if main.calls:
            ended = main.cycle - 1 if main.call_count in main.cycle_ends else main.cycle
        else:
            ended = self.cycle if self.client.call or self.compacting else self.cycle - 1
        self.compacting, self.cycle = False, max(self.cycle, ended + 1)
        self.client.start_cycle(observation, self.cycle)

    def _apply_status(self, observation: Observation) -> None:
        """Apply the client's own figures; a new call ends a compaction.

        While a client compacts it repeats its last figure, for at most MAX_COMPACTION_S.
        """
        self.client.update_report(observation)
        self.cycle = max(self.cycle, self._main.cycle)
        unrecorded = self.compacting and self._main.cycle == self._cycle_at_compaction
        if unrecorded and self.client.has_decreased(observation):
            self._end_cycle(observation)
        is_recent = observation.at - self._compacting_at < MAX_COMPACTION_S
        again = is_recent and self.client.is_repeat(observation)
        self.client.update(observation, self.model, self._main, self.cycle)
        over = self._main.cycle > self._cycle_at_compaction and self._main.current_call is not None
        self.compacting = not over and self.compacting and (again or self.client.call is None)

    @property
    def project(self) -> str | None:
        """The folder where the session began; the agent's present folder may be another."""
        return self.folded.project or self._folder

    @project.setter
    def project(self, folder: str | None) -> None:
        self._folder = folder

    @property
    def client_version(self) -> str | None:
        """The version of the client by the last record of its files, else by its status line."""
        return self.folded.version or self.version

    @property
    def problem(self) -> str | None:
        """Why figures may be missing; empty if they are not, None if no file was read yet."""
        return self.files.describe_problem(self.client_version)

    @property
    def client_report(self) -> ClientReport:
        """What the client reported last; after a later call, the cache's end is computed."""
        report, computed = self.client.report, compute_prompt_cache(self._main)
        return msgspec.structs.replace(
            report,
            quotas=_latest(report.quotas, self.folded.quotas),
            prompt_cache=_latest(report.prompt_cache, computed),
        )

    @property
    def folded(self) -> Session:
        return self.files.session

    def snapshot(self, settings: ClientSettings) -> Snapshot:
        client = self.client
        client_call = client.pending_call(self._main, self.cycle)
        inputs = ReadingInputs(
            agent=self.agent,
            version=self.version,
            settings=settings,
            model=self.model,
            cycle=self.cycle,
            compacting=self.compacting,
            source=self.source,
            client_call=client_call,
            client_source=client.source,
            client_window=client.window_for(self._main),
            client_most_sent=client.most_sent,
        )
        return Snapshot(
            session=self.folded,
            inputs=inputs,
            cleared=self.cleared,
            project=self._folder,
            parent=self.parent,
            manager_id=self.manager_id,
            host=self.host,
            ended_at=self.ended_at,
            client_report=client.report,
            pending=self._inputs.estimate(client_call),
            is_active=self.is_active,
        )

    @property
    def source(self) -> str:
        """Where its events come from: TRANSCRIPT, PROGRAM or TELEMETRY."""
        if self.files.has_files or not (self._is_pushed or self.is_telemetry):
            return TRANSCRIPT
        return TELEMETRY if self.is_telemetry else PROGRAM

    @property
    def has_doubtful_sources(self) -> bool:
        """Whether sources disagree or hooks are silent: a signal may become due with time."""
        return self.calls_without_hook > 0 or self.client.comparison.since is not None

    @property
    def _main(self) -> Thread:
        return self.files.session.threads.get(MAIN) or NO_THREAD

    @property
    def calls(self) -> int:
        """The number of unique calls of the main thread."""
        return self._main.call_count

    def model_of(self, thread: str) -> str | None:
        """Return the model of a thread's last call; before the first one, that of the hooks."""
        known = self.folded.threads.get(thread)
        return known.model if known and known.calls else self.model

    @property
    def first_call_at(self) -> float | None:
        return self._main.first_at

    def next_seq(self) -> int:
        """Return the next sequence number of this session: by its calls, then by turn."""
        self.seq = max(self.seq + 1, SEQ_PER_CALL * self.calls)
        return self.seq

    def readings(
        self, overrides: Overrides = NO_OVERRIDES, settings: ClientSettings = NO_CLIENT_SETTINGS
    ) -> Mapping[str, Reading]:
        """Return the reading of every thread, computed again only if something changed."""
        snapshot = self.snapshot(settings)
        if not snapshot.is_same(self._last_snapshot):
            self.last_readings = snapshot.readings(
                overrides, self._last_snapshot, self.last_readings
            )
            self._last_snapshot = snapshot
        return self.last_readings

    def release_idle_threads(self, before: float) -> list[str]:
        """Release subagents that wrote nothing since a time; return their threads."""
        released = [
            name for name in self.files.release_idle(before) if name not in self.folded.threads
        ]
        self.last_readings = {
            name: reading for name, reading in self.last_readings.items() if name not in released
        }
        self._last_snapshot = None  # it holds the threads too
        return released


def _latest(reported: ReportT | None, known: ReportT | None) -> ReportT | None:
    if reported is None or known is None:
        return known if reported is None else reported
    return known if known.at > reported.at else reported


def calls_left_of(state: SessionState, thread: str, reading: Reading) -> CallsLeft | None:
    """Return how many calls are left until the limit, at the pace of this cycle."""
    known = state.folded.threads.get(thread)
    return forecast(known, reading) if known else None
