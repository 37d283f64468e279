"""What each compaction of a session left: what was injected again, what is kept, what came next."""

from collections.abc import Iterable

import msgspec

from brimline.agents import get_agent
from brimline.agents.content import (
    AddedText,
    ContextCleared,
    KeptContent,
    Piece,
    ReplyText,
    SummaryText,
    ToolCall,
    ToolResult,
    UserText,
    read_content,
)
from brimline.agents.transcripts.source import Record, Transcript
from brimline.context.events import MAIN, AnyEvent, Call, Compacted
from brimline.context.inbox import utf16_length
from brimline.context.tracker import SYNTHETIC, Thread
from brimline.handoff.pins import INTRO
from brimline.handoff.render import DRAFT_INTRO, HANDOFF_INTRO
from brimline.sessions.compaction_facts import CompactionFacts, FactRegister, edits_files
from brimline.sessions.files import READ_ERRORS, LoadedSession


class CompactionEffect(msgspec.Struct, frozen=True):
    """What a compaction of the main thread left.

    `injected_chars` counts what Brimline injected after it: pins, and the handoff or draft. `facts`
    counts as kept what the summary, the content that the client kept and those texts name.
    `is_summary_encrypted`: the client's summary cannot be read, and may keep more.
    `calls_to_edit` is how many calls it took to edit a file, with the one that did; None if there
    was none before the next compaction, a clear or the end.
    """

    injected_chars: int
    facts: CompactionFacts
    is_summary_encrypted: bool
    calls_to_edit: int | None


class MeasuredCompaction(msgspec.Struct, frozen=True):
    """A compaction of the main thread; `effect` is None if it has no record, but was inferred.

    `before` and `after` are what the context held, None if unknown. It came after `calls`.
    """

    cycle: int
    calls: int
    at: float | None
    trigger: str | None
    before: int | None
    after: int | None
    model: str | None
    version: str | None
    branch: str | None
    inferred: bool
    effect: CompactionEffect | None


class MainContent(msgspec.Struct, frozen=True):
    """What the main thread's records show besides its calls.

    `turn_starts` is how many calls came before each prompt; `effects` are those of compactions, by
    how many calls came before.
    """

    turn_starts: list[int]
    effects: dict[int, CompactionEffect]


class _OpenCompaction:
    """A compaction after which records are still read; `facts` are those before it."""

    def __init__(self, calls: int, facts: FactRegister) -> None:
        self.calls = calls
        self._facts = facts
        self.texts: list[str] = []
        self.kept_from: int | None = None
        self.injected_chars = 0
        self.is_summary_encrypted = False
        self.calls_to_edit: int | None = None

    def add(self, piece: Piece, record: int, calls: int) -> None:
        """Add a piece; before it came `calls`, with the one that made it."""
        match piece:
            case SummaryText(text=None):
                self.is_summary_encrypted = True
            case SummaryText(text=str(text)):
                self.texts.append(text)
            case KeptContent():
                self.texts += map(_text_of, piece.pieces)
                if piece.records:
                    self.kept_from = record - piece.records
            case AddedText(text=text) if is_reinjected(text):
                self.injected_chars += utf16_length(text)
                self.texts.append(text)
            case ToolCall() if self.calls_to_edit is None and edits_files(piece):
                self.calls_to_edit = max(1, calls - self.calls)
            case _:
                pass

    def close(self) -> CompactionEffect:
        counts = self._facts.count(self.texts, self.kept_from)
        return CompactionEffect(
            self.injected_chars, counts, self.is_summary_encrypted, self.calls_to_edit
        )


class MainContentReader:
    """Reads the records of a transcript in order; then `finish` returns what they showed.

    Without `has_compactions` it looks for prompts alone, which takes half the time.
    """

    def __init__(self, agent: str, has_compactions: bool = True) -> None:
        self._has_compactions = has_compactions
        self._reader = get_agent(agent).content_reader()
        self._calls: dict[str, None] = {}
        self._number = 0
        self._facts = FactRegister()
        self._open: _OpenCompaction | None = None
        self._turn_starts: list[int] = []
        self._effects: dict[int, CompactionEffect] = {}

    def read(self, record: Record) -> None:
        """Read a record; those of other threads are skipped."""
        if record.thread != MAIN:
            return
        calls_before = len(self._calls)
        if not record.is_earlier:
            self._number += 1
            for event in record.events:
                self._add_event(event)
        may_have_prompt = len(self._calls) == calls_before
        is_read = record.data and (self._has_compactions or may_have_prompt)
        pieces = list(read_content([record.data], self._reader)) if is_read else []
        for piece in pieces:
            self._add_piece(piece)
        if may_have_prompt and not record.is_earlier and has_prompt(pieces):
            self._turn_starts.append(calls_before)

    def finish(self) -> MainContent:
        self._close()
        return MainContent(self._turn_starts, self._effects)

    def _add_event(self, event: AnyEvent) -> None:
        match event:
            case Call(thread="main") if event.model != SYNTHETIC:
                self._calls[event.id] = None
            case Compacted(thread="main", is_late=False):
                if event.summary_call and event.summary_call == next(reversed(self._calls), None):
                    del self._calls[event.summary_call]  # counts in a thread of its own
                if self._open is None or self._open.calls != len(self._calls):
                    self._close()
                    self._open = _OpenCompaction(len(self._calls), self._facts.copy())
            case _:
                pass

    def _add_piece(self, piece: Piece) -> None:
        if isinstance(piece, ContextCleared):
            self._close()
            self._facts = FactRegister()
        if self._open is not None:
            made = len(self._calls) + self._reader.usage_follows_reply
            self._open.add(piece, self._number, made)
        self._facts.add(piece, self._number)

    def _close(self) -> None:
        if self._open is not None:
            self._effects[self._open.calls] = self._open.close()
            self._open = None


def has_prompt(pieces: Iterable[Piece]) -> bool:
    """Return whether one of the pieces is a text of the user."""
    return any(isinstance(piece, UserText) and piece.text.strip() for piece in pieces)


def is_reinjected(text: str) -> bool:
    """Return whether a text is one that Brimline injects after a compaction."""
    return any(mark in text for mark in (INTRO, DRAFT_INTRO, HANDOFF_INTRO))


def content_of(loaded: LoadedSession) -> MainContent | None:
    """Return what a session's main thread contains; None without a transcript of it."""
    if loaded.main is None:
        return None
    thread = loaded.session.threads.get(MAIN)
    return read_main_content(loaded.main, thread is not None and bool(thread.compactions))


def read_main_content(transcript: Transcript, has_compactions: bool = True) -> MainContent | None:
    """Read a transcript's main thread; None if it cannot be read, as it was deleted meanwhile."""
    reader = MainContentReader(transcript.agent, has_compactions)
    try:
        for record in get_agent(transcript.agent).source.records(transcript):
            reader.read(record)
    except READ_ERRORS:
        return None
    return reader.finish()


def measure_compactions(thread: Thread, content: MainContent | None) -> list[MeasuredCompaction]:
    """Return the compactions of a thread with what they left, as far as that is known."""
    effects = content.effects if content is not None and thread.name == MAIN else {}
    return [
        MeasuredCompaction(
            each.cycle,
            each.calls,
            each.at,
            each.trigger,
            each.before,
            each.after,
            each.model,
            each.version,
            each.branch,
            each.inferred,
            effects.get(each.calls) if not each.inferred else None,
        )
        for each in thread.compactions
    ]


def _text_of(piece: Piece) -> str:
    match piece:
        case UserText(text=text) | ReplyText(text=text) | AddedText(text=text):
            return text
        case ToolCall():
            return " ".join([piece.command, *piece.files])
        case ToolResult():
            return piece.output
        case _:
            return ""
