"""Connect clearing and message delivery in tmux panes to the store and the notices."""

import os
import time
from pathlib import Path

from brimline.agents import agent_names
from brimline.agents.observations import Pane
from brimline.agents.transcripts.source import Places
from brimline.daemon.local_environment import hooks_installed_at
from brimline.daemon.notices.notices import NoticeSender, clear_failure_notice
from brimline.daemon.tmux.clear import SessionClearer
from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.daemon.tmux.message_delivery import MessageDelivery
from brimline.daemon.tmux.pane_search import find_pane
from brimline.daemon.tmux.typist import Typist
from brimline.monitor.clear_handover import record_continuation
from brimline.monitor.monitor import Monitor
from brimline.store.base import Store
from brimline.store.rows import SessionRow


class TmuxWiring:
    """Creates the session clearer and the message delivery."""

    def __init__(self, store: Store, places: Places, state: Path, notices: NoticeSender) -> None:
        self._store, self._places, self._state, self._notices = store, places, state, notices
        self._typist = Typist(state)
        self.clearer = SessionClearer(state, self._typist, time.time, self._on_clear_end)

    def message_delivery(self, monitor: Monitor) -> MessageDelivery:
        """Return the delivery of messages to agents without hooks, and to idle ones."""

        def has_hooks(row: SessionRow) -> bool:
            if row.agent not in agent_names():
                return True  # a program's own agent, whose screen is unknown
            return hooks_installed_at(self._state, row.agent, row.project) is not None

        def is_compacting(session: str) -> bool:
            state = monitor.state_of(session)
            return state is not None and state.compacting

        def pane_of(row: SessionRow) -> Pane | None:
            state = monitor.state_of(row.id)
            if state is not None and state.pane is not None:
                return state.pane  # as its hooks report it
            return find_pane(row.agent, row.project, self._places.env, os.getuid())

        return MessageDelivery(
            self._store,
            self._typist,
            time.time,
            has_hooks,
            pane_of,
            is_compacting,
            monitor.refresh_message,
        )

    async def _on_clear_end(self, request: ClearRequest) -> None:
        """Notify the user of a failure; move messages to the new session after a success."""
        if request.step == "failed":
            self._notices.send(clear_failure_notice(request))
        elif request.after is not None:
            now = time.time()
            await record_continuation(self._store, request.session, request.after, now, now)
