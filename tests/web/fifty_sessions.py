"""A home folder with 50 sessions, made from what the real clients left in tests/fixtures."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

from clients.fixture import FIXTURES

SESSIONS = 50
RECORDED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()  # where every recording begins
STRETCH = 40  # a recording takes some seconds, a session some minutes
AGES_S = (4, 40, 190, 700, 1_500, 3_000, 5_400, 9_000, 20_000, 50_000, 80_000)
PROJECTS = ("shop-backend", "billing", "mobile-app", "crawler", "design-system", "infra", "docs")
TITLES = (
    "Fix the login after a password reset",
    "Speed up the parser",
    "Move the checkout to the new payment API and delete the old adapter",
    "Why is the nightly build red?",
    "Add dark mode",
    "Write tests for the importer",
    "Rename the settings module",
    "Update dependencies",
)
BRANCHES = ("main", "feature/one-page-checkout-with-saved-cards", "HEAD", "fix/typo")
CLAUDE_MODELS = ("claude-sonnet-4-5", "claude-opus-4-5", "claude-opus-5-5")

ISO_TIME = re.compile(r"2026-01-02T\d\d:\d\d:\d\d\.\d{3}Z")
EPOCH_MS = re.compile(r"\b17673\d{8}\b")
UUID = re.compile(r"0000([0-9a-f]{4}-0000-4000-8000-)0000([0-9a-f]{8})")
CACHED_TOKENS = re.compile(
    r'("(?:cache_(?:read|creation)_input_tokens|cacheRead|cacheWrite)":)(\d+)'
)


def write_sessions(home: Path, now: float) -> None:
    """Write 50 sessions of the agents that ended up to a day ago."""
    for number, scene in zip(range(SESSIONS), cycle(_scenes()), strict=False):
        version = _Version(number, now - AGES_S[number % len(AGES_S)] - number)
        for path in sorted((scene / "home").rglob("*")):
            if path.is_file():
                _write(home, path.relative_to(scene / "home"), path.read_text("utf-8"), version)


def _scenes() -> Iterator[Path]:
    """Every recorded scene, one of each agent in turn; errors and forks share ids of others."""
    # The ids of Goose and Cline have other forms, which a copy would share with its original.
    agents = [each for each in sorted(FIXTURES.iterdir()) if each.name not in ("cline", "goose")]
    by_agent = [sorted(agent.iterdir()) for agent in agents]
    for place in range(max(map(len, by_agent))):
        for scenes in by_agent:
            yield scenes[place % len(scenes)]


class _Version:
    """A copy of a recording with its own ids, times, project, title and size."""

    def __init__(self, number: int, ended_at: float) -> None:
        self.number, self.ended_at = number, ended_at
        self.mark = f"{(number * 7919 + 4096) % 65536:04x}"
        self.project = PROJECTS[number % len(PROJECTS)]
        self.title = TITLES[number % len(TITLES)]
        self._scale = 1 + number // 5 % 5 * 1.4

    def text(self, text: str) -> str:
        ends = [_epoch(each) for each in ISO_TIME.findall(text)] or [
            int(each) / 1_000 for each in EPOCH_MS.findall(text)
        ]
        last = max(ends, default=RECORDED_AT)

        def moved(at: float) -> float:
            return self.ended_at - (last - at) * STRETCH

        text = ISO_TIME.sub(lambda found: _iso(moved(_epoch(found[0]))), text)
        text = EPOCH_MS.sub(lambda found: str(int(1_000 * moved(int(found[0]) / 1_000))), text)
        text = CACHED_TOKENS.sub(
            lambda found: f"{found[1]}{round(int(found[2]) * self._scale)}", text
        )
        model = CLAUDE_MODELS[self.number // 5 % len(CLAUDE_MODELS)]
        text = text.replace("claude-opus-5-5", model).replace("fake-claude", model)
        branch = BRANCHES[self.number % len(BRANCHES)]
        text = text.replace('"gitBranch":"HEAD"', f'"gitBranch":"{branch}"')
        text = text.replace('"Go."', json.dumps(self.title)).replace("Run the commands", self.title)
        return self.name(text)

    def name(self, text: str) -> str:
        """A text or path with the ids and the project of this version."""
        text = UUID.sub(rf"{self.mark}\g<1>{self.mark}\g<2>", text)
        text = re.sub(r"(ses|msg|prt)_0000", rf"\g<1>_{self.mark}", text)
        text = re.sub(r"fake00(\d{4})", rf"fake{self.mark}\g<1>", text)
        text = text.replace("-00000001.json", f"-{self.mark}0001.json")
        for form in ("/home/dev/{}", "-home-dev-{}", "tmp/{}/"):
            text = text.replace(form.format("project"), form.format(self.project))
        return text


def _write(home: Path, path: Path, text: str, version: _Version) -> None:
    target = home / version.name(str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".sql":
        database = target.with_suffix(".db")
        script = version.text(text).replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
        script = re.sub(r"CREATE (UNIQUE )?INDEX", r"CREATE \1INDEX IF NOT EXISTS", script)
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(script)
    else:
        target.write_text(version.text(text), "utf-8")
        os.utime(target, (version.ended_at, version.ended_at))


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
