"""A session as the monitor knows it: what its transcript tells, and what its hooks told before."""

import msgspec

from brimline.events import MAIN, Call, WindowReported
from brimline.monitor.follow import Follower
from brimline.monitor.heard import Heard
from brimline.tracker import Reading, Session, Thread, fold, read
from brimline.usage import Usage
from brimline.windows import NO_OVERRIDES, UNTOLD, ClientSettings, Overrides

EMPTY = Usage(0, 0, 0, 0)
STATUS_CALL = "status line"
SEQ_A_CALL = 1_000
"""More can be told between two calls than anyone will."""


class Watched:
    """One session. Its cycle never goes back: hooks tell a compaction before the transcript does.

    `cycle` is the one that is stored; a transcript that has not told the last compaction yet is
    behind it, and what it says is held is then not true any more.
    """

    def __init__(self, agent: str, session: str, cycle: int = 0, seq: int = 0) -> None:
        self.agent, self.id = agent, session
        self.cycle, self.seq = cycle, seq
        self.compacting = False
        self.model: str | None = None
        self.version: str | None = None
        self.project: str | None = None
        self.parent: str | None = None
        self.stored_calls = 0
        self.last: Reading | None = None
        self._follower: Follower | None = None
        self._before_compaction: int | None = None
        self._calls_then = 0
        self._told: Call | None = None
        self._window: int | None = None

    def hear(self, heard: Heard) -> None:
        """Take in what is not in the transcript, or not yet."""
        self.model = heard.model or self.model
        self.version = heard.version or self.version
        self.project = heard.project or self.project
        self.parent = heard.parent or self.parent
        if heard.transcript and (not self._follower or self._follower.path != heard.transcript):
            self._follower = Follower(self.agent, heard.transcript)
        behind = self._folded.cycle
        if self._follower:
            self._follower.catch_up()
        match heard.what:
            case "compacting":
                self.compacting = True
                self._before_compaction, self._calls_then = behind, len(self._folded.calls)
            case "compacted":
                self._compacted(behind)
            case "status":
                self._status(heard)
            case "prompt" | "tool" | "stopped":
                self.compacting = False
            case _:
                pass
        self.cycle = max(self.cycle, self._folded.cycle)

    def _compacted(self, behind: int) -> None:
        """A compaction is told up to three times; it ends the cycle in which it began."""
        known = self._before_compaction
        if known is None or len(self._folded.calls) > self._calls_then:
            known = self._before_compaction = behind
            self._calls_then = len(self._folded.calls)
        self.compacting, self._told = False, None
        self.cycle = max(self.cycle, known + 1)

    def _status(self, heard: Heard) -> None:
        """The client's own figures, ahead of the transcript; none before a call, 0 after a
        compaction: neither tells what is held."""
        self._window = heard.window or self._window
        if heard.usage is None or heard.usage == EMPTY:
            self._told = None
            return
        self.compacting = False
        self._told = Call(at=heard.at, id=STATUS_CALL, usage=heard.usage, model=self.model)

    @property
    def folded(self) -> Session:
        """What the transcript tells so far."""
        return self._follower.session if self._follower else Session(agent=self.agent)

    @property
    def _folded(self) -> Thread:
        return self.folded.threads.get(MAIN) or Thread(MAIN)

    @property
    def calls(self) -> int:
        """The unique calls so far."""
        return len(self._folded.calls)

    def next_seq(self) -> int:
        """The place of what is told now in this session's order: by its calls, then by turn."""
        self.seq = max(self.seq + 1, SEQ_A_CALL * self.calls)
        return self.seq

    @property
    def _ahead(self) -> bool:
        """Whether the status line tells of a call that the transcript has not yet."""
        last = self._folded.holding
        if self._told is None:
            return False
        return last is None or self._behind or last.usage.sent != self._told.usage.sent

    @property
    def _behind(self) -> bool:
        """Whether the transcript has not told the last compaction yet."""
        return self._folded.cycle < self.cycle

    def reading(
        self, overrides: Overrides = NO_OVERRIDES, settings: ClientSettings = UNTOLD
    ) -> Reading:
        """The reading of its own thread, from whichever source is ahead."""
        session = msgspec.structs.replace(
            self.folded,
            agent=self.agent,
            version=self.folded.version or self.version,
        )
        if self._window is not None:
            session = fold(session, [WindowReported(tokens=self._window)])
        source, thread = "transcript", self._now(session)
        if self._ahead and self._told is not None:
            source = "status line"
            told = msgspec.structs.replace(self._told, model=self.model or thread.model)
            held = msgspec.structs.replace(thread, current=None, cycle=self.cycle)
            session = msgspec.structs.replace(session, threads={MAIN: held})
            session = fold(msgspec.structs.replace(session, records_compactions=True), [told])
            thread = msgspec.structs.replace(
                session.threads[MAIN], compacting=self.compacting, cycle=self.cycle
            )
        return read(session, thread, source, overrides, settings, model=self.model)

    def _now(self, session: Session) -> Thread:
        thread = session.threads.get(MAIN) or Thread(MAIN)
        current = None if self._behind else thread.current
        return msgspec.structs.replace(
            thread, current=current, cycle=self.cycle, compacting=self.compacting
        )
