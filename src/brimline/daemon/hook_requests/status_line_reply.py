"""The status line of a session: the reading, the client's own figures, and the user's line."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from brimline.agents.hook_adapter import HookRequest, StatusLineReport
from brimline.daemon.hook_requests.user_status_line import SessionPlace, UserStatusLine
from brimline.hooks.status_line import RenderOptions, render_line, terminal_columns, wants_colour
from brimline.monitor.handoffs import HandoffStatus
from brimline.monitor.monitor import Monitor
from brimline.settings import Settings

FindHandoffStatus: TypeAlias = Callable[[str], Awaitable[HandoffStatus]]


class StatusLines:
    def __init__(
        self,
        monitor: Monitor,
        handoff_status: FindHandoffStatus,
        settings: Settings,
        user_line: UserStatusLine,
    ) -> None:
        self._monitor, self._handoff_status, self._settings = monitor, handoff_status, settings
        self._user_line = user_line

    async def draw(
        self, request: HookRequest, report: StatusLineReport, project: str | None
    ) -> bytes:
        """Return what the client is to show."""
        client = report.input
        session = client.session_id
        handoff = await self._handoff_status(session)
        options = RenderOptions(
            line=self._settings.line,
            colour=wants_colour(request.env, self._settings.colour),
            fullness=self._monitor.fullness(session),
            columns=terminal_columns(request.env),
            calls_left=self._monitor.calls_left(session),
            handoff=None if handoff.state == "none" else handoff.state,
            handoff_calls=handoff.calls_since,
            client_error=report.reason,
            has_call=report.called,
            now=self._monitor.now(),
        )
        ours = render_line(self._monitor.reading(session), client, options)
        place = SessionPlace(project, client.cwd, client.transcript_path)
        shown = await self._user_line.combine(ours, session, place, request.body, request.env)
        return shown.encode() + b"\n"
