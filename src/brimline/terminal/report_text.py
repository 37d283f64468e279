"""Quotas, the prompt cache and what ends a session, as text with times of the local day."""

import time
from typing import Protocol

from brimline.context.client_report import PromptCache, Quotas
from brimline.context.usage import format_percent, format_tokens
from brimline.terminal.text import format_age

DAY_S = 86_400
FORK_MARK = "fork: "  # before the title of a session that continues a copy of another


def format_moment(at: float, now: float) -> str:
    """Format a time near to now: 14:30, Thu 14:30, or 1 Dec if it is a week or more away."""
    moment = time.localtime(at)
    if abs(at - now) >= 6 * DAY_S:
        return f"{moment.tm_mday} {time.strftime('%b', moment)}"
    is_today = moment[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M" if is_today else "%a %H:%M", moment)


def describe_quotas(quotas: Quotas, now: float) -> str:
    """Describe all quotas: 5h 62.0% used, resets 14:30; ... (reported 3m ago)."""
    parts = [
        f"{name} {format_percent(quota.used_percentage)} used, "
        f"resets {format_moment(quota.resets_at, now)}"
        for name, quota in quotas.known.items()
    ]
    age = f" (reported {format_age(now - quotas.at)} ago)" if quotas.at else ""  # a stream has none
    return "; ".join(parts) + age


def describe_cache(cache: PromptCache, now: float) -> str | None:
    """Describe a cache: warm until 14:30 (reported), 82K tokens to write again if it expires.

    None if nothing is known, and when it expired more than a day ago.
    """
    if cache.caching_observed is False:
        return "none: no reply reported cached tokens"
    if cache.warm is None or cache.expires_at is None or now - cache.expires_at > DAY_S:
        return None
    state = "warm until" if cache.warm else "expired"
    parts = [f"{state} {format_moment(cache.expires_at, now)} ({cache.origin})"]
    if cache.recache_tokens_if_cold:
        when = "if it expires" if cache.warm else "with the next call"
        parts.append(f"{format_tokens(cache.recache_tokens_if_cold)} tokens to write again {when}")
    if cache.hit_ratio is not None:
        parts.append(f"{format_percent(100 * cache.hit_ratio)} of the input read from it")
    return ", ".join(parts)


class AnyEnd(Protocol):
    """An end that stops a session, as it was found here or as a daemon reports it."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def at(self) -> float | None: ...


def describe_end(end: AnyEnd, now: float) -> str:
    """Describe an end: 5h 94.0%, resets 18:40; until 14:32, then 217K again."""
    if end.at is None:
        return end.text
    moment = format_moment(end.at, now)
    if end.kind == "cache":
        return f"until {moment}, {end.text}"
    return f"{end.text}, resets {moment}"
