"""What a monitor asks of the machine that it runs on."""

from brimline.monitor.session_state import SessionState
from brimline.observations import EnvironmentVariables
from brimline.store.rows import SignalRow
from brimline.windows import NO_CLIENT_SETTINGS, ClientSettings


class MonitorEnvironment:
    """What a monitor asks of the machine that it runs on; by default there is nothing to know."""

    async def refresh(
        self, agent: str, project: str | None, env: EnvironmentVariables | None
    ) -> None:
        """Have what `settings` and `hooked_since` return read again, if it may have changed."""

    def settings(
        self, agent: str, project: str | None, env: EnvironmentVariables | None
    ) -> ClientSettings:
        """What the user told an agent's client, also by these variables; None: they are unknown."""
        return NO_CLIENT_SETTINGS

    def hooked_since(self, agent: str, project: str | None) -> float | None:
        """When hooks were installed for an agent; None where they are not."""
        return None

    def silent(self, session: str) -> bool:
        """Whether a session is to be told nothing for now."""
        return False

    def signalled(self, signal: SignalRow, watched: SessionState) -> None:
        """A signal is new."""
