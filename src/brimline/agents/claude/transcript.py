"""A transcript's records as events, and the evidence that a model ran with a window of 1M tokens.

The records of calls have the plain model id, also if the long window was asked for. Other records
say which it was: the result of a subagent names the model that was resolved, and `/model` prints
what it set (Claude Code 2.1). A commit trailer is only a hint: another session may have written it.
"""

import re
from collections.abc import Sequence
from functools import cache

import msgspec

from brimline.agents.claude.records import (
    TRANSCRIPT_KINDS,
    ClaudeRecord,
    CompactMetadata,
    Kind,
    TitleRecord,
)
from brimline.agents.transcripts.source import parse_branch, parse_time
from brimline.context.events import (
    MAIN,
    TRIGGERS,
    AnyEvent,
    Call,
    Compacted,
    SessionSeen,
    Trimmed,
    Unmetered,
    WindowReported,
)
from brimline.context.providers.anthropic import other_passes, service_tier_of, spent_on, usage_of
from brimline.context.tracker import SYNTHETIC
from brimline.context.window import (
    LONG_WINDOW,
    ResolveContext,
    Window,
    clients,
    limit_of,
    requested_id,
)
from brimline.errors import UnexpectedJson
from brimline.files.foreign_json import JsonDecoder

# One of these is in each record with evidence; long ones, so that the line filter stays fast.
RESOLVED_KEY = b'"resolvedModel"'
COMMAND_OUTPUT = b"<local-command-stdout>"
TRAILER_END = b"(1M context) <noreply@"
# Of a hook that runs when the client continues a session: no other record says that it does.
RESUMED = b'"hookName":"SessionStart:resume"'
HOOK_KINDS = ("attachment", "progress")  # of a hook's record, since 2.1.91 and before

_RESOLVED = re.compile(rb'"resolvedModel"\s*:\s*"([^"\\]+)\[1m\]"')
_PRINTED = re.compile(
    rb"<local-command-stdout>(?:Kept model as|Set model to) (?:\\u001b\[1m)?"
    rb"(?:Default \()?([A-Z][a-z]+ [0-9.]+) \(1M context\)"
)
_TRAILER = re.compile(rb"Co-Authored-By: Claude ([A-Z][a-z]+ [0-9.]+) \(1M context\) <noreply@")


def may_have_evidence(record: bytes) -> bool:
    """Whether a record has to be searched for evidence."""
    return RESOLVED_KEY in record or COMMAND_OUTPUT in record or TRAILER_END in record


def proved_models(record: bytes) -> set[str]:
    """The models that a record proves to run with the long window."""
    resolved = {model.decode("utf-8", "replace") for model in _RESOLVED.findall(record)}
    return resolved | {_model_id(name) for name in _PRINTED.findall(record)}


def hinted_models(record: bytes) -> set[str]:
    """The models that a commit trailer in a record names with the long window."""
    return {_model_id(name) for name in _TRAILER.findall(record)}


@cache
def short_limit(model: str | None, version: str | None) -> int:
    """Where this version of the client compacts a model in the smaller of its two windows."""
    window = Window(min(clients().sizes["claude"]), "client", "the smaller of its windows")
    limit = limit_of(ResolveContext(agent="claude", model=model, version=version), window)
    return limit.tokens if limit else window.tokens


def _model_id(display_name: bytes) -> str:
    """`Opus 4.8` -> `claude-opus-4-8`."""
    return "claude-" + display_name.decode().lower().replace(" ", "-").replace(".", "-")


_record = JsonDecoder(ClaudeRecord)
_kind = JsonDecoder(Kind)
_title = JsonDecoder(TitleRecord)

# The user's own title counts, else the model's; `summary` is that of versions before 2.1.91.
TITLE_RANKS = {"summary": 1, "ai-title": 2, "custom-title": 3}


class ClaudeCarry(msgspec.Struct):
    """What the parser remembers between records.

    `boundary`: the threads of which the last record was a compaction's boundary, not yet its
    summary. `roots`: the first record of each sidechain inside the main file, by uuid.
    `proved`: the models that have a window of 1M; `hinted`: those that a commit trailer names so.
    `title`: the last one, with the rank of its kind. `unnamed`: the last record of a call without
    an id, and the id that the call got.
    """

    session: str | None = None
    version: str | None = None
    effort: str | None = None
    boundary: set[str] = msgspec.field(default_factory=set[str])
    roots: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    proved: set[str] = msgspec.field(default_factory=set[str])
    hinted: set[str] = msgspec.field(default_factory=set[str])
    title: tuple[int, str] = (0, "")
    unnamed: tuple[str, str] | None = None


class TranscriptParser:
    """Claude Code's transcript, since version 1.0."""

    inline = False  # whether sidechains are among the main thread's records
    thread, kind = MAIN, ""  # those of the last record

    def __init__(self, carry: bytes = b"") -> None:
        self._carry = msgspec.msgpack.decode(carry, type=ClaudeCarry) if carry else ClaudeCarry()

    def carry(self) -> bytes:
        return msgspec.msgpack.encode(self._carry)

    def feed(self, record: bytes | memoryview) -> Sequence[AnyEvent] | None:
        """The events of a record; a memoryview, a call's, is not searched for other evidence."""
        events = self._record(record)
        if events is None or not isinstance(record, bytes):
            return events
        if may_have_evidence(record):
            events = (*self._long_windows(record), *events)
        if self.kind in HOOK_KINDS and RESUMED in record:
            events = (*events, SessionSeen(is_resumed=True))
        return events

    def _long_windows(self, record: bytes) -> Sequence[AnyEvent]:
        known = self._carry
        known.hinted |= hinted_models(record) - known.proved
        return self._prove(proved_models(record))

    def _prove(self, models: set[str]) -> Sequence[AnyEvent]:
        new = sorted(models - self._carry.proved)
        self._carry.proved.update(new)
        self._carry.hinted.difference_update(new)
        return [WindowReported(model=model, tokens=LONG_WINDOW, is_evidence=True) for model in new]

    def _record(self, record: bytes | memoryview) -> Sequence[AnyEvent] | None:
        try:
            line = _record.decode(record)
        except UnexpectedJson:
            self.kind = ""
            return _check_unread(record)
        self.kind = line.type
        thread = self.thread = self._thread(line) if line.is_sidechain else MAIN
        if line.type == "assistant":
            return self._assistant(line, thread)
        if line.type == "user":
            return self._summary(line, thread) if line.is_compact_summary else ()
        if line.type == "system":
            return self._system(line, thread)
        if rank := TITLE_RANKS.get(line.type):
            return self._titled(rank, _title.decode(record).text)
        return () if line.type in TRANSCRIPT_KINDS else None

    def _titled(self, rank: int, title: str | None) -> Sequence[AnyEvent]:
        """Report a title that is new: the client repeats it every few records."""
        if not title or rank < self._carry.title[0] or self._carry.title == (rank, title):
            return ()
        self._carry.title = (rank, title)
        return (SessionSeen(title=title),)

    def _assistant(self, line: ClaudeRecord, thread: str) -> Sequence[AnyEvent]:
        message = line.message
        if message is None or message.usage is None or not message.usage.is_known:
            return self._unmetered(line)
        usage = usage_of(message.usage)
        if usage is None:
            return ()
        id = message.id or self._make_id(line)
        if id is None:
            return self._unmetered(line)
        requested = line.requested_model  # with the suffix `[1m]`, unlike `message.model` (2.1.325)
        call = Call(
            at=parse_time(line.timestamp),
            id=id,
            usage=usage,
            model=message.model,
            asked_for=None if requested is None else requested_id(requested, message.model),
            thread=thread,
            service_tier=service_tier_of(message.usage),
            branch=parse_branch(line.git_branch),
        )
        passes = message.usage.iterations
        calls = (call,)
        if passes is not None and len(passes) > 1:
            others = other_passes(message.usage, message.model, call.service_tier)
            calls = (*spent_on(others, id, thread, call.at), call)
        known = self._carry
        if known.boundary:
            known.boundary.discard(thread)
        if message.model in known.hinted and usage.sent > short_limit(message.model, line.version):
            return (*self._seen(line), *self._prove({message.model}), *calls)
        if self._is_known(line):
            return calls
        return (*self._seen(line), *calls)

    def _unmetered(self, line: ClaudeRecord) -> Sequence[AnyEvent]:
        if line.message is None or line.message.model in (None, SYNTHETIC):
            return ()
        return (*self._seen(line), Unmetered(at=parse_time(line.timestamp)))

    def _make_id(self, line: ClaudeRecord) -> str | None:
        """Return an id for a call without one: its request's, else that of its first record.

        The records of one reply are a chain; between those of two there is a user's.
        """
        if line.request_id or line.uuid is None:
            return line.request_id
        last = self._carry.unnamed
        id = last[1] if last is not None and last[0] == line.parent_uuid else line.uuid
        self._carry.unnamed = (line.uuid, id)
        return id

    def _summary(self, line: ClaudeRecord, thread: str) -> Sequence[AnyEvent]:
        if thread in self._carry.boundary:
            self._carry.boundary.discard(thread)
            return ()
        return (*self._seen(line), Compacted(at=parse_time(line.timestamp), thread=thread))

    def _system(self, line: ClaudeRecord, thread: str) -> Sequence[AnyEvent]:
        if line.subtype == "microcompact_boundary":
            return (Trimmed(at=parse_time(line.timestamp), thread=thread),)
        if line.subtype != "compact_boundary":
            return ()
        self._carry.boundary.add(thread)
        return (*self._seen(line), compacted(line.compact_metadata, line.timestamp, thread))

    def _is_known(self, line: ClaudeRecord) -> bool:
        known = self._carry
        return (
            known.session is not None
            and known.version == line.version
            and (line.effort is None or line.effort == known.effort or line.is_sidechain)
        )

    def _seen(self, line: ClaudeRecord) -> Sequence[AnyEvent]:
        if self._is_known(line):
            return ()
        known = self._carry
        first = known.session is None
        known.session, known.version = line.session_id or "", line.version
        known.effort = line.effort or known.effort
        return (
            SessionSeen(
                session=line.session_id if first else None,
                agent="claude",
                project=line.cwd if first else None,
                version=line.version,
                records_compactions=True,
                effort=known.effort,
            ),
        )

    def _thread(self, line: ClaudeRecord) -> str:
        """By the subagent's id in its own file; in the main file by the chain's first record."""
        if line.agent_id is not None:
            return line.agent_id
        self.inline = True
        roots = self._carry.roots
        root = roots.get(line.parent_uuid or "", line.uuid or "")
        if line.uuid:
            root = roots.setdefault(line.uuid, root)
        return f"sidechain-{root[:8]}"


def _check_unread(record: bytes | memoryview) -> Sequence[AnyEvent] | None:
    """Accept any shape of a kind that we do not read; raises for the others."""
    kind = _kind.decode(record).type
    if kind in ("assistant", "user", "system"):
        _record.decode(record)
    return () if kind in TRANSCRIPT_KINDS else None


def compacted(metadata: CompactMetadata | None, timestamp: str | None, thread: str) -> Compacted:
    metadata = metadata or CompactMetadata()
    return Compacted(
        at=parse_time(timestamp),
        thread=thread,
        trigger=TRIGGERS.get(metadata.trigger),
        before=metadata.before,
    )
