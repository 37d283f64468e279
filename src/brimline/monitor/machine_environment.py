"""The machine that a monitor runs on, and what on it delivers to a session."""

from collections.abc import Sequence

from brimline.agents import agent_names, display_name, get_agent
from brimline.agents.observations import EnvironmentVariables
from brimline.context.events import MAIN
from brimline.context.window import NO_CLIENT_SETTINGS, ClientSettings
from brimline.handoff.pins import Pin
from brimline.monitor.session_state import SessionState
from brimline.monitor.snapshot import PROGRAM, TELEMETRY
from brimline.store.base import Store
from brimline.store.rows import SessionRow, SignalRow


class MonitorEnvironment:
    """What a monitor needs from the machine; this default knows nothing."""

    async def refresh(
        self, agent: str, project: str | None, env: EnvironmentVariables | None
    ) -> None:
        """Refresh what `settings` and `hooks_installed_at` return, if it may have changed."""

    def settings(
        self, agent: str, project: str | None, env: EnvironmentVariables | None
    ) -> ClientSettings:
        """Return the client's settings in a project; `env` is None if its variables are unknown."""
        return NO_CLIENT_SETTINGS

    def hooks_installed_at(self, agent: str, project: str | None) -> float | None:
        """Return when hooks were installed for an agent; None if they are not."""
        return None

    async def can_deliver(self, agent: str, project: str | None, is_document: bool) -> bool:
        """Return whether hooks, or a pane for messages, reach an agent in a project."""
        return False

    def is_muted(self, session: str) -> bool:
        """Return whether no messages may be given to a session now."""
        return False

    async def pins_of(self, session: str, project: str | None) -> Sequence[Pin] | None:
        """Return what the user pinned for a session; None if it cannot be read in time."""
        return ()

    async def add_pins(self, session: str, texts: Sequence[str], at: float) -> Sequence[str]:
        """Pin what the user wrote for a session; return why some could not be."""
        return ()

    async def continue_pins(self, session: str, other: str) -> None:
        """Have what the user pinned in a session that was cleared count for the other."""

    def on_signal(self, signal: SignalRow, state: SessionState) -> None:
        """React to a new signal."""


class Reachability:
    """Finds what delivers to a session: its hooks, its program, or the machine."""

    def __init__(self, store: Store, environment: MonitorEnvironment) -> None:
        self._store, self._environment = store, environment

    async def is_reachable(
        self, state: SessionState, source: str, project: str | None, is_document: bool = False
    ) -> bool:
        """Return whether something delivers messages, or documents, to a session."""
        if state.has_hooks or (state.takes_messages and not is_document):
            return True
        if source in (PROGRAM, TELEMETRY):
            return False
        return await self._environment.can_deliver(state.agent, project, is_document)

    async def find_problem(
        self, row: SessionRow, state: SessionState, is_document: bool
    ) -> str | None:
        """Return why nothing will deliver a message or a document; None if something will."""
        threads = await self._store.threads(row.id)
        source = next((each.source for each in threads if each.thread == MAIN), state.source)
        was_reached = not is_document and any(
            each.state == "delivered" for each in await self._store.messages(row.id)
        )
        if was_reached or await self.is_reachable(state, source, row.project, is_document):
            return None
        return describe_unreachable(row.agent, source, row.id, is_document)


def describe_unreachable(agent: str, source: str, session: str, is_document: bool) -> str:
    """Return why a session gets no messages, or no documents; `source` is that of its events."""
    if source == PROGRAM and is_document:
        return (
            "Nothing puts a document into the context of a program. "
            f"The program can read it from /v1/sessions/{session}/handoff."
        )
    if source == PROGRAM:
        return (
            "Its program takes no messages. It has to call `DaemonSession.messages()`, or to post "
            f"to /v1/sessions/{session}/messages/take."
        )
    name = display_name(agent)
    if agent not in agent_names() or not get_agent(agent).has_hooks:
        return f"Brimline has no hooks for {name}."
    setup = f"`brimline setup {agent}`"
    if source == TELEMETRY:
        return (
            f"Only telemetry reports this session. Run {setup} and Brimline's daemon on the "
            "machine on which it runs."
        )
    next_step = get_agent(agent).install_spec.next_step
    hint = f"No hooks of Brimline are installed for {name}. {setup} installs them."
    return f"{hint} {next_step}" if next_step else hint
