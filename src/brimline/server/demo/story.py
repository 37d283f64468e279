"""The sample sessions of the demo, from story.toml."""

import random
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from brimline.context.window import Overrides
from brimline.server.demo.script import HOUR_S, LAPTOP, SERVER, DemoSession, Script, Step

LAP_S = 3_600.0  # after this the story starts again
PAST_DAYS = 28
DAY_S = 24 * HOUR_S

STORY: dict[str, Any] = tomllib.loads((Path(__file__).parent / "story.toml").read_text("utf-8"))
OVERRIDES = Overrides(windows=STORY["windows"])
SESSIONS: dict[str, DemoSession] = {
    name: msgspec.convert(entry, DemoSession) for name, entry in STORY["sessions"].items()
}


def build_story() -> list[Step]:
    """Return the steps of all sessions, in the order of their times."""
    current = chain.from_iterable(map(_session_steps, SESSIONS))
    return sorted([*_past_steps(), *current], key=lambda step: step.at)


def _session_steps(name: str) -> list[Step]:
    entry = STORY["sessions"][name]
    script = Script(SESSIONS[name], entry["start"])
    for step in entry["steps"]:
        arguments = {key: value for key, value in step.items() if key not in ("do", "document")}
        if "document" in step:
            arguments["text"] = STORY["documents"][step["document"]]
        getattr(script, step["do"])(**arguments)
    return script.steps


def _past_steps() -> Iterator[Step]:
    """Yield sessions of the last weeks, oldest first; there are few on weekends."""
    chance = random.Random(PAST_DAYS)
    for day in range(PAST_DAYS, 0, -1):
        count = chance.randint(0, 1) if day % 7 in (2, 3) else chance.randint(2, 5)
        for _ in range(count):
            start = -day * DAY_S + chance.uniform(-3, 4) * HOUR_S
            yield from _past_session(start, chance).as_past()


def _past_session(start: float, chance: random.Random) -> Script:
    past = STORY["past"]
    client = chance.choice(past["clients"])
    project = chance.choice(past["projects"])
    session = DemoSession(
        id=str(UUID(int=chance.getrandbits(128), version=4)),
        agent=client["agent"],
        model=client["model"],
        project=f"/home/dev/work/{project}",
        version=client["version"],
        title=chance.choice(past["titles"]),
        host=chance.choice((LAPTOP, LAPTOP, SERVER)),
    )
    script = Script(session, start)
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2))):
        full = client["full"] - chance.randint(0, 2_400)
        script.work_for(full, chance.randint(30, 44), chance.uniform(0.5, 1.2) * HOUR_S)
        script.compact(60.0, client["left"] + chance.randint(-4_000, 4_000))
    to = round(client["full"] * chance.uniform(0.35, 0.9))
    script.work_for(to, chance.randint(16, 40), chance.uniform(0.3, 1.0) * HOUR_S)
    return script
