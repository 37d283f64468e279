"""What a client reports of its account and of the provider's cache: quotas, the prompt cache.

The fields have the names and units of Claude Code's status line (2.1.325); all times are in seconds
since the epoch. None is unknown. It is foreign input: a value outside of the bounds is invalid.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec

from brimline.context.usage import Tokens
from brimline.files.foreign_json import JsonDecoder

MAX_MISSES = 100  # of a session, the last ones
REPEAT_S = 10.0  # a report that repeats the one before is a new one after this

# An epoch time is far more than any percentage, and one in milliseconds more than any in seconds.
UsedPercentage: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1_000)]
ReportTime: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
EpochSeconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, lt=1e11)]
Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]
Ratio: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
CauseWord: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]{1,40}\Z")]
CauseWords: TypeAlias = Annotated[tuple[CauseWord, ...], msgspec.Meta(max_length=16)]
CauseCounts: TypeAlias = Annotated[dict[CauseWord, Tokens], msgspec.Meta(max_length=64)]

CacheOrigin: TypeAlias = Literal["reported", "computed"]


class Quota(msgspec.Struct, frozen=True):
    """How much of an account's allowance is used, and when the next one begins."""

    used_percentage: UsedPercentage
    resets_at: EpochSeconds


class SpendLimit(Quota, frozen=True):
    """An allowance in USD, of a `period` such as monthly."""

    used_usd: Dollars | None = None
    limit_usd: Dollars | None = None
    period: Literal["daily", "weekly", "monthly"] | None = None


QuotaT = TypeVar("QuotaT", bound=Quota)


def _unless_reset(quota: QuotaT | None, now: float) -> QuotaT | None:
    return None if quota is None or quota.resets_at <= now else quota


class Quotas(msgspec.Struct, frozen=True):
    """The quotas of the account that a session uses, as its client reported them at `at`."""

    at: ReportTime = 0.0
    five_hour: Quota | None = None
    seven_day: Quota | None = None
    spend_limit: SpendLimit | None = None

    @property
    def known(self) -> dict[str, Quota]:
        """The quotas that are known, by their short names."""
        quotas = {"5h": self.five_hour, "7d": self.seven_day, "spend": self.spend_limit}
        return {name: quota for name, quota in quotas.items() if quota is not None}

    def current(self, now: float) -> "Quotas | None":
        """Return these without those that have been reset: how much is used since is unknown."""
        current = Quotas(
            self.at,
            _unless_reset(self.five_hour, now),
            _unless_reset(self.seven_day, now),
            _unless_reset(self.spend_limit, now),
        )
        return current if current.known else None


class MissCause(msgspec.Struct, frozen=True):
    """The likely causes of a cache miss, in the client's words."""

    causes: CauseWords = ()


class PromptCache(msgspec.Struct, frozen=True):
    """The provider's cache of a main thread's prompt at `at`.

    `origin` is reported if the client says so, computed if `expires_at` follows from the last call
    and the cache's lifetime `ttl`. `caching_observed`: a reply reported cached tokens.
    `expected_rebuilds` counts the misses that a compaction explains, `misses` the others.
    `recache_tokens_if_cold` is what the next call has to write again after `expires_at`.
    """

    origin: CacheOrigin = "reported"
    at: ReportTime = 0.0
    warm: bool | None = None
    caching_observed: bool | None = None
    ttl: Literal["5m", "1h"] | None = None
    expires_at: EpochSeconds | None = None
    requests: Tokens | None = None
    misses: Tokens | None = None
    expected_rebuilds: Tokens | None = None
    hit_ratio: Ratio | None = None
    cache_write_tokens: Tokens | None = None
    miss_recache_tokens: Tokens | None = None
    last_miss_at: EpochSeconds | None = None
    last_miss_cause: MissCause | None = None
    miss_causes: CauseCounts | None = None
    recache_tokens_if_cold: Tokens | None = None

    def current(self, now: float) -> "PromptCache":
        """Return this as it is now: the cache goes cold without a report."""
        if self.expires_at is None or now < self.expires_at:
            return self
        return msgspec.structs.replace(self, warm=False)


class ReportedMiss(msgspec.Struct, frozen=True, array_like=True):
    """A cache miss with a cause, as the client reported it."""

    at: float
    causes: tuple[str, ...]


class ClientReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last report of a session's client, with the cache misses of all of them."""

    quotas: Quotas | None = None
    prompt_cache: PromptCache | None = None
    misses: tuple[ReportedMiss, ...] = ()

    def update(self, quotas: Quotas | None, cache: PromptCache | None) -> "ClientReport":
        """Return this with a later report; one that repeats it is no change for REPEAT_S."""
        if quotas is None or _is_repeat(quotas, self.quotas):
            quotas = self.quotas
        if cache is None or _is_repeat(cache, self.prompt_cache):
            cache = self.prompt_cache
        if quotas is self.quotas and cache is self.prompt_cache:
            return self
        return ClientReport(quotas, cache, self._with_miss(cache))

    def _with_miss(self, cache: PromptCache | None) -> tuple[ReportedMiss, ...]:
        if cache is None or cache.last_miss_at is None or cache.last_miss_cause is None:
            return self.misses
        miss = ReportedMiss(cache.last_miss_at, cache.last_miss_cause.causes)
        if not miss.causes or miss in self.misses:
            return self.misses
        return (*self.misses, miss)[-MAX_MISSES:]

    def next_change(self, now: float) -> float | None:
        """Return when a quota is reset or the cache expires next."""
        return min((at for at in self._ends() if at > now), default=None)

    def _ends(self) -> Iterator[float]:
        if self.quotas is not None:
            yield from (quota.resets_at for quota in self.quotas.known.values())
        if self.prompt_cache is not None and self.prompt_cache.expires_at is not None:
            yield self.prompt_cache.expires_at

    def encode(self) -> str | None:
        """Return the text in a store; None if nothing was reported."""
        return None if self == NO_REPORT else msgspec.json.encode(self).decode()


NO_REPORT = ClientReport()
_decoder = JsonDecoder(ClientReport)


def decode_report(text: str | None) -> ClientReport:
    """Decode a stored report; one of another version that cannot be read is none."""
    return (_decoder.decode_or_none(text) if text else None) or NO_REPORT


def _is_repeat(new: Quotas | PromptCache, known: Quotas | PromptCache | None) -> bool:
    if known is None or new.at - known.at >= REPEAT_S:
        return False
    return msgspec.structs.replace(new, at=known.at) == known
