"""What fills the contexts of the sample sessions: invented contents, accounted for as real ones."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import groupby, pairwise

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.api.compactions import CompactionRoutes, SessionCompactions
from brimline.api.recall import RecallRoutes
from brimline.api.responses import json_response, read_flag
from brimline.api.tools import ToolRoutes
from brimline.api.transcripts import TranscriptRoutes
from brimline.context.events import AnyEvent, Call, Compacted
from brimline.context.tracker import Session, fold
from brimline.context.usage import Usage
from brimline.handoff.draft import draft_handoff
from brimline.sessions.ledger.call_growth import StepRecorder
from brimline.sessions.ledger.context_parts import CATEGORIES, ContextPart
from brimline.sessions.ledger.explain import Explanation, explain
from brimline.sessions.ledger.session_ledger import NO_TRANSCRIPT, SessionLedger, settle
from brimline.sessions.recall.search import Recall
from brimline.sessions.tool_report import ToolReport
from brimline.store.base import Store
from brimline.store.rows import CallRow, HandoffRow, SessionRow

BYTES_OF_TOKEN = 3
PROMPT = "Please find out why the tests of the cart fail, and mend it"
FILES = (
    "src/cart.py",
    "tests/test_cart.py",
    "src/context/prices.py",
    "src/cart.py",
    "docs/cart.md",
)
COMMANDS = ("pytest -q tests", "git diff", "grep -rn total src")


def _message(role: str, **block: object) -> bytes:
    return msgspec.json.encode({"type": role, "message": {"role": role, "content": [block]}})


# What a draft of any sample session is made from.
RECORDS = (
    _message("user", type="text", text=PROMPT),
    _message("assistant", type="tool_use", id="t1", name="Edit", input={
        "file_path": "src/cart.py", "old_string": "round(total)", "new_string": "total",
    }),
    _message("user", type="tool_result", tool_use_id="t1", content="The file was updated."),
    _message("assistant", type="tool_use", id="t2", name="Bash", input={"command": COMMANDS[0]}),
    _message("user", type="tool_result", tool_use_id="t2", is_error=True,
             content="Exit code 1\nFAILED tests/test_cart.py::test_discount - assert 18 == 19"),
    _message("assistant", type="text",
             text="The total was rounded twice. `test_discount` still fails: look at `prices.py`."),
)  # fmt: skip


class DemoTranscripts:
    """The routes of whatever reads transcripts, for sessions without them."""

    endpoints = (
        *TranscriptRoutes.endpoints,
        *RecallRoutes.endpoints,
        *CompactionRoutes.endpoints,
        *ToolRoutes.endpoints,
    )

    def __init__(
        self, store: Store, save_draft: Callable[[str, str, str], Awaitable[HandoffRow]]
    ) -> None:
        self._store, self._save_draft = store, save_draft

    async def explanation(self, request: Request, row: SessionRow) -> Response:
        calls = await self._store.calls(row.id)
        if not calls:
            return json_response(
                Explanation(row.agent, row.id, CATEGORIES, [], problem=NO_TRANSCRIPT)
            )
        explained = explain([build_ledger(row.agent, calls)], read_flag(request, "series"))
        return json_response(Explanation(row.agent, row.id, CATEGORIES, explained.threads))

    async def recall(self, request: Request, row: SessionRow) -> Response:
        return json_response(Recall([], problems=["The demo has no transcripts."]))

    async def compactions(self, request: Request, row: SessionRow) -> Response:
        return json_response(SessionCompactions([], NO_TRANSCRIPT))

    async def tools(self, request: Request) -> Response:
        project = request.query_params.get("project", "")
        return json_response(ToolReport(project, "", 0, [], answered_at=None))

    async def draft_handoff(self, request: Request, row: SessionRow) -> Response:
        path = f"~/.claude/projects/demo/{row.id}.jsonl"
        text = draft_handoff(RECORDS, "claude", where=path, session=row.id)
        return json_response(await self._save_draft(row.id, text, path), 201)


def build_ledger(agent: str, calls: Iterable[CallRow]) -> SessionLedger:
    """Account for the calls of a session, with a part for what came in before each."""
    by_thread = sorted(calls, key=lambda call: call.thread)
    session, recorders = Session(agent=agent), dict[str, StepRecorder]()
    for thread, own in groupby(by_thread, key=lambda call: call.thread):
        recorder = recorders[thread] = StepRecorder()
        events = _record(recorder, thread, sorted(own, key=lambda call: (call.cycle, call.seq)))
        session = fold(session, events)
    ledgers = [settle(name, each, session.threads[name]) for name, each in recorders.items()]
    return SessionLedger(session, ledgers)


def _record(recorder: StepRecorder, thread: str, calls: Sequence[CallRow]) -> list[AnyEvent]:
    """Record calls and parts; returns the events."""
    events: list[AnyEvent] = []

    def add_event(event: AnyEvent) -> None:
        recorder.add_event(event)
        events.append(event)

    recorder.add_part(ContextPart("user words", PROMPT, len(PROMPT), 1))
    add_event(_call_event(calls[0]))
    for number, (before, call) in enumerate(pairwise(calls), 1):
        record = 2 * number
        if call.cycle != before.cycle:
            add_event(Compacted(thread, "auto", at=call.at))
            left = BYTES_OF_TOKEN * max(2, _usage(call).sent - _usage(calls[0]).sent)
            recorder.add_part(ContextPart("compaction summary", "summary", left // 2, record))
            recorder.add_part(ContextPart("injected context", "handoff", left // 2, record))
        else:
            _add_tool(recorder, number, _usage(call).sent - _usage(before).sent - before.output)
        add_event(_call_event(call))
    return events


def _add_tool(recorder: StepRecorder, number: int, tokens: int) -> None:
    """Add a tool call to the last reply, and its result with about so many tokens."""
    record = 2 * number
    if number % 3:
        file = FILES[number % len(FILES)]
        called = ContextPart("tool calls", f"Read {file}", 90, record, tool="Read", file=file)
    else:
        command = COMMANDS[number % len(COMMANDS)]
        called = ContextPart(
            "tool calls", f"Bash {command}", 120, record, tool="Bash", command=command
        )
    recorder.add_part(ContextPart("agent's words", "I look at it.", 150, record))
    recorder.add_part(called)
    size = BYTES_OF_TOKEN * max(1, tokens)
    result = msgspec.structs.replace(called, category="tool results", size=size, record=record + 1)
    recorder.add_part(msgspec.structs.replace(result, content=number % len(FILES)))


def _usage(call: CallRow) -> Usage:
    return msgspec.convert(call, Usage, from_attributes=True)


def _call_event(call: CallRow) -> Call:
    return Call(call.call, _usage(call), call.model, thread=call.thread, at=call.at)
