"""`brimline serve --demo`: a story on which everything that the page can show is seen."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from brimline.demo.player import RULES, Player
from brimline.demo.story import LAP_S, SESSIONS, build_story
from brimline.server.api.views import SessionView, Timeline, Views
from brimline.store.memory import MemoryStore

NOW = 1_763_000_000.0
DAY = 86_400.0
pytestmark = pytest.mark.slow

PATIENCE = 20.0
PASSED = ("COVERAGE_", "PYTHON", "LANG")
"""What the process is given of our environment."""


class Stage(NamedTuple):
    """The story at one of its seconds."""

    player: Player
    views: Views
    store: MemoryStore

    async def seen(self) -> dict[str, SessionView]:
        """The sessions of the last day."""
        seen = [row for row in await self.store.sessions() if row.seen_at >= NOW - DAY]
        return {row.id: await self.views.view(row) for row in seen}


async def stage(at: float) -> Stage:
    """A store of its own, and a clock that stands still."""
    store = MemoryStore()
    player = Player(store, lambda: NOW)
    await player.begin(at)
    return Stage(player, Views(store, player.monitor, RULES), store)


def at(second: float, ask: Callable[[Stage], Awaitable[Any]]) -> Any:
    """What is seen at a second of the story."""

    async def asked() -> Any:
        return await ask(await stage(second))

    return asyncio.run(asked())


def seen(second: float) -> dict[str, SessionView]:
    """The sessions at a second of the story."""
    return at(second, Stage.seen)


def timeline(second: float, session: str) -> Timeline:
    """What happened in one until then."""
    return at(second, lambda there: there.views.timeline(session))


def test_every_state_is_seen_at_the_beginning() -> None:
    """Who opens the page sees each state, each kind of handoff, and every agent at once."""
    views = seen(60.0).values()
    mains = [view.threads[0] for view in views]
    assert {main.state for main in mains} == {"measured", "streaming", "compacting", "unknown"}
    assert {view.handoff.state for view in views} == {"none", "fresh", "old", "draft"}
    clients = {"claude", "codex", "gemini", "opencode", "pi"}
    assert {view.session.agent for view in views} == clients | {"anthropic-sdk"}
    assert {view.session.host for view in views} == {"laptop", "build-1"}
    assert any(view.unread for view in views)
    assert any(len(view.threads) > 1 for view in views)
    assert any(view.limit_at is None for view in views)


def test_fullness() -> None:
    """One is near its limit, one is over its window, one is unknown, one is stale."""
    views = seen(60.0)
    near = views[SESSIONS["invoices"].id].threads[0]
    assert 95 < (near.percent_of_limit or 0) < 100
    over = views[SESSIONS["local"].id].threads[0]
    assert (over.percent, (over.percent_raw or 0) > 100) == (100.0, True)
    after = views[SESSIONS["infra"].id].threads[0]
    assert (after.state, after.percent, after.cycle) == ("unknown", None, 1)
    assert NOW - views[SESSIONS["mobile"].id].session.seen_at > 2 * 3_600


def test_the_recording_goes_through_everything() -> None:
    """It passes both levels, is compacted, gets its document back, and goes on in a new cycle."""
    states = {
        views[SESSIONS["cart"].id].threads[0].state: views[SESSIONS["cart"].id].threads[0].cycle
        for views in map(seen, (2_080.0, 2_090.0, 2_250.0, LAP_S))
    }
    assert states == {"measured": 1, "compacting": 0, "unknown": 1}
    told = timeline(LAP_S, SESSIONS["cart"].id)
    said = [(signal.kind, signal.level) for signal in told.signals]
    assert said == [("level", 50.0), ("level", 65.0), ("compacting", 0.0), ("compacted", 0.0)]
    assert [message.state for message in told.messages] == ["delivered", "delivered"]
    assert [head.used_at for head in told.handoffs] == [told.compactions[0].at]


def test_other_marks() -> None:
    """There are a clear, a model switch, a long history, a parent that was told of its child."""
    assert [signal.kind for signal in timeline(0.0, SESSIONS["blog"].id).signals] == ["cleared"]
    models = {call.model for call in timeline(0.0, SESSIONS["migration"].id).calls}
    assert models == {"claude-sonnet-4-5", "claude-opus-5-5"}
    assert len(timeline(0.0, SESSIONS["nightly"].id).compactions) == 6
    assert SESSIONS["examples"].id in {
        m.sender for m in timeline(LAP_S, SESSIONS["docs"].id).messages
    }


def test_history_has_days_and_limits() -> None:
    """There are weeks of sessions before, on several versions, all with their cost."""

    async def ask(there: Stage) -> tuple[set[str], set[str | None]]:
        found = there.player.items()
        days = {row.day for item in found for row in item.summary.rows}
        return days, {item.summary.version for item in found}

    days, versions = at(0.0, ask)
    assert len(days) > 20
    assert {"2.1.298", "2.1.325", "0.142.5", "0.166.0"} <= versions


def test_a_lap_begins_anew() -> None:
    """After its end the story is as it was at first: nothing of the lap is left."""

    async def ask(there: Stage) -> tuple[Any, Any]:
        before = await there.seen()
        await there.player.begin(LAP_S)
        await there.player.begin(0.0)
        return before, await there.seen()

    before, after = at(0.0, ask)
    assert before == after


def test_it_plays_by_the_clock() -> None:
    """What comes after the beginning is played when its time has come, and then anew."""

    async def played() -> tuple[int, int]:
        player = Player(MemoryStore(), asyncio.get_running_loop().time, speed=LAP_S / 0.2)
        await player.begin()
        once = player.observed
        running = asyncio.create_task(player.run())
        while player.observed < 2 * len(build_story()):
            await asyncio.sleep(0.01)
        running.cancel()
        return once, player.observed

    once, twice = asyncio.run(played())
    assert once < len(build_story()) < twice


# The process.


class Shown(NamedTuple):
    """The demo as a user starts it."""

    process: "subprocess.Popen[str]"
    address: str
    opener: urllib.request.OpenerDirector

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.address.rpartition(":")[2])


@contextmanager
def running(home: Path) -> Generator[Shown]:
    """Start it, and wait until it says where it is."""
    passed = {name: os.environ[name] for name in os.environ if name.startswith(PASSED)}
    env = passed | {"HOME": str(home), "BRIMLINE_STATE_DIR": str(home / "state")}
    words = [sys.executable, "-m", "brimline", "serve", "--demo"]
    with subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first_line = process.stdout.readline()
        try:
            assert "sample sessions at" in first_line
            process.stdout.readline()  # how to open the link
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            opener.open(process.stdout.readline().strip(), timeout=PATIENCE).close()
            yield Shown(process, first_line.partition(" at ")[2].split()[0], opener)
        finally:
            process.kill()


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    """The demo, in a home of its own."""
    with running(tmp_path) as demo:
        yield demo


def ask(shown: Shown, path: str) -> Any:
    """What the API answers."""
    with shown.opener.open(f"{shown.address}{path}", timeout=PATIENCE) as answer:
        return json.load(answer)


def test_it_ends_cleanly_and_leaves_nothing(shown: Shown, tmp_path: Path) -> None:
    """It says that it is a demo, streams, ends by Ctrl-C without a word, and wrote no file."""
    process = shown.process
    assert ask(shown, "/v1/daemon")["demo"] is True
    assert len(ask(shown, "/v1/history")["days"]) > 20
    with shown.opener.open(f"{shown.address}/v1/stream", timeout=PATIENCE) as stream:
        assert stream.readline() == b": connected\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert process.communicate() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_it_takes_another_port(shown: Shown, tmp_path: Path) -> None:
    """Where a daemon or another demo has the usual port, it takes the next that is free."""
    with running(tmp_path) as second:
        assert shown.port < second.port < 8_440


def test_it_clears_nothing(shown: Shown) -> None:
    """A pane that somebody names is not typed into."""
    body = json.dumps({"path": "/x", "pane": {"socket": "/x", "id": "%1"}}).encode()
    address = f"{shown.address}/v1/sessions/{SESSIONS['cart'].id}/clear"
    with pytest.raises(urllib.error.HTTPError) as refused:
        shown.opener.open(urllib.request.Request(address, body), timeout=PATIENCE)
    with refused.value as answer:
        assert answer.code == 403
