"""The last hook of each session, and the process that sent it: the client that runs the session."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from brimline.agents.observations import Observation, Pane
from brimline.context.events import MAIN
from brimline.daemon.process_tree import ProcessStart, has_run_since
from brimline.errors import MalformedJson
from brimline.files.bounded_dict import BoundedDict
from brimline.files.foreign_json import decode_json
from brimline.files.regular_file import read_regular_file

INIT_PID = 1  # adopts processes whose parent is gone; it runs no agent, and 0 is no process
MAX_SESSIONS = 4_096
CONTACTS_NAME = "contacts.json"  # in the state folder, for the next daemon
MAX_FILE_BYTES = 4 << 20


class LastContact(NamedTuple):
    """The last hook of a session, and the process that sent it.

    `pid` is None if the session was cleared, and at most its end came since. `pane` is where the
    process runs.
    """

    pid: int | None
    agent: str
    project: str | None
    at: float
    ended: bool
    pane: Pane | None = None

    def may_precede(self, pid: int, observation: Observation) -> bool:
        """Whether the process may have had this session before; process ids are reused."""
        contact = (self.pid, self.agent, self.project)
        process = (pid, observation.agent, observation.project)
        return contact == process and self.at <= observation.at


class SessionContacts:
    """Finds the sessions of a process or pane, and the one that was cleared, by their last hooks.

    Clients give the one after a clear another id. Some report the end of a session when it is
    cleared, others when they exit. Who could not write what `encode_changed` returned sets
    `is_saved` to False.
    """

    def __init__(self) -> None:
        self._contacts = BoundedDict[str, LastContact](MAX_SESSIONS)
        self.is_saved = True

    def load(self, state: Path) -> None:
        """Begin with what the daemon before saved, as far as its processes still run.

        An unreadable file has nothing.
        """
        with suppress(OSError, ValueError, MalformedJson):
            data = read_regular_file(state / CONTACTS_NAME, MAX_FILE_BYTES)
            for session, contact in decode_json(data, dict[str, LastContact]).items():
                if contact.pid is None or has_run_since(contact.pid, contact.at):
                    self._contacts[session] = contact

    def encode_changed(self) -> bytes | None:
        """Return what `load` reads, which then counts as saved; None if it is saved."""
        if self.is_saved:
            return None
        self.is_saved = True
        return msgspec.json.encode(dict(self._contacts))

    def predecessor(self, pid: int, observation: Observation) -> str | None:
        """Return the session that this clear ended; None unless it is certain."""
        if observation.kind != "cleared" or pid <= INIT_PID:
            return None
        others = self._others(pid, observation)
        if others and self._contacts[others[-1]].ended:
            return others[-1]
        live = [session for session in others if not self._contacts[session].ended]
        return live[0] if len(live) == 1 else None

    def in_process(self, process: ProcessStart) -> list[str]:
        """Return the sessions that a process runs: neither ended nor cleared."""
        return [
            session
            for session, contact in self._contacts.items()
            if contact.pid == process.pid and contact.at >= process.at and not contact.ended
        ]

    def in_pane(self, pane: Pane) -> list[str]:
        """Return the session of the last hook from a pane, unless it has ended."""
        last = max(
            ((contact.at, session) for session, contact in self._contacts.items()
             if contact.pane == pane),
            default=None,
        )  # fmt: skip
        return [last[1]] if last and not self._contacts[last[1]].ended else []

    def __contains__(self, session: str) -> bool:
        return session in self._contacts

    def record(self, pid: int, observation: Observation, pane: Pane | None = None) -> None:
        """Record a hook of a process, unless a later one is known."""
        if observation.thread != MAIN or pid <= INIT_PID:
            return
        last, ended = self._contacts.get(observation.session), observation.kind == "ended"
        if last is not None and (last.at >= observation.at or (ended and last.pid is None)):
            return
        if observation.kind == "cleared":
            for session in self._others(pid, observation):
                self._contacts[session] = self._contacts[session]._replace(pid=None)
        contact = LastContact(
            pid, observation.agent, observation.project, observation.at, ended, pane
        )
        self._contacts[observation.session] = contact
        if last is None or contact != last._replace(at=contact.at):
            self.is_saved = False

    def _others(self, pid: int, observation: Observation) -> list[str]:
        return [
            session
            for session, contact in self._contacts.items()
            if session != observation.session and contact.may_precede(pid, observation)
        ]
