"""The recorded Claude Code session, which `brimline demo` replays too."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from brimline.agents import source
from brimline.agents.transcripts.lines import open_transcript
from brimline.context.events import AnyEvent, Call, Compacted, SessionSeen
from brimline.server.demo.script import (
    DemoSession,
    ObserveStep,
    Step,
    kind_after_call,
    streaming_call,
)

RECORDING = Path(__file__).parents[2] / "data" / "demo.jsonl"
COMPACTION_S = 130.0  # the recording has no duration


@cache
def read_recording() -> tuple[AnyEvent, ...]:
    return tuple(source("claude").parse(open_transcript(str(RECORDING))))


def replay_recording(session: DemoSession, at: float, pace: float) -> Iterator[Step]:
    """Yield the recording as steps of a session, with a call every `pace` seconds."""
    known: list[str] = []
    for event in read_recording():
        match event:
            case Call():
                yield _call(session, replace(event, at=at), known)
                at += pace / 2
            case Compacted():
                yield ObserveStep(at, session, "compacting", trigger="auto")
                at += COMPACTION_S
                yield ObserveStep(at, session, "compacted", (replace(event, at=at),))
                at += pace
            case SessionSeen():
                about = replace(
                    event, session=session.id, project=session.project, title=session.title
                )
                yield ObserveStep(at, session, "started", (about,))
            case _:
                pass


def _call(session: DemoSession, call: Call, known: list[str]) -> ObserveStep:
    """Return the step of a call that streams, or of its second record, which is final."""
    is_first = call.id not in known
    if is_first:
        known.append(call.id)
    number = len(known)
    named = replace(call, id=f"msg_{number:04}")
    if is_first:
        return ObserveStep(call.at or 0.0, session, events=(streaming_call(named),))
    return ObserveStep(call.at or 0.0, session, kind_after_call(number), (named,))
