"""The route that finds a process's own session, and the answer to `here` requests."""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.agents.hook_adapter import HookRequest
from brimline.agents.observations import Observation
from brimline.api.openapi import Endpoint
from brimline.api.responses import json_response, read_body
from brimline.api.views import SessionView, Views
from brimline.context.events import MAIN
from brimline.context.need import ACTIVE_FOR_S
from brimline.context.short_status import ShortStatus
from brimline.daemon.calling_session import (
    CallingProcess,
    FoundBy,
    complete_caller,
    find_by_process,
)
from brimline.daemon.hook_requests.contacts import SessionContacts
from brimline.daemon.tmux.pane import pane_from_environment
from brimline.errors import BrimlineError
from brimline.monitor.monitor import Monitor
from brimline.store.base import Store
from brimline.store.rows import SessionRow


class Here(msgspec.Struct, frozen=True):
    """The sessions that a process may belong to: one, none, or several if it is ambiguous."""

    sessions: list[ShortStatus]
    found_by: FoundBy | None = None


class CallingSessions:
    """Finds the session of a process that asks, and reads on what its client has written."""

    def __init__(
        self, store: Store, monitor: Monitor, views: Views, contacts: SessionContacts
    ) -> None:
        self._store, self._monitor, self._views = store, monitor, views
        self._contacts = contacts

    async def find(self, caller: CallingProcess) -> Here:
        """Return the sessions of the first of process, environment, pane and folder that has any.

        A session that is named and unknown hides those of the pane and the folder.
        """
        ids = await asyncio.to_thread(find_by_process, caller, self._contacts)
        how: FoundBy = "process"
        if not ids and caller.named is not None:
            ids, how = [caller.named], "environment"
        elif not ids and caller.pane is not None:
            ids, how = self._contacts.in_pane(caller.pane), "pane"
        rows = [row for id in ids if (row := await self._store.session(id)) is not None]
        if not ids and caller.folder is not None:
            rows, how = await self._active_in(caller), "folder"
        statuses = [await self._status(row) for row in rows]
        return Here(statuses, how if statuses else None)

    async def answer(self, request: HookRequest) -> bytes:
        """Return the line of the hook client's `here`, whose agent is a template; empty if none."""
        caller = await asyncio.to_thread(complete_caller, request.pid, request.env)
        pane = pane_from_environment(request.env)
        here = await self.find(msgspec.structs.replace(caller, pane=pane))
        if len(here.sessions) != 1:
            return b""
        try:
            return here.sessions[0].format(request.agent).encode() + b"\n"
        except BrimlineError as error:
            return str(error).partition("\n")[0].encode() + b"\n"

    async def _active_in(self, caller: CallingProcess) -> list[SessionRow]:
        since = self._monitor.now() - ACTIVE_FOR_S
        return [
            row
            for row in await self._store.sessions()
            if row.project == caller.folder
            and row.seen_at >= since
            and not row.has_ended
            and row.became is None
            and caller.agent in (None, row.agent)
        ]

    async def _status(self, row: SessionRow) -> ShortStatus:
        # The call that runs the tool may have been written less than a moment ago.
        read = Observation(
            id=f"asked {row.id} {self._monitor.now()}",
            agent=row.agent,
            session=row.id,
            kind="wrote",
            at=row.seen_at,
        )
        if row.transcript is not None:
            await self._monitor.observe(read)
        return short_status(await self._views.view(row))


class HereRoutes:
    endpoints = (
        Endpoint("POST", "/v1/here", "here", "Find the session that a process belongs to.", Here,
                 CallingProcess, unix_only=True),
    )  # fmt: skip

    def __init__(self, calling: CallingSessions) -> None:
        self._calling = calling

    async def here(self, request: Request) -> Response:
        return json_response(await self._calling.find(await read_body(request, CallingProcess)))


def short_status(view: SessionView) -> ShortStatus:
    main = next((each for each in view.threads if each.thread == MAIN), None)
    status = ShortStatus(
        agent=view.session.agent,
        session=view.session.id,
        title=view.session.title,
        handoff=view.handoff.state,
        calls_since_handoff=view.handoff.calls_since,
        calls_left=view.calls_left,
        need=view.need,
        is_near_limit=view.is_near_limit,
    )
    if main is None:
        return status
    return msgspec.structs.replace(
        status,
        state=main.state,
        sent=main.sent,
        window=main.window,
        limit=main.limit,
        percent=main.percent,
        percent_raw=main.percent_raw,
        percent_of_limit=main.percent_of_limit,
    )
