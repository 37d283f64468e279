"""The session that Claude Code recorded, which `brimline demo` replays too."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from brimline.agents import source
from brimline.demo.script import moment, streaming
from brimline.demo.steps import Act, Role, Tell
from brimline.events import AnyEvent, Call, Compacted, SessionSeen
from brimline.transcripts.lines import open_transcript

RECORDING = Path(__file__).parents[1] / "data" / "demo.jsonl"
COMPACTING = 130.0
"""So many seconds a compaction takes; the recording tells only that it was."""


@cache
def recorded() -> tuple[AnyEvent, ...]:
    """What the recording tells, in its order."""
    return tuple(source("claude").parse(open_transcript(str(RECORDING))))


def replayed(role: Role, at: float, pace: float) -> Iterator[Act]:
    """The recording as acts of a role from a time on, a call every so many seconds."""
    known: list[str] = []
    for event in recorded():
        match event:
            case Call():
                yield _call(role, replace(event, at=at), known)
                at += pace / 2
            case Compacted():
                yield Tell(at, role, "compacting", trigger="auto")
                at += COMPACTING
                yield Tell(at, role, "compacted", (replace(event, at=at),))
                at += pace
            case SessionSeen():
                about = replace(event, session=role.id, project=role.project, title=role.title)
                yield Tell(at, role, "started", (about,))
            case _:
                pass


def _call(role: Role, call: Call, known: list[str]) -> Tell:
    """A call that begins, or one that is told again: then its reply is whole."""
    begins = call.id not in known
    if begins:
        known.append(call.id)
    number = len(known)
    named = replace(call, id=f"msg_{number:04}")
    if begins:
        return Tell(call.at or 0.0, role, events=(streaming(named),))
    return Tell(call.at or 0.0, role, moment(number), (named,))
