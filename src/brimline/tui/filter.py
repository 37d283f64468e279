"""Filter and order of the session list."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from brimline.tui.api_types import WatchedSession
from brimline.tui.bars import last_seen_at

Sort: TypeAlias = Literal["need", "limit", "cost", "latest", "title", "project", "agent"]
SORTS: tuple[Sort, ...] = get_args(Sort)


class ListOptions(msgspec.Struct, frozen=True):
    """Which sessions the overview shows: those with all `words` that are live since `since`."""

    home: Path
    sort: Sort = "need"
    words: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    since: float | None = None


def select_sessions(views: Iterable[WatchedSession], options: ListOptions) -> list[WatchedSession]:
    selected = (view for view in views if matches(view, options))
    return sorted(selected, key=lambda view: _sort_key(view, options.sort))


def group_starts(views: Sequence[WatchedSession], sort: Sort) -> frozenset[str]:
    """The keys of the sessions that begin a group: what needs something, is active or idle.

    Only the order by need has groups.
    """
    if sort != "need":
        return frozenset()
    return frozenset(
        after.key for before, after in pairwise(views) if before.rank[:1] != after.rank[:1]
    )


def matches(view: WatchedSession, options: ListOptions) -> bool:
    session = view.session
    if options.agents and session.agent not in options.agents:
        return False
    if options.since is not None and (
        session.ended_at is not None or session.seen_at < options.since
    ):
        return False
    searched_fields = (
        session.agent,
        session.project,
        session.host,
        session.model,
        session.title,
        session.id,
    )
    text = "\n".join(part for part in searched_fields if part).casefold()
    return all(word.casefold() in text for word in options.words)


def _sort_key(view: WatchedSession, sort: Sort) -> tuple[object, ...]:
    """Return the key of an order; equal sessions are sorted by what they need."""
    main, session = view.main, view.session
    by_need = (*view.rank, view.key)
    match sort:
        case "need":
            return by_need
        case "limit":
            of_limit = main.percent_of_limit if main else None
            return (of_limit is None, -(of_limit or 0.0), *by_need)
        case "cost":
            return (view.cost is None, -(view.cost or 0.0), *by_need)
        case "latest":
            return (-last_seen_at(view, main), *by_need)
        case "title":
            return (session.title is None, (session.title or "").casefold(), *by_need)
        case "project":
            return (session.project is None, session.project or "", *by_need)
        case "agent":
            return (session.agent, *by_need)
