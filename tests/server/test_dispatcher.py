"""The hook dispatcher: observations that cannot be stored now or ever."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brimline.agents.hook_adapter import HookRequest, RequestKind
from brimline.bounded_reads import CachedReads
from brimline.observations import EMPTY_REPLY, Observation, Reply
from brimline.server.hooks.dispatcher import CLIENT_GAVE_UP_S, NO_ANSWER, HookDispatcher
from brimline.server.local_environment import ParentSessions
from brimline.store.failures import StoreFailed

FULL = StoreFailed("brimline.db", "database or disk is full", "Free some space on that disk.")
REFUSED = StoreFailed("brimline.db", "Python int too large to convert to SQLite INTEGER")
BODIES: dict[RequestKind, bytes] = {
    "hook": b'{"session_id": "s", "hook_event_name": "Stop"}',
    "statusline": b'{"session_id": "s"}',
}


def make_dispatcher(
    observe: Callable[[Observation], Awaitable[Reply]], now: float = 0.0, max_spawners: int = 100
) -> HookDispatcher:
    """Make a dispatcher whose monitor is the given function."""

    monitor = SimpleNamespace(observe=observe, now=lambda: now)
    clearing = SimpleNamespace(busy=False)
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
    assert dispatcher.last_contact == {}


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
