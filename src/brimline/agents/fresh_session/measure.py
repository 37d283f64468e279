"""The system overhead of a fresh session, as its client reports it, or from the cache."""

import os
import time
from pathlib import Path

import msgspec

from brimline.agents import display_name, get_agent, source
from brimline.agents.fresh_session import cache, request
from brimline.agents.fresh_session.answers import Answer, Category, Source
from brimline.agents.fresh_session.cache import CachedAnswer
from brimline.agents.fresh_session.client import (
    AGENT,
    ClaudeCommand,
    client_environment,
    find_command,
    read_version,
)
from brimline.agents.fresh_session.configuration import fingerprint
from brimline.agents.transcripts.source import Places
from brimline.context.usage import percent
from brimline.context.window import (
    ClientSettings,
    Limit,
    ResolveContext,
    Window,
    limit_of,
    window_of,
)
from brimline.errors import BaselineFailed
from brimline.settings import Settings, cache_dir, load

TIMEOUT_S = 30.0


class Baseline(msgspec.Struct, frozen=True):
    """What a fresh session holds before the first prompt, by the client's own count.

    `tokens` is the sum of the categories that are not deferred, `percent` that of the window.
    `estimated`: the client estimated it, because the API did not count. `without` names the MCP
    servers that were too late to be counted. `at` is when the client was asked, `cached` whether
    that was an earlier time.
    """

    agent: str
    version: str
    model: str | None
    tokens: int
    percent: float | None
    window: Window | None
    limit: Limit | None
    categories: tuple[Category, ...]
    estimated: bool
    without: tuple[str, ...]
    source: Source
    at: float
    cached: bool


def baseline(
    agent: str = AGENT,
    *,
    model: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    timeout: float = TIMEOUT_S,
    settings: Settings | None = None,
    places: Places | None = None,
) -> Baseline:
    """Return the system overhead of a fresh session; BaselineFailed if the client reports none.

    The client is started in `cwd` and asked; `timeout` is for each start, in seconds. The answer is
    cached for a day, by version, model and configuration; `fresh` asks again.
    """
    _check_supported(get_agent(agent).name)
    places = places or Places.here()
    folder = _folder(cwd)
    chosen = settings or load(places.env, places.home, folder)
    cache_folder = cache_dir(chosen, places.env, places.home)
    # Not what an outer session says of itself: it would be another key each time.
    places = Places(places.home, client_environment(places))
    client = ClaudeCommand(find_command(places), folder, places.env, model, timeout)
    name = read_version(client)
    client_settings = source(agent).settings(places, str(folder))
    place = cache.cache_path(
        cache_folder, agent, name, model or "", str(folder), fingerprint(places, folder)
    )
    cached = None if fresh else cache.load_answer(place, time.time())
    answer = cached or cache.save_answer(
        place, request.measure_fresh_session(client, _is_configured(client_settings)), time.time()
    )
    return _baseline(answer, name, chosen, client_settings, cached=cached is not None)


def _check_supported(agent: str) -> None:
    if agent != AGENT:
        name = display_name(agent)
        reason = f"not supported, because {name} has no way to ask for it without a model call"
        hint = f"Use Claude Code, or look at `sent` of the first call of a {name} session."
        raise BaselineFailed(agent, reason, hint)


def _folder(cwd: str | os.PathLike[str] | None) -> Path:
    folder = Path.cwd() if cwd is None else Path(cwd).resolve()
    if not folder.is_dir():
        raise BaselineFailed(AGENT, f"{folder} is not a folder")
    return folder


def _is_configured(client_settings: ClientSettings) -> bool:
    return bool(client_settings.auto_compact_windows)


def _baseline(
    stored: CachedAnswer,
    version: str,
    settings: Settings,
    client_settings: ClientSettings,
    cached: bool,
) -> Baseline:
    answer = stored.answer
    window, limit = _bounds(answer, version, settings, client_settings)
    return Baseline(
        agent=AGENT,
        version=version,
        model=answer.model,
        tokens=answer.tokens,
        percent=percent(answer.tokens, window.tokens if window else None),
        window=window,
        limit=limit,
        categories=answer.categories,
        estimated=answer.estimated,
        without=answer.without,
        source=answer.source,
        at=stored.at,
        cached=cached,
    )


def _bounds(
    answer: Answer, version: str, settings: Settings, client_settings: ClientSettings
) -> tuple[Window | None, Limit | None]:
    """Resolve window and limit with what the client reported."""
    if answer.auto_compact is False:
        client_settings = msgspec.structs.replace(client_settings, auto_compact=False)
    context = ResolveContext(
        agent=AGENT,
        model=answer.model,
        version=version,
        reported=answer.window,
        reported_limit=answer.limit,
        settings=client_settings,
        first_sent=answer.tokens,
    )
    window = window_of(context, settings.overrides)
    return window, limit_of(context, window, settings.overrides)
