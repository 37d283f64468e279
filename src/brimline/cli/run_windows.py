"""`run --rotate-at`: its requests to the daemon, its drafts, and the table at its end."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from brimline.agents import get_agent
from brimline.agents.transcripts.source import Transcript
from brimline.api.client.request import session_path
from brimline.cli.context import CommandContext
from brimline.cli.daemon_requests import request
from brimline.cli.run_output import RunOutput
from brimline.context.events import MAIN
from brimline.context.usage import format_tokens, whole_percent
from brimline.errors import InvalidRequest, NotRunning
from brimline.handoff import MAX_FRAME_CHARS, draft_handoff, iter_records
from brimline.handoff.digest import digest_transcript
from brimline.run.agent_command import find_prompt_place
from brimline.run.handoff_request import Delivery, RunSession
from brimline.run.iteration import RunPlan
from brimline.run.run_record import RunRecordFile
from brimline.run.window_chain import WindowChain
from brimline.run.window_result import WindowResult, add_known
from brimline.sessions.files import READ_ERRORS, shorten_ids
from brimline.sessions.rotation_report import RotationEntry, append_rotation
from brimline.terminal.text import Cell, Column, format_dollars, format_table, strip_control

TIMEOUT_S = 1.0  # the child's output waits for this long at most

COLUMNS = (
    Column("window", right=True),
    Column("session", drop_order=1),
    Column("calls", right=True),
    Column("cost", right=True),
    Column("peak", right=True),
    Column("read again", right=True),
    Column("compactions", right=True, drop_order=2),
    Column("continued by"),
)


class RunHandoffs:
    """Asks agents through the user's daemon, and drafts from their transcripts."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context

    def ask(self, session: RunSession, text: str) -> Delivery:
        """Queue the request; only a daemon with hooks in the client delivers it."""
        body = {"text": text, "urgent": True}
        path = session_path(session.id, "/messages")
        try:
            sent = request(self._context, "POST", path, body, TIMEOUT_S)
        except (NotRunning, InvalidRequest) as error:
            return Delivery(problem=str(error))
        return Delivery(sent["id"], sent.get("undeliverable"))

    def withdraw(self, session: RunSession, message: str) -> None:
        path = session_path(session.id, f"/messages/{message}")
        with suppress(NotRunning, InvalidRequest):
            request(self._context, "DELETE", path, timeout_s=TIMEOUT_S)

    def continue_session(self, session: RunSession, other: RunSession) -> None:
        now = time.time()
        with suppress(OSError):  # a report without it
            entry = RotationEntry(now, session.agent, session.id, other.id, "run")
            append_rotation(self._context.state, entry)
        path = session_path(session.id, "/continued")
        with suppress(NotRunning, InvalidRequest):
            request(self._context, "POST", path, {"session": other.id}, TIMEOUT_S)

    def find_document(self, session: RunSession, since: float) -> str | None:
        path = session_path(session.id, "/handoff")
        with suppress(NotRunning, InvalidRequest):
            rows = request(self._context, "GET", path, timeout_s=TIMEOUT_S)["handoffs"]
            new = (row for row in rows if not row["draft"] and row["at"] >= since)
            return next((str(row["text"]) for row in new), None)
        return None

    def draft(self, session: RunSession) -> str | None:
        own = self._transcript(session)
        if own is None:
            return None
        with suppress(*READ_ERRORS):
            records = iter_records(own.path, session.id)
            room = self._context.settings.handoff.draft_chars - MAX_FRAME_CHARS
            draft = draft_handoff(
                records, own.agent, where=own.path, session=session.id, most_chars=room
            )
            return draft or None
        return None

    def has_progress(self, session: RunSession) -> bool:
        own = self._transcript(session)
        if own is None:
            return True
        with suppress(*READ_ERRORS):
            digest = digest_transcript(iter_records(own.path, session.id), own.agent)
            return bool(digest.last_reply or digest.changed_files)
        return True

    def _transcript(self, session: RunSession) -> Transcript | None:
        all_of_agent = get_agent(session.agent).transcripts(self._context.places)
        own = (each for each in all_of_agent if (each.session, each.thread) == (session.id, MAIN))
        return next(own, None)


def make_chain(
    context: CommandContext, plan: RunPlan, display: RunOutput, restart: bool
) -> WindowChain | None:
    """Return what runs a plan with a rotation; raises InvalidRequest if its command cannot."""
    if plan.rotation is None:
        return None
    place = find_prompt_place(plan.target.command)
    records = RunRecordFile(context.state, plan.target.command, plan.target.folder)
    service = RunHandoffs(context)
    return WindowChain(plan, place, plan.rotation, service, records, display, restart)


def window_table(windows: Sequence[WindowResult], width: int, colour: bool) -> list[str]:
    """Return a line for each window, and one with the sums."""
    short = shorten_ids(window.session_id for window in windows if window.session_id)
    rows = [_cells(window, short) for window in windows]
    known = [window for window in windows if window.calls]
    again = [window.read_again_tokens for window in known[1:]]
    total = [
        Cell("all"),
        Cell(""),
        Cell(f"{sum(window.calls for window in windows):,}"),
        Cell(format_dollars(add_known([window.cost_usd for window in known]))),
        Cell(""),
        Cell(_tokens(add_known(again)) if again else "-"),
        Cell(f"{sum(window.compactions for window in windows):,}"),
        Cell(""),
    ]
    return format_table(COLUMNS, [*rows, total], width, colour)


def _cells(window: WindowResult, short: Mapping[str, str]) -> list[Cell]:
    origin = {"agent": "its handoff", "draft": "a draft", None: "-"}[window.handoff]
    again = "-" if window.window == 1 else _tokens(window.read_again_tokens)
    return [
        Cell(f"{window.window}"),
        Cell(strip_control(short.get(window.session_id or "", "unknown"))),
        Cell(f"{window.calls:,}"),
        Cell(format_dollars(window.cost_usd)),
        Cell(_peak(window)),
        Cell(again),
        Cell(f"{window.compactions:,}"),
        Cell(origin),
    ]


def _peak(window: WindowResult) -> str:
    peak, size = window.peak_context_tokens, window.context_window
    if peak is None or size is None:
        return _tokens(peak)
    return f"{whole_percent(peak, size)}% ({format_tokens(peak)}/{format_tokens(size)})"


def _tokens(tokens: int | None) -> str:
    return "unknown" if tokens is None else format_tokens(tokens)
