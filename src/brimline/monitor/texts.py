"""What an agent is told at a level: the figure, what is left, and what can be done."""

from collections.abc import Sequence

from brimline.tracker import Reading
from brimline.usage import shorten

HANDOFF = "`brimline handoff PATH`"


def level_text(reading: Reading, level: float, levels: Sequence[float], neutral: bool) -> str:
    """The text for a level; the last one asks, the others suggest, a neutral one only tells."""
    told = f"[brimline] {figure(reading)}"
    if neutral:
        return told
    if level == levels[-1]:
        return (
            f"{told} Write a handoff document now (what the task is, what is done, what is open, "
            f"where to look) and run {HANDOFF}; then go on."
        )
    return (
        f"{told} Consider writing a handoff document and running {HANDOFF} at the next good point."
    )


def figure(reading: Reading) -> str:
    """How full the context is, and how much is left until the client compacts."""
    said = f"Your context {_size(reading)}."
    if reading.left is None:
        return said
    return f"{said} About {shorten(reading.left)} tokens are left until it is compacted."


def _size(reading: Reading) -> str:
    tokens = "an unknown number of" if reading.sent is None else shorten(reading.sent)
    if reading.percent is None or reading.window is None:
        return f"holds {tokens} tokens"
    return f"is at {reading.percent:g}% ({tokens} of {shorten(reading.window.tokens)} tokens)"


def parent_text(session: str, project: str | None, reading: Reading) -> str:
    """The same for the session that spawned this one: whose context it is, and that it goes on."""
    place = f" in {project}" if project else ""
    percent = "unknown" if reading.percent is None else f"{reading.percent:g}%"
    return (
        f"[brimline] The context of agent {session[:8]}{place} is at {percent}. "
        "The agent is still running."
    )


def compacted_text(session: str, project: str | None) -> str:
    """What a parent is told of a compaction."""
    place = f" in {project}" if project else ""
    return (
        f"[brimline] Agent {session[:8]}{place} was compacted. The agent is still running, "
        "with a summary in place of its earlier context."
    )
