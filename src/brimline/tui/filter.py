"""Filter and order of the session list."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from brimline.sessions.status import activity_order
from brimline.tui.api_types import WatchedSession
from brimline.tui.bars import last_seen_at

Sort: TypeAlias = Literal["fullest", "latest", "project", "agent"]
SORTS: tuple[Sort, ...] = get_args(Sort)


class ListOptions(msgspec.Struct, frozen=True):
    """Which sessions the overview shows: those with all `words` that are live since `since`."""

    home: Path
    sort: Sort = "fullest"
    words: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    since: float | None = None


def select_sessions(
    views: Iterable[WatchedSession], options: ListOptions, now: float
) -> list[WatchedSession]:
    selected = (view for view in views if matches(view, options))
    return sorted(selected, key=lambda view: _sort_key(view, options.sort, now))


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


def _sort_key(view: WatchedSession, sort: Sort, now: float) -> tuple[object, ...]:
    main = view.main
    percent_raw = main.percent_raw if main else None
    fullest = (*activity_order(view.active_at, percent_raw, now), view.key)
    if sort == "latest":
        return (-last_seen_at(view, main), view.key)
    if sort == "project":
        return (view.session.project is None, view.session.project or "", *fullest)
    return (view.session.agent, *fullest) if sort == "agent" else fullest
