"""What a session needs of a person now, what stops it first, and the order of every list by that.

Pure: the surfaces gather what they know of a session as `NeedFacts`. What is unknown causes no
need. A session without a call for NEEDS_FOR_S has none, however full it was.
"""

import time
from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import msgspec

from brimline.context.client_report import PromptCache, Quota, Quotas
from brimline.context.policy.levels import Fullness, is_near_limit
from brimline.context.prices import compute_cost, day_of, tier_of
from brimline.context.usage import Usage, format_percent, format_tokens

NeedKind: TypeAlias = Literal["loop", "compacting", "limit", "level", "quota", "cache", "message"]
EndKind: TypeAlias = Literal["compaction", "quota", "budget", "cache"]
HandoffState: TypeAlias = Literal["none", "fresh", "old", "draft"]
AGENT_KINDS: frozenset[NeedKind] = frozenset({"loop", "quota"})  # that its agent can act on
KINDS: tuple[NeedKind, ...] = get_args(NeedKind)
Rank: TypeAlias = tuple[int, int, float]
KeptPart: TypeAlias = tuple[str, int]  # the name of a category, and its tokens

ACTIVE_FOR_S = 3_600.0  # without a call for longer, a session is idle
NEEDS_FOR_S = 24 * 3_600.0
NEARLY_USED_PERCENT = 90.0  # of a quota or a budget
MOST_OF_LIMIT_PERCENT = 50.0  # that stays after a compaction: then it is the cause of a loop
COLD_SOON_S = {"5m": 120.0, "1h": 600.0}  # before the cache's end, by its lifetime
LARGE_TOKENS = 50_000  # to write again: a smaller context is not worth a sentence
MINUTE_S = 60.0

QUOTA_NAMES = {"5h": "Five-hour quota", "7d": "Seven-day quota", "spend": "Spend limit"}


class NeedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session.

    `name` is what commands call it. `called_at` is the time of its last call, None if it has ended.
    `is_limit_enforced` is False if its client does not compact by itself. `handoff` is None if
    nothing can ask its agent for one. `has_remote_readers`: people in other time zones may read the
    sentence. `undeliverable` is why nothing will deliver the messages that wait. `loop` are its
    compactions in a row with only a few calls between them; `kept_percent` is what stays after one,
    in percent of the limit, and `kept_part` the largest part of that.
    `cost` and `budget` are in USD: what it has cost, and what it may cost.
    """

    name: str
    called_at: float | None
    is_compacting: bool = False
    is_limit_enforced: bool = True
    fullness: Fullness | None = None
    percent_raw: float | None = None
    percent_of_limit: float | None = None
    calls_left: int | None = None
    handoff: HandoffState | None = None
    calls_since_handoff: int | None = None
    quotas: Quotas | None = None
    prompt_cache: PromptCache | None = None
    model: str | None = None
    unread: int = 0
    undeliverable: str | None = None
    cost: float | None = None
    budget: float | None = None
    has_remote_readers: bool = False
    loop: int | None = None
    kept_percent: float | None = None
    kept_part: KeptPart | None = None

    @property
    def nearness(self) -> float:
        """How near the limit is, in percent of it, else of the window; -1 if that is unknown."""
        if self.percent_of_limit is not None:
            return self.percent_of_limit
        return -1.0 if self.percent_raw is None else self.percent_raw

    def is_in_use(self, now: float) -> bool:
        """Return whether it has made a call in the last NEEDS_FOR_S, and has not ended."""
        return self.called_at is not None and now < self.called_at + NEEDS_FOR_S

    @property
    def is_near_limit(self) -> bool:
        """Whether it has reached its last level or its limit."""
        return is_near_limit(self.fullness)


class Need(msgspec.Struct, frozen=True):
    """What a session asks of a person now."""

    kind: NeedKind
    text: str


class End(msgspec.Struct, frozen=True):
    """What stops a session if it goes on: its compaction, a quota, its budget, its cache.

    `text` says how far it is. `used` is the part that is used up, in percent; None if that is
    unknown, and for a cache. `at` is when a quota is reset, or when the cache expires.
    """

    kind: EndKind
    text: str
    used: float | None = None
    at: float | None = None
    is_urgent: bool = False


class Assessment(msgspec.Struct, frozen=True):
    """What to show of a session; `ends` are the nearest first.

    Lists are sorted by `rank`, the smallest first: sessions with a need, by its kind, then active
    ones, both nearest to their limit first; then idle ones, the latest first.
    """

    need: Need | None
    ends: list[End]
    rank: Rank
    is_near_limit: bool


def assess(facts: NeedFacts, now: float) -> Assessment:
    in_use = facts.is_in_use(now)
    need = next(_needs(facts, now), None) if in_use else None
    return Assessment(
        need, _find_ends(facts, now), _rank(facts, need, now), in_use and facts.is_near_limit
    )


def _rank(facts: NeedFacts, need: Need | None, now: float) -> Rank:
    if need is not None:
        return (0, KINDS.index(need.kind), -facts.nearness)
    called_at = facts.called_at
    if called_at is not None and now < called_at + ACTIVE_FOR_S:
        return (1, 0, -facts.nearness)
    return (2, 0, -(called_at or 0.0))


def next_change(called_at: float | None, cache: PromptCache | None, now: float) -> float | None:
    """Return when need or rank change without an event: a session rests, the cache goes cold.

    The time at which a quota is reset is that of its report.
    """
    return min((at for at in _changes(called_at, cache, now) if at > now), default=None)


def _changes(called_at: float | None, cache: PromptCache | None, now: float) -> Iterator[float]:
    if called_at is None:
        return
    yield called_at + ACTIVE_FOR_S
    yield called_at + NEEDS_FOR_S
    if cache is not None and cache.expires_at is not None:
        notice_at = cache.expires_at - _notice_s(cache)
        # Then the sentence counts down.
        yield notice_at if now < notice_at else min(cache.expires_at, now + MINUTE_S)


def _needs(facts: NeedFacts, now: float) -> Iterator[Need]:
    if facts.loop:
        yield Need("loop", _in_loop(facts, facts.loop))
    if facts.is_compacting:
        yield Need("compacting", f"It is compacting; {_describe_handoff(facts)}.")
    if facts.fullness == "limit" or facts.calls_left == 0:
        yield Need("limit", _at_limit(facts))
    if facts.fullness == "high" and facts.handoff != "fresh":
        yield Need("level", _above_last_level(facts))
    yield from _quota_needs(facts, now)
    yield from _cache_needs(facts, now)
    if facts.unread:
        yield Need("message", _waiting(facts))


def _in_loop(facts: NeedFacts, compactions: int) -> str:
    what = f"Compacted {compactions} times in a row"
    if facts.kept_percent is None:
        return f"{what}."
    stays = f"{what}: what stays takes {format_percent(facts.kept_percent)} of the limit"
    if facts.kept_percent < MOST_OF_LIMIT_PERCENT:
        return f"{stays}, and a few calls fill the rest."
    if facts.kept_part is None:
        return f"{stays}."
    name, tokens = facts.kept_part
    return f"{stays}, {format_tokens(tokens)} of it {name}."


def _waiting(facts: NeedFacts) -> str:
    what = "1 message waits" if facts.unread == 1 else f"{facts.unread} messages wait"
    if facts.undeliverable is None:
        return f"{what} for its next prompt."
    return f"{what}, and nothing will deliver {'it' if facts.unread == 1 else 'them'}: " + (
        facts.undeliverable
    )


def _at_limit(facts: NeedFacts) -> str:
    compacts = facts.is_limit_enforced and facts.percent_of_limit is not None
    what = "Compacts with the next call" if compacts else "Its window is full"
    return f"{what}; {_describe_handoff(facts)}."


def _describe_handoff(facts: NeedFacts) -> str:
    if facts.handoff is None:
        return "nothing keeps a handoff of it"
    if facts.handoff == "none":
        return "it has no handoff"
    return f"its handoff is {_age_of_handoff(facts)}"


def _age_of_handoff(facts: NeedFacts) -> str:
    if facts.handoff == "draft":
        return "a draft"
    if facts.handoff == "fresh" or facts.calls_since_handoff is None:
        return str(facts.handoff)
    return f"{_calls(facts.calls_since_handoff)} old"


def describe_to_agent(facts: NeedFacts, now: float) -> str:
    """Return what a session's agent is to know beside its figures, as sentences.

    These are the facts of which a need is made for a person. Nothing is said of a document that the
    agent has not written.
    """
    sentences = [each.text for each in _needs(facts, now) if each.kind in AGENT_KINDS]
    if facts.handoff in ("fresh", "old"):
        sentences.append(f"Your handoff is {_age_of_handoff(facts)}.")
    return " ".join(sentences)


def _above_last_level(facts: NeedFacts) -> str:
    if facts.calls_left is not None:
        where = f"About {_calls(facts.calls_left)} left"
    elif facts.percent_of_limit is not None:
        where = f"At {format_percent(facts.percent_of_limit)} of its limit"
    else:
        where = "Above its last level"
    if facts.handoff is None:
        return f"{where}: have it write down where it stands."
    another = "another" if facts.handoff == "old" else "a"
    return f"{where}: ask for {another} handoff (`brimline handoff --ask {facts.name}`)."


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def _quota_needs(facts: NeedFacts, now: float) -> Iterator[Need]:
    if (most := _most_used(facts, now)) and most[1].used_percentage >= NEARLY_USED_PERCENT:
        name, quota = most
        used, reset = format_percent(quota.used_percentage), _moment(quota.resets_at, now)
        if facts.has_remote_readers:
            reset += time.strftime(" %Z", time.localtime(quota.resets_at))
        yield Need("quota", f"{QUOTA_NAMES[name]} at {used}, resets {reset}.")


def _most_used(facts: NeedFacts, now: float) -> tuple[str, Quota] | None:
    """Return the quota of which most is used, with its short name."""
    quotas = facts.quotas.current(now) if facts.quotas else None
    if quotas is None:
        return None
    return max(quotas.known.items(), key=lambda each: each[1].used_percentage)


def _moment(at: float, now: float) -> str:
    """Return a local time: with its day unless that is today."""
    then, today = time.localtime(at), time.localtime(now)
    day = "" if then[:3] == today[:3] else time.strftime("on %d %b ", then)
    return f"{day}at {time.strftime('%H:%M', then)}"


def _notice_s(cache: PromptCache) -> float:
    return COLD_SOON_S[cache.ttl or "5m"]


def _cache_needs(facts: NeedFacts, now: float) -> Iterator[Need]:
    cache = facts.prompt_cache
    if cache is None or cache.expires_at is None or not _is_cold_soon(cache, now):
        return
    minutes = max(1, round((cache.expires_at - now) / MINUTE_S))
    within = "a minute" if minutes == 1 else f"{minutes} minutes"
    again = _written_again(facts, cache, now)
    yield Need("cache", f"The cache goes cold in {within}: the next call then writes {again}.")


def _is_cold_soon(cache: PromptCache, now: float) -> bool:
    """Return whether a cache is about to go cold on a large context."""
    if cache.expires_at is None or (cache.recache_tokens_if_cold or 0) < LARGE_TOKENS:
        return False
    return 0 < cache.expires_at - now <= _notice_s(cache)


def _written_again(facts: NeedFacts, cache: PromptCache, now: float) -> str:
    """Return what a call writes to a cold cache, with its cost: 217K again ($1.63)."""
    tokens = cache.recache_tokens_if_cold or 0
    usage = Usage(0, 0, tokens, 0, cache_write_1h=tokens if cache.ttl == "1h" else 0)
    cost = compute_cost(facts.model, day_of(now), tier_of(facts.model, usage), usage)
    return f"{format_tokens(tokens)} again" + ("" if cost is None else f" (${cost:.2f})")


def _find_ends(facts: NeedFacts, now: float) -> list[End]:
    """Return what is known of each end: urgent ones first, then by how much is used up."""
    found = (_compaction(facts), _quota(facts, now), _budget(facts), _cache(facts, now))
    ends = [end for end in found if end]
    if not facts.is_in_use(now):  # then nothing is urgent, however full it was
        ends = [msgspec.structs.replace(end, is_urgent=False) for end in ends]
    return sorted(ends, key=lambda end: (not end.is_urgent, -(end.used or 0.0)))


def _compaction(facts: NeedFacts) -> End | None:
    is_limit = facts.percent_of_limit is not None
    used = facts.percent_of_limit if is_limit else facts.percent_raw
    if facts.is_compacting:
        return End("compaction", "compacting", used, is_urgent=True)
    if used is None:
        return None
    share = f"of {'limit' if is_limit else 'window'} {format_percent(used)}"
    left = "" if facts.calls_left is None else f"about {_calls(facts.calls_left)}, "
    return End("compaction", left + share, used, is_urgent=facts.is_near_limit)


def _quota(facts: NeedFacts, now: float) -> End | None:
    if (most := _most_used(facts, now)) is None:
        return None
    name, quota = most
    used = quota.used_percentage
    text = f"{name} {format_percent(used)}"
    return End("quota", text, used, quota.resets_at, is_urgent=used >= NEARLY_USED_PERCENT)


def _budget(facts: NeedFacts) -> End | None:
    """Return how much of the user's budget a session has cost; nothing stops it there."""
    if facts.budget is None or facts.cost is None:
        return None
    used = round(100 * facts.cost / facts.budget, 1)
    text = f"${facts.cost:,.2f} of ${facts.budget:,.2f}, {format_percent(used)}"
    return End("budget", text, used, is_urgent=used >= NEARLY_USED_PERCENT)


def _cache(facts: NeedFacts, now: float) -> End | None:
    cache = facts.prompt_cache
    if cache is None or cache.expires_at is None or not cache.recache_tokens_if_cold:
        return None
    if cache.expires_at <= now:
        return None
    again = _written_again(facts, cache, now)
    return End("cache", f"then {again}", at=cache.expires_at, is_urgent=_is_cold_soon(cache, now))
