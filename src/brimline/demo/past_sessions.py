"""The days before the story: sessions that are over, so that there is a history."""

import random
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from brimline.demo.profiles import CLAUDE, CODEX, GEMINI, HOME, OPENCODE, PI
from brimline.demo.script import HOUR, Script
from brimline.demo.steps import LAPTOP, SERVER, Act, Role

DAYS = 28
DAY = 24 * HOUR
PROJECTS = ("shop", "billing", "search", "docs-site", "warehouse", "mobile", "infra", "blog")
TITLES = (
    "Fix the build",
    "Upgrade dependencies",
    "Review of the open changes",
    "Faster start page",
    "Import of last year's orders",
    "Tests for the mailer",
    "Typing for the old modules",
    "Error page for lost payments",
)


class Kind(NamedTuple):
    """A client with a model: where it was seen to compact, and how much it had left then."""

    agent: str
    model: str
    version: str
    full: int
    left: int


KINDS = (
    Kind("claude", "claude-sonnet-4-5", CLAUDE, 166_900, 34_000),
    Kind("claude", "claude-sonnet-4-5", "2.1.298", 166_400, 31_000),
    Kind("claude", "claude-opus-4-6", CLAUDE, 166_700, 36_000),
    Kind("codex", "gpt-5.5", CODEX, 244_100, 41_000),
    Kind("codex", "gpt-5.5", "0.142.5", 243_800, 44_000),
    Kind("gemini", "gemini-3-pro-preview", GEMINI, 522_000, 88_000),
    Kind("opencode", "claude-sonnet-4-5", OPENCODE, 167_400, 29_000),
    Kind("pi", "gpt-5.4-mini", PI, 383_000, 52_000),
)


def before() -> Iterator[Act]:
    """The sessions of the last weeks, the oldest first; of weekends there are few."""
    chance = random.Random(DAYS)
    for day in range(DAYS, 0, -1):
        count = chance.randint(0, 1) if day % 7 in (2, 3) else chance.randint(2, 5)
        for _ in range(count):
            begins = -day * DAY + chance.uniform(-3, 4) * HOUR
            yield from _session(begins, chance).at_once()


def _session(begins: float, chance: random.Random) -> Script:
    kind = chance.choice(KINDS)
    project = chance.choice(PROJECTS)
    role = Role(str(UUID(int=chance.getrandbits(128), version=4)), kind.agent, kind.model,
                f"{HOME}/{project}", kind.version, chance.choice(TITLES),
                chance.choice((LAPTOP, LAPTOP, SERVER)))  # fmt: skip
    made = Script(role, begins)
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2))):
        full = kind.full - chance.randint(0, 2_400)
        made.work(full, chance.randint(30, 44), made.at + chance.uniform(0.5, 1.2) * HOUR)
        made.compact(60.0, kind.left + chance.randint(-4_000, 4_000))
    made.work(round(kind.full * chance.uniform(0.35, 0.9)), chance.randint(16, 40),
              made.at + chance.uniform(0.3, 1.0) * HOUR)  # fmt: skip
    return made
