"""Find the session that was cleared when a process begins a new one: clients give it a new id."""

from typing import NamedTuple

from brimline.agents.observations import Observation
from brimline.context.events import MAIN
from brimline.files.bounded_dict import BoundedDict

INIT_PID = 1  # adopts processes whose parent is gone; it runs no agent, and 0 is no process
MAX_SESSIONS = 4_096


class LastContact(NamedTuple):
    """The last hook of a session, and the process that sent it.

    `pid` is None if the session was cleared, and at most its end came since.
    """

    pid: int | None
    agent: str
    project: str | None
    at: float
    ended: bool

    def may_precede(self, pid: int, observation: Observation) -> bool:
        """Whether the process may have had this session before; process ids are reused."""
        contact = (self.pid, self.agent, self.project)
        process = (pid, observation.agent, observation.project)
        return contact == process and self.at <= observation.at


class ClearDetection:
    """The last contact of each session, the latest last.

    Some clients report the end of a session when it is cleared, others when they exit.
    """

    def __init__(self) -> None:
        self._contacts = BoundedDict[str, LastContact](MAX_SESSIONS)

    def predecessor(self, pid: int, observation: Observation) -> str | None:
        """Return the session that this clear ended; None unless it is certain."""
        if observation.kind != "cleared" or pid <= INIT_PID:
            return None
        others = self._others(pid, observation)
        if others and self._contacts[others[-1]].ended:
            return others[-1]
        live = [session for session in others if not self._contacts[session].ended]
        return live[0] if len(live) == 1 else None

    def record(self, pid: int, observation: Observation) -> None:
        """Record a hook of a process, unless a later one is known."""
        if observation.thread != MAIN or pid <= INIT_PID:
            return
        last, ended = self._contacts.get(observation.session), observation.kind == "ended"
        if last is not None and (last.at >= observation.at or (ended and last.pid is None)):
            return
        if observation.kind == "cleared":
            for session in self._others(pid, observation):
                self._contacts[session] = self._contacts[session]._replace(pid=None)
        self._contacts[observation.session] = LastContact(
            pid, observation.agent, observation.project, observation.at, ended
        )

    def _others(self, pid: int, observation: Observation) -> list[str]:
        return [
            session
            for session, contact in self._contacts.items()
            if session != observation.session and contact.may_precede(pid, observation)
        ]
