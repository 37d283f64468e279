"""The machine that a monitor runs on, as an interface."""

from brimline.agents.observations import EnvironmentVariables
from brimline.context.window import NO_CLIENT_SETTINGS, ClientSettings
from brimline.monitor.session_state import SessionState
from brimline.store.rows import SignalRow


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

    def on_signal(self, signal: SignalRow, state: SessionState) -> None:
        """React to a new signal."""
