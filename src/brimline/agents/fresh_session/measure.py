"""The system overhead of a fresh session, as its client reports it, or from the cache.

The cache only saves the seconds that the client takes. Each answer is a file, which may be deleted
at any moment; a broken one is as good as none, and two processes at once each write a whole one.
"""

import hashlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline._version import __version__
from brimline.agents import display_name, get_agent, source
from brimline.agents.fresh_session.answers import Category, ClientAnswer, FreshPart, Source
from brimline.agents.fresh_session.client import (
    AGENT,
    ClaudeCommand,
    client_environment,
    find_command,
    read_version,
)
from brimline.agents.fresh_session.configuration import fingerprint, hash_files
from brimline.agents.fresh_session.request import measure_fresh_session
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
from brimline.files.atomic_file import replace_file
from brimline.files.private_folder import create_private_folder, remove_old_files
from brimline.files.project_folder import resolve_path
from brimline.files.regular_file import read_regular_file
from brimline.settings import Settings, cache_dir, load

FOLDER = "baselines"
MAX_AGE_S = 86_400.0  # changes of MCP servers and of the client's service are in no file
# An older answer still says what the sessions of its time consist of.
KEPT_S = 30 * 86_400.0
TIMEOUT_S = 30.0


class Baseline(msgspec.Struct, frozen=True):
    """What a fresh session holds before the first prompt, by the client's own count.

    `tokens` is the sum of the categories that are not deferred, `percent` that of the window.
    `estimated`: the client estimated it, because the API did not count. `without` names the MCP
    servers that were too late to be counted. `parts` are what the client names in its categories,
    none if it only counts these. `at` is when the client was asked, `cached` whether
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
    parts: tuple[FreshPart, ...]
    estimated: bool
    without: tuple[str, ...]
    source: Source
    at: float
    cached: bool


class CachedAnswer(msgspec.Struct, frozen=True):
    """An answer, when and where it was given, and the memory files as they were then.

    `client` is the client's version, `folder` the one in which it was asked.
    """

    version: str
    client: str
    folder: str
    at: float
    memory: str
    answer: ClientAnswer


_cached_answer = msgspec.json.Decoder(CachedAnswer)


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
    place = cache_path(
        cache_folder, agent, name, model or "", str(folder), fingerprint(places, folder)
    )
    cached = None if fresh else load_answer(place, time.time())
    is_configured = bool(client_settings.auto_compact_windows)
    answer = cached or save_answer(
        place,
        measure_fresh_session(client, is_configured),
        time.time(),
        client=name,
        folder=str(folder),
    )
    return _baseline(answer, chosen, client_settings, cached=cached is not None)


def can_be_asked(agent: str) -> bool:
    """Return whether an agent's client says without a model call what a fresh session holds."""
    return agent == AGENT


def _check_supported(agent: str) -> None:
    if not can_be_asked(agent):
        name = display_name(agent)
        reason = f"not supported, because {name} has no way to ask for it without a model call"
        hint = f"Use Claude Code, or look at `sent` of the first call of a {name} session."
        raise BaselineFailed(agent, reason, hint)


def _folder(cwd: str | os.PathLike[str] | None) -> Path:
    folder = Path.cwd() if cwd is None else Path(cwd).resolve()
    if not folder.is_dir():
        raise BaselineFailed(AGENT, f"{folder} is not a folder")
    return folder


def _baseline(
    stored: CachedAnswer,
    settings: Settings,
    client_settings: ClientSettings,
    cached: bool,
) -> Baseline:
    answer = stored.answer
    window, limit = _bounds(answer, stored.client, settings, client_settings)
    return Baseline(
        agent=AGENT,
        version=stored.client,
        model=answer.model,
        tokens=answer.tokens,
        percent=percent(answer.tokens, window.tokens if window else None),
        window=window,
        limit=limit,
        categories=answer.categories,
        parts=answer.parts,
        estimated=answer.estimated,
        without=answer.without,
        source=answer.source,
        at=stored.at,
        cached=cached,
    )


def _bounds(
    answer: ClientAnswer, version: str, settings: Settings, client_settings: ClientSettings
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


def cache_path(cache: Path, *parts: str) -> Path:
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
    return cache / FOLDER / f"{key.hexdigest()[:32]}.json"


def load_answer(path: Path, now: float) -> CachedAnswer | None:
    """Return a cached answer; None if it is missing, corrupt, too old, or of other memory files."""
    cached = _read_answer(path)
    if cached is None:
        return None
    current = cached.version == __version__ and abs(now - cached.at) < MAX_AGE_S
    if not current or cached.memory != hash_files(cached.answer.memory_files):
        return None
    return cached


def read_answers(cache: Path) -> list[CachedAnswer]:
    """Return all cached answers."""
    with suppress(OSError):
        return [answer for path in (cache / FOLDER).iterdir() if (answer := _read_answer(path))]
    return []


def answers_changed_at(cache: Path) -> float | None:
    """Return when an answer was last cached or removed; None if none was."""
    with suppress(OSError):
        return (cache / FOLDER).stat().st_mtime
    return None


def find_answer(
    answers: Iterable[CachedAnswer],
    agent: str | None,
    folder: str | None,
    client: str | None,
    at: float | None,
) -> CachedAnswer | None:
    """Return what a client's version said in a folder, the nearest in time; None if nothing.

    Without a time it is the newest. Any version will do if `client` is None.
    """
    if agent is None or folder is None or not can_be_asked(agent):
        return None
    asked_in = resolve_path(folder)
    there = (each for each in answers if each.folder == asked_in and client in (None, each.client))
    return min(there, key=lambda each: -each.at if at is None else abs(each.at - at), default=None)


def _read_answer(path: Path) -> CachedAnswer | None:
    try:
        return _cached_answer.decode(read_regular_file(path))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def save_answer(
    path: Path, answer: ClientAnswer, now: float, *, client: str, folder: str
) -> CachedAnswer:
    """Keep an answer if it is one to rely on: counted, and with all MCP servers in it.

    A disk that is full or read-only only makes the next time slower.
    """
    cached = CachedAnswer(__version__, client, folder, now, hash_files(answer.memory_files), answer)
    if not answer.estimated and not answer.without:
        with suppress(OSError):
            create_private_folder(path.parent)
            remove_old_files(path.parent, now - KEPT_S)
            replace_file(path, msgspec.json.encode(cached))
    return cached
