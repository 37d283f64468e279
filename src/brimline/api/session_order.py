"""Work for several sessions: in order within each of them, at the same time between them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import TypeVar

MAX_TOGETHER = 64  # sessions

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


async def handle_by_session(
    items: Iterable[ItemT],
    session_of: Callable[[ItemT], str],
    handle: Callable[[list[ItemT]], Awaitable[list[ResultT]]],
) -> list[ResultT]:
    """Handle the items of each session, which are in order; return the results, by session.

    Sessions do not wait for each other: the store writes what waits in one transaction. Of many,
    some are handled at a time: a request may have 25,000, and others wait for the store as well. If
    one fails, the others are handled, and its error is raised.
    """
    groups: dict[str, list[ItemT]] = {}
    for item in items:
        groups.setdefault(session_of(item), []).append(item)
    waiting, outcomes = iter(groups.values()), list[list[ResultT] | BaseException]()
    while some := list(islice(waiting, MAX_TOGETHER)):
        outcomes += await asyncio.gather(*map(handle, some), return_exceptions=True)
    results: list[ResultT] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        results += outcome
    return results
