"""The desk: what could not be kept is told again, and what never can be is counted."""

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


def desk_of(
    hear: Callable[[Observation], Awaitable[Reply]], now: float = 0.0, max_spawners: int = 100
) -> HookDispatcher:
    """A desk where requests are heard so."""

    monitor = SimpleNamespace(observe=hear, now=lambda: now)
    clearing = SimpleNamespace(busy=False)
    parents: ParentSessions = CachedReads(lambda project: None, None)
    return HookDispatcher(
        cast("Any", monitor),
        cast("Any", None),
        cast("Any", clearing),
        parents,
        max_spawners=max_spawners,
    )


def failing(error: StoreFailed) -> HookDispatcher:
    """A desk whose store fails."""

    async def hear(heard: Observation) -> Reply:
        raise error

    return desk_of(hear)


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize(("error", "late"), [(FULL, False), (FULL, True), (REFUSED, False)])
def test_told_again(kind: RequestKind, error: StoreFailed, late: bool) -> None:
    """It counts as heard when it is kept; a client that is there goes on alone in any case."""
    desk = failing(error)
    with pytest.raises(StoreFailed):
        asyncio.run(desk.handle(HookRequest(kind, "claude", "1-1", 0, {}, BODIES[kind]), late))
    assert (desk.request_count, desk.malformed) == (0, 0)


@pytest.mark.parametrize("kind", BODIES)
def test_never_kept(kind: RequestKind, caplog: pytest.LogCaptureFixture) -> None:
    """What the store never takes does not hold up what is behind it in the spool."""
    desk = failing(REFUSED)
    request = HookRequest(kind, "claude", "1-1", 0, {}, BODIES[kind])
    assert asyncio.run(desk.handle(request, late=True)) is NO_ANSWER
    assert (desk.request_count, desk.malformed) == (1, 1)
    assert f"cannot store a {kind} of claude" in caplog.text


@pytest.mark.parametrize("kind", BODIES)
def test_client_that_has_gone(kind: RequestKind) -> None:
    """What lay in the socket while the daemon was stopped is as late as what is in the spool."""
    heard: list[Observation] = []

    async def hear(one: Observation) -> Reply:
        heard.append(one)
        return EMPTY_REPLY

    desk = desk_of(hear, now=2 * CLIENT_GAVE_UP_S)
    assert (
        asyncio.run(desk.handle(HookRequest(kind, "claude", "1-1", 0, {}, BODIES[kind])))
        is NO_ANSWER
    )
    assert [one.is_late for one in heard] == [True]
    assert desk.last_contact == {}


def test_spawners_are_bounded() -> None:
    """However many sessions a daemon hears of, it holds no more than the last of their spawners."""

    async def hear(one: Observation) -> Reply:
        return EMPTY_REPLY

    desk = desk_of(hear, max_spawners=3)

    def hold(first: int) -> int:
        for number in range(first, first + 10):
            body = b'{"session_id": "s%d", "hook_event_name": "Stop"}' % number
            asyncio.run(
                desk.handle(HookRequest("hook", "claude", f"{number}-1", os.getpid(), {}, body))
            )
        return len(vars(desk)["_spawners"])

    assert hold(10) == hold(100)
