"""The events of a rollout."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from brimline.agents.codex.records import (
    ESTIMATED_PERCENT,
    QUIET,
    QUIET_EVENTS,
    CodexLine,
    CodexRecord,
    CodexTokens,
    CompactionItem,
    EventKind,
    EventMessage,
    Meta,
    RateLimits,
    ResponseItem,
    RolledBack,
    TurnContext,
    estimate_item,
)
from brimline.agents.transcripts.source import parse_time
from brimline.context.client_report import Quota
from brimline.context.events import (
    MAIN,
    Added,
    AnyEvent,
    Call,
    Compacted,
    Rewound,
    SessionSeen,
    Trigger,
    Trimmed,
    Unmetered,
    WindowReported,
)
from brimline.context.usage import Usage
from brimline.files.foreign_json import JsonDecoder

STANDARD_TIERS = frozenset({None, "auto", "default", "standard"})
COPYING_S = 1.5  # a fork writes its copies within this time (measured, source `vscode`)
MAX_TURNS = 64  # turns that a rollback can go back

Events: TypeAlias = Sequence[AnyEvent]

_line = JsonDecoder(CodexLine)
_meta = JsonDecoder(Meta)
_context = JsonDecoder(TurnContext)
_record = JsonDecoder(CodexRecord)
_compaction = JsonDecoder(CompactionItem)
_item = JsonDecoder(ResponseItem)
_kind = JsonDecoder(EventKind)
_limits = JsonDecoder(RateLimits)
_event = JsonDecoder(EventMessage)
_rolled_back = JsonDecoder(RolledBack)


class CodexTurn(msgspec.Struct, frozen=True, array_like=True):
    """A turn of the user: the call before it, and the tokens of reasoning up to there."""

    call: str | None
    reasoning: int


class CodexCarry(msgspec.Struct, omit_defaults=True):
    """What the parser remembers between records.

    `own` is the id of the file's thread, `begins` the ordinal before which a subagent's file
    repeats its parent's, `copied_at` the time of a fork that repeats its origin's; a file that
    `continues` another does not repeat it. `counted` is the total of the last token_count, `billed`
    and `billed_total` the last token_usage_record. `calls` is the number of the turn's calls, None
    outside a turn; `asked`: it has a message of the user; `turns` are those with one. `pending` is
    a compaction whose estimate may follow. `quotas` are the last ones.

    `results` are the tokens that came in after the model's last item, `reasoning` those of all its
    reasoning, `earlier` of that before the last prompt; `counts_reasoning`: the server counts it.
    `replied`: the model has written items since the last call's usage, which belong to the next;
    `encrypted` are the tokens of reasoning in them, None without reasoning.
    `added` is what was last reported of these, `compared` what Codex compared with its limit after
    each of the last two calls.
    """

    own: str | None = None
    thread: str = MAIN
    begins: int | None = None
    continues: bool = False
    copied_at: float | None = None
    version: str | None = None
    project: str | None = None
    branch: str | None = None
    model: str | None = None
    service_tier: str | None = None
    effort: str | None = None
    turn: str | None = None
    window: int | None = None
    counted: CodexTokens | None = None
    billed: CodexTokens | None = None
    billed_total: CodexTokens | None = None
    calls: int | None = None
    asked: bool = False
    call: str | None = None
    turns: list[CodexTurn] = msgspec.field(default_factory=list[CodexTurn])
    pending: Compacted | None = None
    quotas: dict[str, Quota] = msgspec.field(default_factory=dict[str, Quota])
    results: int = 0
    reasoning: int = 0
    encrypted: int | None = None
    earlier: int = 0
    counts_reasoning: bool = False
    replied: bool = False
    added: tuple[int, int] = (0, 0)
    compared: tuple[int, ...] = ()


class RolloutParser:
    """Turns the records of a rollout into events."""

    def __init__(self, carry: bytes = b"") -> None:
        self._memory = msgspec.json.decode(carry, type=CodexCarry) if carry else CodexCarry()
        self._records: dict[str | None, Callable[[CodexLine], Events | None]] = {
            "session_meta": self._session,
            "turn_context": self._turn,
            "response_item": self._item,
            "token_usage_record": self._billed,
            "compacted": self._compacted,
            "event_msg": self._event,
            None: self._bare,
        }
        self._events: dict[str, Callable[[CodexLine, EventMessage], Events]] = {
            "token_count": self._counted,
            "task_started": self._turn_started,
            "turn_started": self._turn_started,
            "task_complete": self._turn_ended,
            "turn_complete": self._turn_ended,
            "turn_aborted": self._turn_ended,
            "thread_settings_applied": self._settings_applied,
            "user_message": self._asked,
            "thread_rolled_back": self._rolled_back,
            "thread_name_updated": self._renamed,
        }

    @property
    def thread(self) -> str:
        """The thread of the file."""
        return self._memory.thread

    def carry(self) -> bytes:
        return msgspec.json.encode(self._memory)

    def feed(self, record: bytes) -> Events | None:
        line = _line.decode(record)
        if handle := self._records.get(line.type):
            return handle(line)
        return () if line.type in QUIET else None

    def _event(self, line: CodexLine) -> Events | None:
        kind = _kind.decode(line.payload).type
        if handle := self._events.get(kind):
            return handle(line, _event.decode(line.payload))
        return () if kind in QUIET_EVENTS else None

    def _bare(self, line: CodexLine) -> Events | None:
        if line.record_type is not None:
            return ()
        if line.id is None:
            return None
        return self._own(Meta(id=line.id), line)

    def _session(self, line: CodexLine) -> Events:
        """The first is the file's own; another id precedes the records that a fork copied."""
        meta, memory = _meta.decode(line.payload), self._memory
        if memory.own is None:
            return self._own(meta, line)
        if meta.id != memory.own:
            return ()
        memory.branch = meta.branch
        if (memory.version, memory.project) == (meta.cli_version, meta.cwd):
            return ()
        memory.version, memory.project = meta.cli_version, meta.cwd
        return (
            SessionSeen(at=parse_time(line.timestamp), version=meta.cli_version, project=meta.cwd),
        )

    def _own(self, meta: Meta, line: CodexLine) -> Events:
        memory = self._memory
        memory.own, memory.thread = meta.id, meta.thread
        memory.begins, memory.continues = meta.subagent_history_start_ordinal, meta.continues
        memory.version, memory.project = meta.cli_version, meta.cwd
        memory.branch = meta.branch
        at = parse_time(line.timestamp)
        memory.copied_at = at if meta.copies else None
        return (
            SessionSeen(
                at=at,
                session=meta.session,
                agent="codex",
                project=meta.cwd,
                version=meta.cli_version,
                records_compactions=True,
                is_fork=True if meta.forked_from_id and meta.thread == MAIN else None,
            ),
        )

    def _turn(self, line: CodexLine) -> Events:
        context, memory = _context.decode(line.payload), self._memory
        memory.turn = context.turn_id or memory.turn
        memory.model = context.model or memory.model
        if context.effort in (None, memory.effort):
            return ()
        memory.effort = context.effort
        return (SessionSeen(at=parse_time(line.timestamp), effort=context.effort),)

    def _settings_applied(self, line: CodexLine, event: EventMessage) -> Events:
        settings, memory = event.thread_settings, self._memory
        memory.model = settings.model or memory.model
        is_standard = settings.service_tier in STANDARD_TIERS
        memory.service_tier = None if is_standard else settings.service_tier
        return ()

    def _turn_started(self, line: CodexLine, event: EventMessage) -> Events:
        self._memory.calls, self._memory.asked = 0, False
        self._memory.pending = None
        return self._window(line, event.model_context_window)

    def _turn_ended(self, line: CodexLine, event: EventMessage) -> Events:
        self._memory.calls, self._memory.asked = None, False
        self._memory.pending = None
        return ()

    def _item(self, line: CodexLine) -> Events:
        item, memory = _item.decode(line.payload), self._memory
        if item.is_reply:
            memory.results, memory.replied = 0, True
            if item.is_encrypted_reasoning:
                memory.encrypted = (memory.encrypted or 0) + item.encrypted_tokens
            return ()
        if item.is_prompt:
            # A reply that was interrupted has no usage.
            memory.earlier = memory.reasoning + (memory.encrypted or 0)
        memory.results += estimate_item(bytes(line.payload))
        return self._additions(line)

    def _additions(self, line: CodexLine) -> Events:
        """What Codex adds to the last call's usage before it compares that with its limit.

        Codex computes it between two calls. While the model replies, nothing new is reported: the
        last call is then still the one before.
        """
        memory = self._memory
        added = memory.results, 0 if memory.counts_reasoning else memory.earlier
        if memory.replied or added == memory.added or not memory.compared or self._copied(line):
            return ()
        *earlier, last = memory.compared
        memory.compared = (*earlier, last + sum(added) - sum(memory.added))
        memory.added = added
        return (Added(pending=added[0], earlier_reasoning=added[1], thread=memory.thread),)

    def _billed(self, line: CodexLine) -> Events:
        record, memory = _record.decode(line.payload), self._memory
        usage = record.usage.usage()
        memory.billed, memory.billed_total = record.usage, record.thread_token_usage
        copied = self._copied(line, record.thread_id)
        if copied or record.usage.blank:
            return ()
        return self._call(line, record.response_id or self._id(record.thread_token_usage), usage)

    def _counted(self, line: CodexLine, event: EventMessage) -> Events:
        return (*self._quotas(line, event), *self._usage(line, event))

    def _quotas(self, line: CodexLine, event: EventMessage) -> Events:
        """Report the quotas if they differ from the last ones; those of an API key are null."""
        at, limits = parse_time(line.timestamp), _limits.decode_or_none(event.rate_limits)
        quotas = limits.quotas(at) if limits and at is not None else None
        if quotas is None or not quotas.known or self._copied(line):
            return ()
        if self._memory.quotas == quotas.known:
            return ()
        self._memory.quotas = quotas.known
        return (SessionSeen(at=at, quotas=quotas),)

    def _usage(self, line: CodexLine, event: EventMessage) -> Events:
        info, memory = event.info, self._memory
        if isinstance(info, msgspec.UnsetType):  # null is a provider's that reports no usage
            return (Unmetered(at=parse_time(line.timestamp)),)
        if info is None:
            return ()
        last, total = info.last_token_usage, info.total_token_usage
        usage = last.usage()
        repeated = self._repeated(last, total)
        memory.counted = total
        if self._copied(line):
            return ()
        window = self._window(line, info.model_context_window)
        if last.blank:  # after a compaction: only the total is set, to an estimate (0.166)
            return (*window, *self._estimated(last.total_tokens))
        memory.counts_reasoning = info.last_usage_includes_reasoning
        if repeated:
            return (*window, *self._additions(line))
        return (*window, *self._call(line, self._id(total), usage))

    def _repeated(self, last: CodexTokens, total: CodexTokens) -> bool:
        """Whether a token_count repeats a call.

        Clients that write token_usage_record report each call twice; the totals can differ by the
        cost of a compaction, so the call's own figures are compared too. Before its first
        turn_context, a file that continues another can only repeat the other's last call.
        """
        memory = self._memory
        if memory.continues and memory.turn is None:
            return True
        return total in (memory.counted, memory.billed_total) or last == memory.billed

    def _id(self, total: CodexTokens) -> str:
        """An id for a call that has none: its turn, which a fork copies, and the running total."""
        memory = self._memory
        return f"{memory.turn or memory.own}:{total.input_tokens}+{total.output_tokens}"

    def _copied(self, line: CodexLine, thread: str | None = None) -> bool:
        """Whether a record in the file of a subagent or a fork is a copy of its parent's.

        Older files do not mark the end of the copies; but ids of turns and threads begin with a
        time, and a fork's copies are written at once.
        """
        memory = self._memory
        if memory.thread == MAIN and memory.copied_at is None:
            return False
        if memory.begins is not None and line.ordinal is not None:
            return line.ordinal < memory.begins
        if thread is not None:
            return thread != memory.own
        if memory.copied_at is not None:
            at = parse_time(line.timestamp)
            if at is not None and at - memory.copied_at <= COPYING_S:
                return True
        return memory.turn is not None and memory.own is not None and memory.turn < memory.own

    def _call(self, line: CodexLine, name: str, usage: Usage) -> Events:
        memory = self._memory
        memory.call, memory.pending = name, None
        if not memory.replied:
            memory.results = 0  # its reply is not recorded: what came in before is in its usage
        if memory.encrypted is not None:
            billed = (usage.reasoning or 0) * ESTIMATED_PERCENT // 100
            memory.reasoning += memory.encrypted or billed  # without its content
        memory.replied, memory.encrypted, memory.added = False, None, (0, 0)
        memory.compared = (*memory.compared[-1:], usage.held)
        if memory.calls is not None:
            memory.calls += 1
        return (
            Call(
                at=parse_time(line.timestamp),
                id=name,
                usage=usage,
                model=memory.model,
                thread=memory.thread,
                service_tier=memory.service_tier,
                branch=memory.branch,
            ),
            *self._additions(line),
        )

    def _window(self, line: CodexLine, tokens: int | None) -> Events:
        memory = self._memory
        if tokens is None or tokens < 1 or tokens == memory.window or self._copied(line):
            return ()
        memory.window = tokens
        return (WindowReported(at=parse_time(line.timestamp), tokens=tokens, thread=memory.thread),)

    def _compacted(self, line: CodexLine) -> Events:
        """Reported now, and again with the estimate of what is left, which follows shortly."""
        summary_call = _compaction.decode(line.payload).compaction_response_id
        if self._copied(line):
            return ()
        compacted = Compacted(
            at=parse_time(line.timestamp),
            thread=self._memory.thread,
            trigger=self._trigger(summary_call),
            before=self._compared_at_trigger(summary_call),
        )
        self._memory.pending = compacted
        self._forget_items()
        return (compacted,)

    def _forget_items(self, reasoning: int = 0, earlier: int = 0) -> None:
        """Note that the conversation was cut, and what is left of its reasoning."""
        memory = self._memory
        memory.results, memory.replied, memory.compared = 0, False, ()
        memory.encrypted = None
        memory.reasoning, memory.earlier = reasoning, earlier

    def _compared_at_trigger(self, summary_call: str | None) -> int | None:
        """What Codex compared after the call that triggered: the last but the one of the summary.

        Not every version names the summary's call: it sends no more than the one before it held.
        """
        compared = self._memory.compared
        if summary_call is not None and len(compared) > 1:
            compared = compared[:1] if summary_call == self._memory.call else compared[1:]
        return max(compared, default=None)

    def _trigger(self, summary_call: str | None) -> Trigger | None:
        """A manual compaction is a turn of its own, so one after other calls is automatic.

        At the beginning of a turn it can be either. The call that wrote the summary may be one of
        the turn's; not every version names it.
        """
        memory = self._memory
        if memory.calls is None:
            return None
        own = 0 if summary_call is not None and summary_call != memory.call else 1
        return "auto" if memory.asked or memory.calls > own else None

    def _estimated(self, after: int | None) -> Events:
        pending, self._memory.pending = self._memory.pending, None
        if pending is None or after is None:
            return ()
        return (msgspec.structs.replace(pending, after=after),)

    def _asked(self, line: CodexLine, event: EventMessage) -> Events:
        memory = self._memory
        if not self._copied(line):
            memory.asked = True
            turn = CodexTurn(memory.call, memory.reasoning)
            memory.turns = [*memory.turns[-MAX_TURNS + 1 :], turn]
        return ()

    def _rolled_back(self, line: CodexLine, event: EventMessage) -> Events:
        turns, memory = _rolled_back.decode(line.payload).num_turns, self._memory
        at, thread = parse_time(line.timestamp), memory.thread
        if self._copied(line) or turns < 1:
            return ()
        if turns > len(memory.turns):
            self._forget_items()
            return (Trimmed(at=at, thread=thread),)
        first = memory.turns[-turns]
        del memory.turns[-turns:]
        memory.call = first.call
        self._forget_items(first.reasoning, memory.turns[-1].reasoning if memory.turns else 0)
        return (Rewound(at=at, to=memory.call, thread=thread),)

    def _renamed(self, line: CodexLine, event: EventMessage) -> Events:
        title = event.thread_name
        return (SessionSeen(at=parse_time(line.timestamp), title=title),) if title else ()
