"""The desk: what could not be kept is told again, and what never can be is counted."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brimline.hooks.frame import Kind, Request
from brimline.server.desk import SILENCE, Desk
from brimline.store.failures import StoreFailed

FULL = StoreFailed("brimline.db", "database or disk is full", "Free some space on that disk.")
REFUSED = StoreFailed("brimline.db", "Python int too large to convert to SQLite INTEGER")
BODIES: dict[Kind, bytes] = {
    "hook": b'{"session_id": "s", "hook_event_name": "Stop"}',
    "statusline": b'{"session_id": "s"}',
}


def desk_of(error: StoreFailed) -> Desk:
    """A desk whose store fails."""

    async def hear(heard: object) -> None:
        raise error

    def nobody(project: str | None) -> None:
        return None

    monitor, clearing = SimpleNamespace(hear=hear), SimpleNamespace(busy=False)
    return Desk(cast("Any", monitor), cast("Any", None), cast("Any", clearing), nobody)


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize(("error", "late"), [(FULL, False), (FULL, True), (REFUSED, False)])
def test_told_again(kind: Kind, error: StoreFailed, late: bool) -> None:
    """It counts as heard when it is kept; a client that is there goes on alone in any case."""
    desk = desk_of(error)
    with pytest.raises(StoreFailed):
        asyncio.run(desk.take(Request(kind, "claude", "1-1", 0, {}, BODIES[kind]), late))
    assert (desk.heard, desk.malformed) == (0, 0)


@pytest.mark.parametrize("kind", BODIES)
def test_never_kept(kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    """What the store never takes does not hold up what is behind it in the spool."""
    desk = desk_of(REFUSED)
    request = Request(kind, "claude", "1-1", 0, {}, BODIES[kind])
    assert asyncio.run(desk.take(request, late=True)) is SILENCE
    assert (desk.heard, desk.malformed) == (1, 1)
    assert f"a {kind} of claude cannot be kept" in caplog.text
