"""Cache misses: calls that had to pay again for what the call before could have left in the cache.

Lifetimes are the providers' own figures (November 2026). Anthropic: five minutes, or an hour for
what was written so, each from its last use (platform.claude.com, "Prompt caching"). OpenAI:
typically five to ten minutes without use, at most an hour (developers.openai.com, "Prompt
caching"). Gemini: implicit, without a guarantee (ai.google.dev, "Context caching").
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec

from brimline.context.client_report import PromptCache, ReportedMiss
from brimline.context.events import Call, is_compaction_thread
from brimline.context.prices import MILLION, price_of
from brimline.context.tracker import ChangeKind, Thread
from brimline.context.usage import Usage

LIFETIME_S = 300.0
LONG_LIFETIME_S = 3_600.0
LIFETIME_MODELS = "claude-"  # those of the provider that documents how long its cache lives
MAX_APART_S = 60.0  # between the time of a call and that of its miss, by the client's report

# What a cache whose writes are reported may leave unread: the smallest prefix that is cached.
MIN_MISS_TOKENS = 1_024
# Other caches read in blocks, and a hit may end a block early. Measured on real sessions: blocks of
# 128 (gpt-5.4), 512 (gpt-5.5) and 1,024 (gpt-5.6); about 4,096 (Gemini 3.1).
BLOCK_TOKENS = 1_024
LARGE_BLOCK_TOKENS = 4_096
LARGE_BLOCK_MODELS = "gemini-"
# What a provider may bill of a reply that is in no later prompt, such as the marks of its end.
MAX_MARK_TOKENS = 50

Change: TypeAlias = Literal["compaction", "clear"] | ChangeKind
Cause: TypeAlias = Literal[
    "idle longer than the cache lives",
    "model switch",
    "compaction",
    "clear",
    "rewind",
    "context edit",
    "resume",
    "effort switch",
    "tools or instructions changed",
    "fast mode switch",
    "request options changed",
    "dropped by the provider",
    "unknown",
]

# What Claude Code calls them (2.1.325); its `unknown` is none.
CAUSES_OF_WORDS: Mapping[str, Cause] = {
    "ttl_expired_5m": "idle longer than the cache lives",
    "ttl_expired_1h": "idle longer than the cache lives",
    "model_changed": "model switch",
    "effort_changed": "effort switch",
    "messages_rewritten": "context edit",
    "system_prompt_changed": "tools or instructions changed",
    "tools_changed": "tools or instructions changed",
    "defer_loading_changed": "tools or instructions changed",
    "fast_mode_changed": "fast mode switch",
    "auto_mode_changed": "request options changed",
    "betas_changed": "request options changed",
    "cache_scope_or_ttl_changed": "request options changed",
    "extra_body_changed": "request options changed",
    "overage_changed": "request options changed",
    "thinking_display_changed": "request options changed",
    "thinking_mode_changed": "request options changed",
    "likely_server_side": "dropped by the provider",
}
UNKNOWN_WORD = "unknown"

NEW_CYCLE = ("compaction", "clear")


class CacheMiss(msgspec.Struct, frozen=True):
    """A call that paid again for cached tokens.

    `number` is the call's place in its thread, from 1 on. `cost` is in USD: what the tokens cost
    more than as cache reads; None if no price is known. `idle_s` is the time since the call before.
    `cause` is the likely one, by the calls; if the client reported the cause, `reported` is that in
    its own words, and `cause` follows it.
    """

    call: str
    number: int
    at: float | None
    tokens: int
    cost: float | None
    idle_s: float | None
    cause: Cause
    reported: str | None = None

    @property
    def cause_text(self) -> str:
        """The cause, and whether the client reported it."""
        if self.reported is None:
            return self.cause
        cause = self.reported if self.cause == "unknown" else self.cause
        return f"{cause} (reported by the client)"


MissT = TypeVar("MissT", bound=CacheMiss)


class MissFinder:
    """Finds the misses of one thread, whose calls are added in their order.

    What survives a compaction is the smallest prefix that a first call of a cycle read: the system
    prompt. The flags are about the model of the last call.
    """

    __slots__ = (
        "_before",
        "_has_cache",
        "_left",
        "_lifetime_s",
        "_number",
        "_reports_writes",
        "_system_read",
    )

    def __init__(self, number: int = 0) -> None:
        """Start after the first `number` calls, about which nothing is known."""
        self._number = number
        self._before: Call | None = None
        self._system_read = 0
        self._left = 0
        self._has_cache = self._reports_writes = False
        self._lifetime_s = LIFETIME_S

    def add(
        self, call: Call, change: Change | None = None, rewound_to: Call | None = None
    ) -> CacheMiss | None:
        """Return the miss of the next call, if it is one.

        `change` is what became of the prompt since the call before; `rewound_to` is the call that a
        rewind went back to, None for the empty start.
        """
        self._number += 1
        usage, before, miss = call.usage, self._before, None
        read, written = usage.cache_read, usage.cache_write
        if not (read or written or usage.input):  # it failed
            return None
        if before is None:
            self._system_read = read
        elif (
            change is not None or self._left - read > MIN_MISS_TOKENS or call.model != before.model
        ):  # the others, nearly all, need no closer look
            miss = self._compare(call, before, change, rewound_to)
        self._before = call
        if written:
            self._has_cache = self._reports_writes = True
            self._lifetime_s = LONG_LIFETIME_S if usage.cache_write_1h else LIFETIME_S
        elif read:
            self._has_cache = True
        self._left = self._tokens_left(usage)
        return miss

    def _compare(
        self, call: Call, before: Call, change: Change | None, rewound_to: Call | None
    ) -> CacheMiss | None:
        """Return the miss of a call, and note what it shows about the cache."""
        usage = call.usage
        base = (rewound_to or before).usage
        is_new = change in NEW_CYCLE or (change == "rewind" and rewound_to is None)
        left = self._system_read if is_new else self._tokens_left(base)
        # A prompt that shrank may hold new words; of these, only the last reply is known.
        tokens = min(left, usage.sent - base.output) - usage.cache_read
        miss = None
        if self._has_cache and tokens > self._tolerated_tokens(call):
            miss = self._miss(call, before, change, tokens)
        if call.model != before.model:
            self._system_read, self._has_cache, self._reports_writes = 0, False, False
        if is_new and usage.cache_read:
            self._system_read = min(usage.cache_read, self._system_read or usage.cache_read)
        return miss

    def _tokens_left(self, usage: Usage) -> int:
        """Return how many tokens a call could have left in the cache for the next."""
        cached = usage.cache_read + usage.cache_write
        return cached if self._reports_writes else cached + usage.input

    def _tolerated_tokens(self, call: Call) -> int:
        if self._reports_writes:
            return MIN_MISS_TOKENS
        is_large = call.model is not None and LARGE_BLOCK_MODELS in call.model
        return 2 * (LARGE_BLOCK_TOKENS if is_large else BLOCK_TOKENS)

    def _miss(self, call: Call, before: Call, change: Change | None, tokens: int) -> CacheMiss:
        idle_s = None
        if call.at is not None and before.at is not None:
            idle_s = max(0.0, call.at - before.at)
        return CacheMiss(
            call=call.id,
            number=self._number,
            at=call.at,
            tokens=tokens,
            cost=_cost(call, tokens),
            idle_s=idle_s,
            cause=self._cause(call, before, change, idle_s),
        )

    def _cause(
        self, call: Call, before: Call, change: Change | None, idle_s: float | None
    ) -> Cause:
        if idle_s is not None and idle_s > self._lifetime_s:
            return "idle longer than the cache lives"
        if call.model != before.model:
            return "model switch"
        if change is not None:
            return change
        usage, earlier = call.usage, before.usage
        if self._reports_writes and not usage.cache_read and idle_s is not None:
            # They come first in a prompt. Without the times the cache may have expired.
            return "tools or instructions changed"
        # What the call before held, but its reasoning, which some providers drop, and was not sent.
        gone = earlier.held - (earlier.reasoning or 0) - usage.sent
        is_less = gone > MAX_MARK_TOKENS
        if usage.sent < earlier.sent or (is_less and earlier.reasoning is not None):
            return "context edit"
        if _asks_for_longer_life(usage, earlier):
            return "request options changed"
        # All that the call before read is still there, but not what it wrote.
        is_start_read = usage.cache_read > 0
        if self._reports_writes:
            is_start_read = 0 < earlier.cache_read <= usage.cache_read
        if is_start_read and not is_less and idle_s is not None:
            return "dropped by the provider"
        return "unknown"


def _asks_for_longer_life(usage: Usage, before: Usage) -> bool:
    """Return whether a call read all but what the one before wrote, which was for five minutes.

    What is written for five minutes is not read by a call that writes for an hour: by none of 6 in
    real sessions; what is written for an hour is read by the others, by 7 of 7.
    """
    is_longer = usage.cache_write_1h > 0 and before.cache_write > 0 == before.cache_write_1h
    return is_longer and usage.cache_read >= before.cache_read


def find_misses(thread: Thread) -> list[CacheMiss]:
    """Return the cache misses of a thread, in the order of its calls."""
    if is_compaction_thread(thread.name):
        return []  # these calls do not continue each other
    first = thread.dropped.count
    finder, changes = MissFinder(first), prompt_changes(thread)
    misses: list[CacheMiss] = []
    for place, call in enumerate(thread.calls.in_order(), first):
        if place in changes:
            change, rewound_to = changes[place]
            miss = finder.add(call, change, thread.calls.get(rewound_to or ""))
        else:
            miss = finder.add(call)
        if miss:
            misses.append(miss)
    return misses


def with_reported_causes(misses: Iterable[MissT], reported: Sequence[ReportedMiss]) -> list[MissT]:
    """Return the misses of a main thread with the causes that the client reported.

    A report has only a time, so it is about the miss nearest to it.
    """
    found = list(misses)
    for report in reported:
        words = [word for word in report.causes if word != UNKNOWN_WORD]
        apart = [
            (abs(miss.at - report.at), place)
            for place, miss in enumerate(found)
            if miss.at is not None
        ]
        nearest = min(apart, default=None)
        if not words or nearest is None or nearest[0] > MAX_APART_S:
            continue
        known = (CAUSES_OF_WORDS[word] for word in words if word in CAUSES_OF_WORDS)
        found[nearest[1]] = msgspec.structs.replace(
            found[nearest[1]], cause=next(known, "unknown"), reported=", ".join(words)
        )
    return found


def compute_prompt_cache(thread: Thread) -> PromptCache | None:
    """Return when a thread's cache expires, by its last call and the lifetime of what was written.

    None if that is not known: before a cached call, and of providers without a fixed lifetime.
    """
    last = thread.calls.last
    if last is None or last.at is None or LIFETIME_MODELS not in (last.model or ""):
        return None
    usage = last.usage
    written = (call.usage for call in reversed(thread.calls.in_order()) if call.usage.cache_write)
    write = next(written, None)
    if write is None or not usage.cache_read + usage.cache_write:
        return None
    is_long = write.cache_write_1h > 0
    return PromptCache(
        origin="computed",
        at=last.at,
        warm=True,
        caching_observed=True,
        ttl="1h" if is_long else "5m",
        expires_at=last.at + (LONG_LIFETIME_S if is_long else LIFETIME_S),
        recache_tokens_if_cold=usage.sent,  # as Claude Code 2.1.325 counts
    )


def prompt_changes(thread: Thread) -> Mapping[int, tuple[Change, str | None]]:
    """Return what became of the prompt before a call, by the number of calls before it.

    The greatest change counts: a new cycle, then a rewind, then the others.
    """
    changes: dict[int, tuple[Change, str | None]] = {}
    for each in sorted(thread.changes, key=lambda each: each.kind == "rewind"):
        changes[each.calls] = each.kind, each.to
    changes |= dict.fromkeys(thread.clears, ("clear", None))
    changes |= dict.fromkeys((each.calls for each in thread.compactions), ("compaction", None))
    return changes


def _cost(call: Call, tokens: int) -> float | None:
    """Return what tokens cost more than as cache reads: a prompt is read, written, then input.

    Of what is written, what lives for an hour comes first.
    """
    if call.stored_miss_cost is not None:
        return call.stored_miss_cost
    usage = call.usage
    price = price_of(call)
    if price is None:
        return None
    written = min(tokens, usage.cache_write)
    written_1h = min(written, usage.cache_write_1h)
    return (
        written_1h * (price.cache_write_1h - price.cached)
        + (written - written_1h) * (price.cache_write - price.cached)
        + (tokens - written) * (price.input - price.cached)
    ) / MILLION
