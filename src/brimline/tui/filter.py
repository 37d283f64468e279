"""Which sessions are shown, and in which order."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from brimline.tui.api_types import View
from brimline.tui.bars import heard_at

Sort: TypeAlias = Literal["fullest", "latest", "project", "agent"]
SORTS: tuple[Sort, ...] = get_args(Sort)


class Look(msgspec.Struct, frozen=True):
    """How the overview is looked at. `words` must all be found in a session; `since` is a time."""

    home: Path
    sort: Sort = "fullest"
    words: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    since: float | None = None


def shown(views: Iterable[View], look: Look) -> list[View]:
    """The sessions that are looked for, in their order."""
    return sorted((view for view in views if fits(view, look)), key=lambda v: _order(v, look.sort))


def fits(view: View, look: Look) -> bool:
    """Whether a session is looked for: live, of these agents, with all words in it."""
    session = view.session
    if look.agents and session.agent not in look.agents:
        return False
    if look.since is not None and (session.ended_at is not None or session.seen_at < look.since):
        return False
    about = (session.agent, session.project, session.host, session.model, session.title, session.id)
    text = "\n".join(part for part in about if part).casefold()
    return all(word.casefold() in text for word in look.words)


def _order(view: View, sort: Sort) -> tuple[object, ...]:
    main = view.main
    full = main.percent_raw if main else None
    fullest = (full is None, 0.0 if full is None else -full, view.key)
    if sort == "latest":
        return (-heard_at(view, main), view.key)
    if sort == "project":
        return (view.session.project is None, view.session.project or "", *fullest)
    return (view.session.agent, *fullest) if sort == "agent" else fullest
