"""`brimline serve --demo`: a story that shows everything the page can show."""

import asyncio
import functools
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

from brimline.api.views import SessionView, Timeline, Views
from brimline.daemon.sockets import DEFAULT_PORT, MAX_USUAL_PORTS
from brimline.server.demo.player import RULES, Player
from brimline.server.demo.script import LAP_S, SESSIONS, build_story
from brimline.store.sqlite import MemoryStore

NOW = 1_763_000_000.0
DAY_S = 86_400.0
pytestmark = pytest.mark.slow

MAX_WAIT_S = 60.0
# Daemons of other tests may have some, and may leave them at any time.
USUAL_PORTS = set(range(DEFAULT_PORT, DEFAULT_PORT + MAX_USUAL_PORTS))
INHERITED_PREFIXES = ("PYTHON", "LANG")  # of environment variables


class Stage(NamedTuple):
    """The story at one second."""

    player: Player
    views: Views
    store: MemoryStore

    async def recent_views(self) -> dict[str, SessionView]:
        """Return the views of the last day's sessions."""
        seen = [row for row in await self.store.sessions() if row.seen_at >= NOW - DAY_S]
        return {row.id: await self.views.view(row) for row in seen}


async def make_stage(at: float) -> Stage:
    """Play the story up to a second, with a clock that stands still."""
    store = MemoryStore()
    player = Player(store, lambda: NOW)
    await player.begin(at)
    return Stage(player, Views(store, player.monitor, RULES), store)


@functools.cache
def played_to(second: float) -> Stage:
    """The story at a second, played once for all tests that only look at it."""
    return asyncio.run(make_stage(second))


def ask_at(second: float, ask: Callable[[Stage], Awaitable[Any]]) -> Any:
    """Return what a query finds at a second of the story."""

    async def run() -> Any:
        return await ask(played_stage)

    played_stage = played_to(second)
    return asyncio.run(run())


def views_at(second: float) -> dict[str, SessionView]:
    return ask_at(second, Stage.recent_views)


def timeline_at(second: float, session: str) -> Timeline:
    return ask_at(second, lambda there: there.views.timeline(session))


def test_every_state_handoff_and_agent_is_visible_at_the_start() -> None:
    views = views_at(60.0).values()
    mains = [view.threads[0] for view in views]
    assert {main.state for main in mains} == {"measured", "streaming", "compacting", "unknown"}
    assert {view.handoff.state for view in views} == {"none", "fresh", "old", "draft"}
    clients = {"claude", "codex", "gemini", "opencode", "pi"}
    assert {view.session.agent for view in views} == clients | {"anthropic-sdk"}
    assert {view.session.host for view in views} == {"laptop", "build-1"}
    assert any(view.unread for view in views)
    assert any(len(view.threads) > 1 for view in views)
    assert any(view.limit_at is None for view in views)


def test_story_has_sessions_near_the_limit_over_the_window_unknown_and_stale() -> None:
    views = views_at(60.0)
    near = views[SESSIONS["invoices"].id].threads[0]
    assert 95 < (near.percent_of_limit or 0) < 100
    over = views[SESSIONS["local"].id].threads[0]
    assert (over.percent, (over.percent_raw or 0) > 100) == (100.0, True)
    after = views[SESSIONS["infra"].id].threads[0]
    assert (after.state, after.percent, after.cycle) == ("unknown", None, 1)
    assert NOW - views[SESSIONS["mobile"].id].session.seen_at > 2 * 3_600


def test_story_passes_levels_a_compaction_and_a_returned_handoff() -> None:
    states = {
        views[SESSIONS["cart"].id].threads[0].state: views[SESSIONS["cart"].id].threads[0].cycle
        for views in map(views_at, (2_080.0, 2_090.0, 2_250.0, LAP_S))
    }
    assert states == {"measured": 1, "compacting": 0, "unknown": 1}
    events = timeline_at(LAP_S, SESSIONS["cart"].id)
    signals = [(signal.kind, signal.level) for signal in events.signals]
    assert signals == [("level", 50.0), ("level", 65.0), ("compacting", 0.0), ("compacted", 0.0)]
    assert [message.state for message in events.messages] == ["delivered", "delivered"]
    assert [head.used_at for head in events.handoffs] == [events.compactions[0].at]


def test_story_has_a_clear_a_model_switch_compactions_and_a_child() -> None:
    kinds = [signal.kind for signal in timeline_at(0.0, SESSIONS["blog"].id).signals]
    assert kinds == ["level", "cleared"]
    models = {call.model for call in timeline_at(0.0, SESSIONS["migration"].id).calls}
    assert models == {"claude-sonnet-4-5", "claude-opus-5-5"}
    assert len(timeline_at(0.0, SESSIONS["nightly"].id).compactions) == 6
    assert SESSIONS["examples"].id in {
        m.sender for m in timeline_at(LAP_S, SESSIONS["docs"].id).messages
    }


def test_story_has_weeks_of_history_on_several_versions() -> None:
    async def ask(there: Stage) -> tuple[set[str], set[str | None]]:
        items = there.player.items()
        days = {row.day for item in items for row in item.summary.rows}
        return days, {item.summary.version for item in items}

    days, versions = ask_at(0.0, ask)
    assert len(days) > 20
    assert {"2.1.298", "2.1.325", "0.142.5", "0.166.0"} <= versions


def test_second_lap_equals_the_first() -> None:
    async def play_again() -> Any:
        stage = await make_stage(LAP_S)
        await stage.player.begin(0.0)
        return await stage.recent_views()

    assert asyncio.run(play_again()) == views_at(0.0)


def test_story_plays_by_the_clock_and_starts_again() -> None:
    steps = len(build_story())

    async def played() -> tuple[int, int]:
        player = Player(MemoryStore(), asyncio.get_running_loop().time, speed=LAP_S / 0.2)
        await player.begin()
        once = player.observed
        running = asyncio.create_task(player.run())
        while player.observed < 2 * steps:
            await asyncio.sleep(0.01)
        running.cancel()
        return once, player.observed

    once, twice = asyncio.run(played())
    assert once < steps < twice


# The process.


class RunningDemo(NamedTuple):
    """The demo as a user starts it."""

    process: "subprocess.Popen[str]"
    address: str
    opener: urllib.request.OpenerDirector

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@contextmanager
def run_demo(home: Path) -> Generator[RunningDemo]:
    """Start the demo and wait until it prints its address."""
    passed = {name: os.environ[name] for name in os.environ if name.startswith(INHERITED_PREFIXES)}
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
            opener.open(process.stdout.readline().strip(), timeout=MAX_WAIT_S).close()
            yield RunningDemo(process, first_line.partition(" at ")[2].split()[0], opener)
        finally:
            process.kill()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[RunningDemo]:
    """A demo with its own home."""
    with run_demo(tmp_path) as demo:
        yield demo


def get(demo: RunningDemo, path: str) -> Any:
    with demo.opener.open(f"{demo.address}{path}", timeout=MAX_WAIT_S) as answer:
        return json.load(answer)


def test_what_fills_each_sample_session_adds_up(demo: RunningDemo) -> None:
    threads = 0
    for view in get(demo, "/v1/sessions"):
        path = f"/v1/sessions/{view['session']['id']}/explanation?series=1"
        for thread in get(demo, path)["threads"]:
            threads += 1
            tokens = sum(each["tokens"] for each in thread["categories"]) + thread["unexplained"]
            assert thread["sent"] in (tokens, None)
            assert all(each["sent"] >= each["unexplained"] for each in thread["series"])
    assert threads > 5


def test_project_of_the_demo_has_an_answer_about_its_tools(demo: RunningDemo) -> None:
    assert get(demo, "/v1/tools?project=/home/dev/shop")["parts"] == []


def test_draft_of_a_sample_session_is_a_document(demo: RunningDemo) -> None:
    """It is saved unless the agent wrote one."""
    for view in get(demo, "/v1/sessions"):
        path = f"/v1/sessions/{view['session']['id']}/handoff"
        written = [row for row in get(demo, path)["handoffs"] if not row["draft"]]
        request = urllib.request.Request(
            f"{demo.address}{path}/draft", data=b"", headers={"Origin": demo.address}
        )
        with demo.opener.open(request, timeout=MAX_WAIT_S) as answer:
            draft = json.load(answer)
        assert "The total was rounded twice" in draft["text"]
        saved = [row["id"] for row in get(demo, path)["handoffs"]]
        assert (draft["id"] in saved) is (not written)


def test_demo_ends_silently_and_writes_no_file(demo: RunningDemo, tmp_path: Path) -> None:
    process = demo.process
    assert get(demo, "/v1/daemon")["demo"] is True
    assert len(get(demo, "/v1/history")["days"]) > 20
    with demo.opener.open(f"{demo.address}/v1/stream", timeout=MAX_WAIT_S) as stream:
        assert stream.readline() == b": connected\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(MAX_WAIT_S) == 0
    assert process.communicate() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_second_demo_takes_another_port(demo: RunningDemo, tmp_path: Path) -> None:
    with run_demo(tmp_path) as second:
        assert demo.port != second.port
        assert {demo.port, second.port} < USUAL_PORTS


def test_demo_refuses_to_clear_a_pane(demo: RunningDemo) -> None:
    body = json.dumps({"path": "/x", "pane": {"socket": "/x", "id": "%1"}}).encode()
    address = f"{demo.address}/v1/sessions/{SESSIONS['cart'].id}/clear"
    with pytest.raises(urllib.error.HTTPError) as refused:
        demo.opener.open(urllib.request.Request(address, body), timeout=MAX_WAIT_S)
    with refused.value as answer:
        assert answer.code == 403
