"""The hook dispatcher: which replies are acknowledged, and observations that cannot be stored."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from brimline.agents.hook_adapter import HookRequest, RequestKind
from brimline.agents.observations import EMPTY_REPLY, Observation, Reply
from brimline.daemon.hook_requests.dispatcher import CLIENT_GAVE_UP_S, NO_ANSWER, HookDispatcher
from brimline.daemon.parent_session import ParentSessions
from brimline.errors import StoreFailed
from brimline.files.bounded_reads import CachedReads
from brimline.handoff.document import Document
from brimline.monitor.monitor import Monitor
from brimline.store.sqlite import MemoryStore

FULL = StoreFailed("brimline.db", "database or disk is full", "Free some space on that disk.")
REFUSED = StoreFailed("brimline.db", "Python int too large to convert to SQLite INTEGER")
BODIES: dict[RequestKind, bytes] = {
    "hook": b'{"session_id": "s", "hook_event_name": "Stop"}',
    "statusline": b'{"session_id": "s"}',
}


EVENTS_OF_A_COMPACTION = (
    {"hook_event_name": "PreCompact", "trigger": "auto"},
    {"hook_event_name": "SessionStart", "source": "compact"},
    {"hook_event_name": "PostCompact", "trigger": "auto"},
    {"hook_event_name": "UserPromptSubmit", "prompt": "go on"},
    {"hook_event_name": "UserPromptSubmit", "prompt": "and on"},
)


def make_dispatcher(
    observe: Callable[[Observation], Awaitable[Reply]], now: float = 0.0, max_spawners: int = 100
) -> HookDispatcher:
    """Make a dispatcher whose monitor is the given function."""

    async def requeue(observation: Observation) -> None:
        """There are no messages."""

    monitor = SimpleNamespace(observe=observe, requeue_unanswered=requeue, now=lambda: now)
    return dispatcher_of(monitor, max_spawners)


def dispatcher_of(monitor: object, max_spawners: int = 100) -> HookDispatcher:
    clearing = SimpleNamespace(has_requests=False)
    parents: ParentSessions = CachedReads(lambda project: None, None)
    return HookDispatcher(
        cast("Any", monitor),
        cast("Any", None),
        cast("Any", clearing),
        parents,
        max_spawners=max_spawners,
    )


def failing_dispatcher(error: StoreFailed) -> HookDispatcher:
    async def observe(observation: Observation) -> Reply:
        raise error

    return make_dispatcher(observe)


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize(("error", "late"), [(FULL, False), (FULL, True), (REFUSED, False)])
def test_unstored_observation_is_not_counted_and_raises(
    kind: RequestKind, error: StoreFailed, late: bool
) -> None:
    dispatcher = failing_dispatcher(error)
    with pytest.raises(StoreFailed):
        asyncio.run(
            dispatcher.handle(HookRequest(kind, "claude", "1-1", 0, {}, BODIES[kind]), late)
        )
    assert (dispatcher.request_count, dispatcher.malformed) == (0, 0)


@pytest.mark.parametrize("kind", BODIES)
def test_late_observation_that_can_never_be_stored_is_skipped_and_logged(
    kind: RequestKind, caplog: pytest.LogCaptureFixture
) -> None:
    dispatcher = failing_dispatcher(REFUSED)
    request = HookRequest(kind, "claude", "1-1", 0, {}, BODIES[kind])
    assert asyncio.run(dispatcher.handle(request, late=True)) is NO_ANSWER
    assert (dispatcher.request_count, dispatcher.malformed) == (1, 1)
    assert f"cannot store a {kind} of claude" in caplog.text


@pytest.mark.parametrize("kind", BODIES)
def test_request_whose_client_gave_up_is_late(kind: RequestKind) -> None:
    observations: list[Observation] = []

    async def observe(observation: Observation) -> Reply:
        observations.append(observation)
        return EMPTY_REPLY

    dispatcher = make_dispatcher(observe, now=2 * CLIENT_GAVE_UP_S)
    assert (
        asyncio.run(dispatcher.handle(HookRequest(kind, "claude", "1-1", 0, {}, BODIES[kind])))
        is NO_ANSWER
    )
    assert [observation.is_late for observation in observations] == [True]
    assert (dispatcher.last_contact, dispatcher.malformed) == ({}, 0)


def test_hook_that_another_client_runs_is_no_session_of_its_agent() -> None:
    """Copilot CLI runs the hooks of a trusted project's `.claude/settings.json`."""
    agents: list[str] = []

    async def observe(observation: Observation) -> Reply:
        agents.append(observation.agent)
        return EMPTY_REPLY

    dispatcher = make_dispatcher(observe)
    for agent in ("claude", "copilot"):
        for env in ({"COPILOT_PROJECT_DIR": "/p"}, dict[str, str]()):
            request = HookRequest("hook", agent, "1-1", 0, env, BODIES["hook"])
            assert asyncio.run(dispatcher.handle(request)) is NO_ANSWER
    assert agents == ["claude", "copilot", "copilot"]
    assert dispatcher.malformed == 0


def test_remembered_spawners_are_limited() -> None:
    async def observe(observation: Observation) -> Reply:
        return EMPTY_REPLY

    dispatcher = make_dispatcher(observe, max_spawners=3)

    def hold(first: int) -> int:
        for number in range(first, first + 10):
            body = b'{"session_id": "s%d", "hook_event_name": "Stop"}' % number
            asyncio.run(
                dispatcher.handle(
                    HookRequest("hook", "claude", f"{number}-1", os.getpid(), {}, body)
                )
            )
        return len(vars(dispatcher)["_spawners"])

    assert hold(10) == hold(100)


@pytest.mark.parametrize(
    ("reply", "wants_ack"),
    [
        (Reply(context="text", message_ids=("m1",)), True),
        (Reply(context="text", handoff_id="h1"), True),
        (Reply(context="text"), False),
    ],
    ids=["messages", "a document", "neither"],
)
def test_messages_and_documents_are_acknowledged(reply: Reply, wants_ack: bool) -> None:
    async def observe(observation: Observation) -> Reply:
        return reply

    body = b'{"session_id": "s", "hook_event_name": "UserPromptSubmit"}'
    answer = asyncio.run(
        make_dispatcher(observe).handle(HookRequest("hook", "claude", "1-1", 0, {}, body))
    )
    assert (answer.reply, answer.wants_ack) == (reply, wants_ack)
    assert b"text" in answer.text


async def test_document_is_injected_once_after_a_compaction() -> None:
    """The hook socket has an answer acknowledged if that is wanted."""
    monitor = Monitor(MemoryStore(), lambda: 0.0)
    dispatcher = dispatcher_of(monitor)
    await monitor.hand_over("s", Document.of("the plan", "/p", 0.0), "the agent")
    answers: list[bytes] = []
    for number, event in enumerate(EVENTS_OF_A_COMPACTION):
        body = msgspec.json.encode({"session_id": "s", "cwd": "/", **event})
        request = HookRequest("hook", "claude", f"{number}-1", 0, {}, body)
        answer = await dispatcher.handle(request)
        if answer.wants_ack:
            await dispatcher.acknowledge(answer, passed_on=True)
        answers.append(answer.text)
    assert [b"the plan" in answer for answer in answers] == [False, True, False, False, False]
