"""Read the ledger of every thread of a session from its transcripts."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

import msgspec

from brimline.agents import Agent, get_agent
from brimline.agents.content import ContentReader, KeptContent
from brimline.agents.transcripts.source import MALFORMED, Places, Transcript, to_text
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Cleared,
    Compacted,
    Rewound,
    is_compaction_thread,
)
from brimline.context.tracker import Session, Thread, fold
from brimline.errors import UnreadableTranscript
from brimline.sessions.files import SessionFiles
from brimline.sessions.ledger.call_growth import Step, StepRecorder
from brimline.sessions.ledger.context_parts import Category, ContextPart, PartReader
from brimline.sessions.ledger.part_tokens import Balance, Entry, Rates, ThreadAccount

# What a client sends with every call, whatever the conversation is about.
CARRIED: tuple[Category, ...] = ("system and tools", "memory files")
NO_RECORD = 0  # the number of a record that is in another file

NO_TRANSCRIPT = "this session has no transcript on this machine"


class ThreadLedger(msgspec.Struct, frozen=True):
    """What is in a thread's context now, and was at each call.

    `sent` is what the last call sent; None if it is unknown what the context holds, as after a
    compaction. Entries and `unexplained` add up to it. `pending` estimates what came in since.
    `carried` is what of the last call the client had put there before the conversation, also if it
    is unknown what the context holds now.
    """

    thread: str
    sent: int | None
    entries: list[Entry]
    carried: list[Entry]
    unexplained: int
    pending: int
    balances: list[Balance]
    steps: list[Step]


class SessionLedger(msgspec.Struct, frozen=True):
    """The folded session of a transcript and the ledgers of its threads."""

    session: Session
    threads: list[ThreadLedger]


class _ThreadReader:
    """Reads the records of one thread."""

    def __init__(self, content: ContentReader) -> None:
        self._content = content
        self._parts = PartReader()
        self.recorder = StepRecorder(content.usage_follows_reply, content.resends_reasoning)
        self.earlier_steps = 0

    @property
    def system_prompt(self) -> Sequence[ContextPart]:
        """The recorded system prompt with its tools; empty if the client does not record it."""
        return self._parts.system_prompt

    def add_event(self, event: AnyEvent) -> None:
        if isinstance(event, Cleared | Compacted | Rewound):
            self._parts.restart()
        self.recorder.add_event(event)

    def read(self, record: bytes, number: int) -> None:
        try:
            for piece in self._content.read_record(record):
                if isinstance(piece, KeptContent):
                    self._keep(piece, number)
                for part in self._parts.read(piece, number):
                    self.recorder.add_part(part)
        except MALFORMED:  # the rest of the record is unexplained
            return

    def _keep(self, content: KeptContent, number: int) -> None:
        if content.summary_call is not None:
            self.recorder.mark_summary(content.summary_call)
        if content.records:
            self.recorder.keep_records(number - content.records)
            return
        pieces = content.pieces
        self.recorder.keep_parts(
            part for piece in pieces for part in self._parts.read_kept(piece, number)
        )


def read_ledger(
    transcript: Transcript, places: Places | None = None, file: BinaryIO | None = None
) -> SessionLedger:
    """Read a transcript; raises UnreadableTranscript.

    With `places`, memory files that the client does not record are looked for there. `file` is
    read if the transcript has no path.
    """
    agent = get_agent(transcript.agent)
    events: list[AnyEvent] = []
    readers: dict[str, _ThreadReader] = {}

    def reader_of(thread: str) -> _ThreadReader:
        if thread not in readers:
            content = agent.content_reader(is_subagent=thread != MAIN)
            readers[thread] = _ThreadReader(content)
        return readers[thread]

    number = 0
    for record in agent.source.records(transcript, file):
        if record.events:
            for thread, event in _by_thread(record.events):
                reader_of(thread).add_event(event)
        if record.is_earlier:
            reader = reader_of(record.thread)
            reader.read(record.data, NO_RECORD)
            reader.earlier_steps = len(reader.recorder.steps)
            continue
        number += 1
        events.extend(record.events)
        if record.data:
            reader_of(record.thread).read(record.data, number)
    session = fold(Session(agent=transcript.agent), events)
    memory = _memory_parts(agent, places, session.project or transcript.project)
    ledgers = [
        settle(
            thread,
            reader.recorder,
            session.threads[thread],
            reader.system_prompt,
            memory,
            reader.earlier_steps,
        )
        for thread, reader in readers.items()
        if thread in session.threads and reader.recorder.steps
    ]
    return SessionLedger(session, ledgers)


def _memory_parts(agent: Agent, places: Places | None, project: str | None) -> list[ContextPart]:
    parts: list[ContextPart] = []
    for path in agent.memory_files(places, project) if places else ():
        file = to_text(path)
        with suppress(OSError):
            parts.append(ContextPart("memory files", file, os.stat(path).st_size, file=file))
    return parts


def _by_thread(events: Iterable[AnyEvent]) -> Iterator[tuple[str, AnyEvent]]:
    for event in events:
        thread: str | None = getattr(event, "thread", None)
        if thread is not None and not is_compaction_thread(thread):
            yield thread, event


def settle(
    name: str,
    recorder: StepRecorder,
    thread: Thread,
    system: Sequence[ContextPart] = (),
    memory: Sequence[ContextPart] = (),
    earlier: int = 0,
) -> ThreadLedger:
    """Account for every call of a thread, with rates that are learned from all of them.

    `system` is the recorded system prompt; `memory` are memory files, which count only if the
    thread has no record of these or of its system prompt. So many `earlier` steps are of a file
    that it continues.
    """
    steps = recorder.steps
    rates = Rates(steps, system)
    first = steps[0].inputs if steps else []
    is_recorded = any(part.category == "memory files" for part in first)
    account = ThreadAccount(rates, system, () if is_recorded or system else memory)
    fallen = {earlier + one.calls for one in thread.compactions if one.inferred}
    for place, step in enumerate(steps):
        if step.start == "rewound":
            account.rewind(step.rewound_to)
            before = None if step.rewound_to is None else steps[step.rewound_to]
        elif step.start in ("cleared", "compacted") or place in fallen:
            before = None
        else:
            before = steps[place - 1] if place else None
        account.add(place, step, before)
    start, rewound_to = recorder.next_start
    if start == "rewound":
        account.rewind(rewound_to)
    carried = [entry for entry in account.entries if entry.part.category in CARRIED]
    current = thread.current_call
    if current is None:
        account.clear()
    for entry in account.entries:
        entry.place = max(0, entry.place - earlier)
    return ThreadLedger(
        thread=name,
        sent=current.usage.sent if current else None,
        entries=account.entries,
        carried=carried,
        unexplained=account.unexplained,
        pending=round(sum(rates.estimate(part) for part in recorder.inputs)),
        balances=account.balances[earlier:],
        steps=steps[earlier:],
    )


def read_ledgers(
    files: SessionFiles, places: Places, file: BinaryIO | None = None
) -> list[SessionLedger]:
    """Return the ledger of each transcript with a call; raises UnreadableTranscript if none has.

    `file` is read if the transcript has no path.
    """
    ledgers = [read_ledger(transcript, places, file) for transcript in files.transcripts]
    found = [each for each in ledgers if each.threads]
    if not found:
        path = files.transcripts[0].path
        hint = "Try again after the agent's first reply."
        raise UnreadableTranscript(path, "no model call in it", hint)
    return found
