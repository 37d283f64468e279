"""The status line of a session: what the client told, beside what we know."""

from brimline.agents.hook_adapter import HookRequest
from brimline.agents.hook_payloads import StatusLineReport
from brimline.hooks.statusline import (
    RenderOptions,
    render_line,
    terminal_columns,
    wants_colour,
)
from brimline.monitor.monitor import Monitor
from brimline.server.api.views import Views
from brimline.server.hooks.user_status_line import Place, UserStatusLine
from brimline.settings import Settings


class StatusLines:
    """Draws status lines, the user's own beside ours."""

    def __init__(
        self, monitor: Monitor, views: Views, settings: Settings, own: UserStatusLine
    ) -> None:
        self._monitor = monitor
        self._views = views
        self._settings = settings
        self._own = own

    async def draw(
        self, request: HookRequest, told: StatusLineReport, project: str | None
    ) -> bytes:
        """What the client shows for a request of its status line."""
        client = told.input
        session, place = client.session_id, Place(project, client.cwd, client.transcript_path)
        ours = render_line(self._monitor.reading(session), client, await self._look(request, told))
        shown = await self._own.beside(ours, session, place, request.body, request.env)
        return shown.encode() + b"\n"

    async def close(self) -> None:
        """End what still runs."""
        await self._own.close()

    async def _look(self, request: HookRequest, told: StatusLineReport) -> RenderOptions:
        session = told.input.session_id
        handoff = await self._views.handoff_status(session)
        return RenderOptions(
            line=self._settings.line,
            colour=wants_colour(request.env, self._settings.colour),
            columns=terminal_columns(request.env),
            calls_left=self._monitor.calls_left(session),
            handoff=None if handoff.state == "none" else handoff.state,
            handoff_calls=handoff.calls_since,
            client_error=told.wrong,
            has_call=told.called,
        )
