"""Which session was cleared when a process begins a new one: clients give that one another id."""

from typing import NamedTuple

from brimline.bounded_dict import BoundedDict
from brimline.events import MAIN
from brimline.observations import Observation

# The process that takes in those whose parent is gone; it runs no agent, and there is no 0.
INIT = 1

NONE = 0  # in place of a process: the session was cleared, and only its end was reported since

MOST = 4_096  # sessions that are remembered


class LastContact(NamedTuple):
    """The last word of a session: which process said it, whose and where that is, and when."""

    pid: int
    agent: str
    project: str | None
    at: float
    ended: bool

    def may_precede(self, pid: int, observation: Observation) -> bool:
        """Whether the process may have had this session before; another may have got its number."""
        of = (self.pid, self.agent, self.project)
        return of == (pid, observation.agent, observation.project) and self.at <= observation.at


class ClearDetection:
    """The last word of each session, the latest last.

    Some clients tell the end of a session when it is cleared, others when they end themselves.
    """

    def __init__(self) -> None:
        self._words = BoundedDict[str, LastContact](MOST)

    def predecessor(self, pid: int, observation: Observation) -> str | None:
        """What a session was before this clear; None where that is not sure."""
        if observation.kind != "cleared" or pid <= INIT:
            return None
        others = self._others(pid, observation)
        if others and self._words[others[-1]].ended:
            return others[-1]
        live = [session for session in others if not self._words[session].ended]
        return live[0] if len(live) == 1 else None

    def record(self, pid: int, observation: Observation) -> None:
        """Record a hook of a process, unless a later one is known."""
        if observation.thread != MAIN or pid <= INIT:
            return
        known, ended = self._words.get(observation.session), observation.kind == "ended"
        if known is not None and (known.at >= observation.at or (ended and known.pid == NONE)):
            return
        if observation.kind == "cleared":
            for session in self._others(pid, observation):
                self._words[session] = self._words[session]._replace(pid=NONE)
        self._words[observation.session] = LastContact(
            pid, observation.agent, observation.project, observation.at, ended
        )

    def _others(self, pid: int, observation: Observation) -> list[str]:
        """The sessions that the process may have had before this one."""
        return [
            session
            for session, word in self._words.items()
            if session != observation.session and word.may_precede(pid, observation)
        ]
