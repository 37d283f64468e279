"""A session as the monitor knows it: what its files tell, and what its hooks told before."""

from collections.abc import Mapping
from typing import NamedTuple

from brimline.events import MAIN
from brimline.monitor.client_reported import ClientReported
from brimline.monitor.snapshot import Snapshot
from brimline.monitor.transcript_follower import SessionFiles
from brimline.observations import UNPROMPTED, EnvironmentVariables, Observation, Pane
from brimline.store.rows import ThreadRow
from brimline.tracker import Reading, Session, Thread
from brimline.windows import NO_CLIENT_SETTINGS, NO_OVERRIDES, ClientSettings, Overrides

SEQ_A_CALL = 1_000
"""More can be told between two calls than anyone will."""

NO_THREAD = Thread(MAIN)
LONGEST = 300.0
"""So many seconds a compaction may take while the client tells the same figure again."""


class Past(NamedTuple):
    """Where a session was when another monitor watched it, and the calls that it had made."""

    cycle: int = 0
    seq: int = 0
    calls: int = 0


class SessionState:
    """One session. Its cycle never goes back: hooks tell a compaction before the transcript does.

    `cycle` is the main thread's as it is stored; a transcript that has not told the last compaction
    yet is behind it, and what it says is held is then not true any more.
    """

    def __init__(self, agent: str, session: str, past: Past | None = None) -> None:
        self.agent, self.id = agent, session
        self.cycle, self.seq, self._known_calls = past or Past()
        self.is_new = past is None
        self.compacting = self.cleared = False
        self.model: str | None = None
        self.version: str | None = None
        self._folder: str | None = None
        self.parent: str | None = None
        self.pane: Pane | None = None
        self.ended_at: float | None = None
        self.host: str | None = None
        self.env: EnvironmentVariables | None = None
        self.last: Mapping[str, Reading] = {}
        self._read: Snapshot | None = None
        self.claim = ClientReported()
        self.unheard = 0
        self.files = SessionFiles(agent)
        self._calls_then, self._cycle_then, self._compacting_at = 0, 0, 0.0

    def recall(self, row: ThreadRow, seen_at: float) -> None:
        """The main thread as it was when it was last seen."""
        self.compacting, self._compacting_at = row.state == "compacting", seen_at
        self._cycle_then = row.cycle
        self.claim.recall(row, self.model)

    async def hear(self, heard: Observation) -> None:
        """Take in what is not in the files, or not yet."""
        self._describe(heard)
        if heard.transcript:
            self.files.name(heard.transcript)
        calls, cycle = self.calls or self._known_calls, self.cycle
        if heard.events:
            self.files.push(heard.events)
        await self.files.catch_up(heard.file)
        made = max(0, self.calls - calls)  # after a restart the files may be still to be read
        hooked = heard.transcript is not None or heard.what not in UNPROMPTED
        self.unheard = 0 if hooked else self.unheard + made
        self.cleared = False
        if heard.thread == MAIN:
            self._happens(heard)
        self.cycle = max(self.cycle, self._main.cycle)
        self.claim.end(self.cycle)
        self.cleared = self.cleared or self._was_cleared(cycle)
        self._lives_or_ends(heard, made > 0)

    def _happens(self, heard: Observation) -> None:
        """What happened to the main thread."""
        match heard.what:
            case "compacting" if not self._is_passed(heard):
                self.compacting, self._compacting_at = True, heard.at
                self._calls_then, self._cycle_then = self.calls, self._main.cycle
            case "compacted" if not self._is_recorded(heard):
                self._end_cycle(heard)
            case "cleared":
                self._clear(heard)
            case "status" if not self._is_passed(heard):
                self._status(heard)
            case "prompt" | "tool" | "stopped" | "started":
                self.compacting = False
            case "wrote" | "pushed" if self.calls > self._calls_then:
                self.compacting = False
            case _:
                pass

    def _was_cleared(self, before: int) -> bool:
        """Whether the files tell of a clear, and of no compaction, that ended the last cycle."""
        main = self._main
        if self.cycle == before or main.cycle < self.cycle:
            return False
        return all(made.cycle != self.cycle - 1 for made in main.compactions)

    def _lives_or_ends(self, heard: Observation, called: bool) -> None:
        """A session that ended lives again when its hooks tell of it, or it makes a call.

        That a subagent ends tells neither.
        """
        if (heard.what == "ended" and heard.thread == MAIN) or self._main.ended:
            self.ended_at = heard.at
        elif called or heard.what not in (*UNPROMPTED, "ended"):
            self.ended_at = None

    def _describe(self, heard: Observation) -> None:
        self.model = heard.model or self.model
        self.version = heard.version or self.version
        self._folder = self._folder or heard.project
        self.parent = heard.parent or self.parent
        self.pane = heard.pane or self.pane
        self.host = heard.host or self.host
        self.env = self.env if heard.env is None else heard.env

    def _is_passed(self, heard: Observation) -> bool:
        """Whether the transcript tells of a later time than what is told late."""
        return heard.late and (self._main.at or 0.0) > heard.at

    def _is_recorded(self, heard: Observation) -> bool:
        """Whether a compaction that is told late is in the transcript, as it is by then."""
        return heard.late and self.folded.records_compactions

    def _end_cycle(self, heard: Observation) -> None:
        """A compaction is told up to three times, before and after its record: it ends one cycle.

        That is the one before its record where no call came after that, else the present one.
        """
        main = self._main
        if main.calls:
            ended = main.cycle - 1 if main.call_count in main.cycle_ends else main.cycle
        else:
            ended = self.cycle if self.claim.call or self.compacting else self.cycle - 1
        self.compacting, self.cycle = False, max(self.cycle, ended + 1)
        self.claim.cut(heard, self.cycle)

    def _clear(self, heard: Observation) -> None:
        """A clear ends the cycle, where there was anything in it to be cleared."""
        before = self.cycle
        self._end_cycle(heard)
        self.cleared = self.cycle > before

    def _status(self, heard: Observation) -> None:
        """The client's own figures; one that tells another call compacts no more.

        While it compacts it tells the last one again; that for long is no compaction any more, nor
        is it one where its file tells of a call after it.
        """
        self.cycle = max(self.cycle, self._main.cycle)
        if self.compacting and not self._main.calls and self.claim.fell(heard):
            self._end_cycle(heard)
        again = self.claim.repeats(heard) and heard.at - self._compacting_at < LONGEST
        self.claim.take(heard, self.model, self._main, self.cycle)
        over = self._main.cycle > self._cycle_then and self._main.current_call is not None
        self.compacting = not over and self.compacting and (again or self.claim.call is None)

    @property
    def project(self) -> str | None:
        """Where the session began; an agent's present folder may be another by now."""
        return self.folded.project or self._folder

    @project.setter
    def project(self, folder: str | None) -> None:
        self._folder = folder

    @property
    def folded(self) -> Session:
        """What the files tell so far."""
        return self.files.session

    def snapshot(self, settings: ClientSettings) -> Snapshot:
        """What its readings, its rows and its signals are made from now."""
        claim = self.claim
        return Snapshot(
            session=self.folded,
            agent=self.agent,
            version=self.version,
            settings=settings,
            model=self.model,
            cycle=self.cycle,
            compacting=self.compacting,
            client_call=claim.ahead(self._main, self.cycle),
            client_source=claim.by,
            client_window=claim.window,
            client_most_sent=claim.most,
            cleared=self.cleared,
            project=self._folder,
            parent=self.parent,
            host=self.host,
            ended_at=self.ended_at,
        )

    @property
    def doubted(self) -> bool:
        """Whether its sources do not agree, or its hooks tell nothing: time may make a signal."""
        return self.unheard > 0 or self.claim.comparison.since is not None

    @property
    def _main(self) -> Thread:
        return self.files.session.threads.get(MAIN) or NO_THREAD

    @property
    def calls(self) -> int:
        """The unique calls of the main thread so far."""
        return self._main.call_count

    def model_of(self, thread: str) -> str | None:
        """The model of a thread's last call; before its first one what hooks tell."""
        known = self.folded.threads.get(thread)
        return known.model if known and known.calls else self.model

    @property
    def begun(self) -> float | None:
        """When the first call of the main thread was made."""
        return self._main.first_at

    def next_seq(self) -> int:
        """The place of what is told now in this session's order: by its calls, then by turn."""
        self.seq = max(self.seq + 1, SEQ_A_CALL * self.calls)
        return self.seq

    def readings(
        self, overrides: Overrides = NO_OVERRIDES, settings: ClientSettings = NO_CLIENT_SETTINGS
    ) -> Mapping[str, Reading]:
        """The reading of every thread, made anew only if something changed."""
        snapshot = self.snapshot(settings)
        if not snapshot.is_same(self._read):
            self.last = snapshot.readings(overrides, self._read, self.last)
            self._read = snapshot
        return self.last

    def release_idle_threads(self, before: float) -> list[str]:
        """Let go of subagents that wrote nothing since a time; which these are."""
        released = [
            name for name in self.files.release_idle(before) if name not in self.folded.threads
        ]
        self.last = {name: last for name, last in self.last.items() if name not in released}
        self._read = None  # it holds the threads too
        return released
