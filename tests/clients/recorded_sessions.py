"""The sessions that Brimline reads from a recording, to compare with what was billed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import add
from pathlib import Path

from brimline.agents import get_agent, source
from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN, AnyEvent
from brimline.context.tracker import Session, Thread, fold
from brimline.context.usage import ZERO, Usage
from brimline.testing.fake_model import Billed

from .run import ClientRun
from .scenes import Recording

Tokens = tuple[int, int, int, int]


def token_counts(usage: Usage) -> Tokens:
    """The four counts that every client reports."""
    return usage.input, usage.cache_read, usage.cache_write, usage.output


def billed_usage(call: Billed) -> Usage:
    """A billed call in Brimline's own type."""
    usage = call.usage
    return Usage(usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning)


def total_counts(usages: Iterable[Usage]) -> Tokens:
    return token_counts(reduce(add, usages, ZERO))


def transcript_sessions(recording: Recording) -> list[Session]:
    """Each transcript of a recording, oldest first, found and read like a user's."""
    agent = get_agent(recording.client)
    files = sorted(
        agent.transcripts(Places(recording.last.home, {})),
        key=lambda file: (file.modified, file.path),
    )
    return [fold(Session(), agent.source.read(file)) for file in files]


def threads(sessions: Iterable[Session]) -> list[Thread]:
    """Every thread of some sessions."""
    return [thread for session in sessions for thread in session.threads.values()]


def main_threads(sessions: Iterable[Session]) -> list[Thread]:
    """The main thread of each session that has one."""
    return [thread for thread in threads(sessions) if thread.name == MAIN]


def stream_session(runs: Iterable[ClientRun], client: str) -> Session:
    """The session of several runs' streams, read by one parser."""
    return fold(Session(), _events(client, [run.stream for run in runs]))


def _events(client: str, files: Iterable[Path]) -> Iterator[AnyEvent]:
    parser = source(client).stream()
    for file in files:
        for line in file.read_bytes().splitlines():
            events = parser.feed(line)
            assert events is not None, f"unknown kind of line in {file}: {line[:80]!r}"
            yield from events
