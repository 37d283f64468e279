"""Every surface shows the same cost of a session, and a fleet's server the same sums.

`make corpus DIR=...` compares the sessions of a corpus of transcripts too.
"""

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents import agent_names
from brimline.agents.transcripts.source import Places
from brimline.api.uplink import UplinkRoutes
from brimline.cli.context import CommandContext
from brimline.cli.inspect import shown
from brimline.context.events import MAIN
from brimline.context.window import NO_OVERRIDES
from brimline.daemon.uplink.outbox import Outbox
from brimline.daemon.uplink.protocol import UplinkBatch
from brimline.run.run_state import RunView, list_price
from brimline.sessions.files import LoadedSession
from brimline.sessions.session_cost import find_copied_calls
from brimline.sessions.status import survey_sessions
from brimline.sessions.target import load_target
from brimline.settings import Settings, UplinkSettings
from brimline.store.fleet import FillLevels
from brimline.store.postgres.store import PostgresStore
from brimline.store.sqlite import SqliteStore
from brimline.tui.files import TranscriptFiles
from server.running import MAX_WAIT_S, Running
from server.test_surfaces import CORPUS, add_corpus, add_fixtures
from sessions.machine import call, clock, packed

from .conftest import Fleet

pytestmark = pytest.mark.slow

Json = dict[str, Any]
Costs = dict[str, float]

FORK, ORIGINAL = "a-fork", "b-original"
CENT = pytest.approx  # fsum and PostgreSQL add in another order


def add_billed_sessions(home: Path) -> None:
    """Write what no recording has: fast mode, an advisor, client costs, one-hour writes, a fork."""
    projects = home / ".claude" / "projects" / "-billed"
    usage = {"input_tokens": 300, "output_tokens": 30, "speed": "fast"}
    passes = [
        {"type": "message", "input_tokens": 100_000, "output_tokens": 10},
        {"type": "advisor_message", "input_tokens": 500_000, "output_tokens": 50,
         "model": "claude-fable-5"},
        {"type": "message", "input_tokens": 200_000, "output_tokens": 20},
    ]  # fmt: skip
    fast = {"model": "claude-opus-5", "usage": usage}
    lines = [
        call("f1", message={**fast, "id": "f1"}),
        call("f2", message={**fast, "id": "f2", "usage": {**usage, "iterations": passes}}),
        call("f3", 90_000, 9),
    ]
    _write(projects / "fast.jsonl", *lines)
    copied = [call(f"o{number}", 20_000 * number, number) for number in range(1, 4)]
    queued = packed({"type": "queue-operation", "operation": "enqueue", "timestamp": clock(9)})
    _write(projects / f"{FORK}.jsonl", queued, *copied, call("own", 70_000, 10))
    _write(projects / f"{ORIGINAL}.jsonl", *copied)
    sessions = home / ".pi" / "agent" / "sessions" / "--billed--"
    header = {
        "type": "session",
        "version": 3,
        "id": "pi-billed",
        "timestamp": clock(0),
        "cwd": "/x",
    }
    replies: list[tuple[str, Json]] = [
        ("gpt-5.3-codex-spark", {"cost": {"total": 0.25}}),
        ("gpt-5.3-codex-spark", {}),
        ("mistral-large-latest", {"cost": {"total": 0.125}}),
        ("claude-opus-4-8", {"cost": {"total": 9.0}, "cttl": {"ephemeral1h": 50_000}}),
    ]
    entries: list[Json] = [
        {"type": "message", "id": f"e{number}", "timestamp": clock(number), "message": {
            "role": "assistant", "model": model, "responseId": f"a-long-response-{number}",
            "usage": {"input": 9, "output": 90, "cacheRead": 90_000, "cacheWrite": 50_000, **more},
        }}
        for number, (model, more) in enumerate(replies)
    ]  # fmt: skip
    summary = {"input": 90_000, "output": 90, "cacheRead": 0, "cacheWrite": 0}
    entries.append({"type": "compaction", "id": "e9", "timestamp": clock(9), "usage": summary})
    _write(sessions / "1_pi-billed.jsonl", packed(header), *map(packed, entries))


def _write(path: Path, *lines: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))


class BilledMachine:
    """A daemon that follows sessions of all kinds, and the costs of each on its surfaces."""

    def __init__(self, daemon: Running) -> None:
        self.daemon = daemon
        places = Places(daemon.home, daemon.environment)
        self.context = CommandContext(places, Settings(), width=100, colour=False, now=time.time())
        self._files = TranscriptFiles(places, Settings(), daemon.folder / "cache", agent_names())

    def report(self, by: str = "session") -> Json:
        done = self.daemon.answered("report", "--by", by, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def reported(self) -> Costs:
        return known({line["key"]: line["cost"] for line in self.report()["lines"]})

    def history(self) -> Costs:
        sessions = self.daemon.get("/v1/history?since=all")["sessions"]
        return known({past["session"]: past["cost"] for past in sessions})

    def timelines(self) -> Costs:
        ids = [view["session"]["id"] for view in self.daemon.get("/v1/sessions")]
        return known({id: self.timeline(id)["cost"] for id in ids})

    def listed(self) -> Costs:
        views = self.daemon.get("/v1/sessions")
        return known({view["session"]["id"]: view["cost"] for view in views})

    def in_status(self) -> Costs:
        rows = json.loads(self.daemon.answered("status", "--json").stdout)
        assert {row["answered_by"] for row in rows} == {"daemon"}
        return known({row["session_id"]: row["cost"] for row in rows if row["thread"] == MAIN})

    def in_status_without_daemon(self) -> Costs:
        places = self.context.places
        survey = survey_sessions(places, agent_names(), None, NO_OVERRIDES, self.context.cache)
        return known({status.session: status.cost for status in survey.sessions})

    def timeline(self, session: str) -> Json:
        return self.daemon.get(f"/v1/sessions/{session}/timeline")

    def inspected(self) -> Costs:
        places = self.context.places
        loaded = {id: load_target(id, places, BytesIO()) for id in self.reported()}
        return known({id: shown(self.context, each, False).cost for id, each in loaded.items()})

    def watched_without_daemon(self) -> Costs:
        views = self._files.read_views(time.time())
        costs = {view.session.id: self._files.read_detail(view).timeline.cost for view in views}
        assert known({view.session.id: view.cost for view in views}) == CENT(known(costs))
        return known(costs)

    def priced_as_runs(self) -> Costs:
        places = self.context.places
        loaded = {id: load_target(id, places, BytesIO()) for id in self.reported()}
        views = {
            id: RunView(each.session, "transcript")
            for id, each in loaded.items()
            if is_one_run(each) and not find_copied_calls(each, places, self.context.cache)
        }
        return known({id: list_price(view) for id, view in views.items()})

    def settle(self) -> None:
        """Wait until the daemon has read all files."""
        end, expected = time.monotonic() + MAX_WAIT_S, self.reported()
        while self.timelines() != CENT(expected) and time.monotonic() < end:
            time.sleep(0.5)


def is_one_run(loaded: LoadedSession) -> bool:
    """Whether a session is in one file; a resumed one of Gemini CLI is in several."""
    return sum(MAIN in part.threads for part in loaded.parts) == 1


def known(costs: dict[str, float | None]) -> Costs:
    """Return what costs something."""
    return {session: cost for session, cost in costs.items() if cost}


def add_own(home: Path) -> None:
    add_fixtures(home)
    add_billed_sessions(home)
    databases = (*home.rglob("opencode-*.db"), *home.rglob("kilo-*.db"))
    for path in databases:  # as the other files, which are new
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("UPDATE session SET time_updated = ?", (int(time.time() * 1_000),))


def add_real(home: Path) -> None:
    add_corpus(home)
    for path in home.rglob("agent-acompact-*"):
        path.unlink()  # without its session's own file it is no session, as in `status`


HOMES = [
    pytest.param(add_own, id="fixtures"),
    *([pytest.param(add_real, id="corpus")] if CORPUS else []),
]


@pytest.fixture(scope="module", params=HOMES)
def machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BilledMachine]:
    daemon = Running(tmp_path_factory.mktemp("machine"))
    request.param(daemon.home)
    try:
        daemon.start()
        machine = BilledMachine(daemon)
        machine.settle()
        yield machine
    finally:
        daemon.close()


def test_every_surface_shows_the_same_cost_of_a_session(machine: BilledMachine) -> None:
    expected = machine.reported()
    assert len(expected) > 20
    assert machine.history() == CENT(expected)
    assert machine.timelines() == CENT(expected)
    assert machine.listed() == CENT(expected)
    assert machine.in_status() == CENT(expected)
    assert machine.in_status_without_daemon() == CENT(expected)
    assert machine.inspected() == CENT(expected)
    assert machine.watched_without_daemon() == CENT(expected)
    whole = machine.priced_as_runs()
    assert whole == CENT({id: expected[id] for id in whole})


def test_metrics_count_the_calls_of_the_report(machine: BilledMachine) -> None:
    _, text = machine.daemon.get_text("/metrics")
    counts = dict(re.findall(r'^brimline_calls_total{agent="(\w+)"} (\d+)', text, re.MULTILINE))
    lines = machine.report("agent")["lines"]
    assert {agent: int(count) for agent, count in counts.items()} == {
        line["key"]: line["calls"] for line in lines
    }


async def send_all(path: Path, server: PostgresStore) -> None:
    """Send all sessions of a machine's store to a server, as its daemon does."""
    store, routes = await SqliteStore.open(path), UplinkRoutes(server)
    try:
        outbox = Outbox(store, UplinkSettings(), "http://localhost")
        await outbox.begin_round()
        while parts := await outbox.next_batch(2_000, time.time()):
            batch = UplinkBatch("m1", sessions=[part.outgoing for part in parts])
            decoded = msgspec.json.decode(msgspec.json.encode(batch), type=UplinkBatch)
            assert (await routes.take(decoded)).refused == {}
            outbox.acknowledge(parts, outbox.next_stamp(time.time()))
        await outbox.end_round()
    finally:
        await store.close()


def test_sums_of_the_fleet_are_those_of_the_report(machine: BilledMachine, fleet: Fleet) -> None:
    name = f"costs-{machine.daemon.port}"
    fleet.run(send_all(machine.daemon.state / "brimline.db", fleet.database.store(name)))
    fleet.run(fleet.database.session_sums(name).update())
    figures = fleet.database.figures(name, lambda kind: FillLevels(kind, "window", None, None))
    sums = {each.key: each for each in fleet.run(figures.costs("agent", 0.0))}
    lines = {line["key"]: line for line in machine.report("agent")["lines"]}
    assert {key: each.calls for key, each in sums.items()} == {
        key: line["calls"] for key, line in lines.items()
    }
    costs = {key or "": each.cost for key, each in sums.items()}
    assert known(costs) == CENT(known({key: line["cost"] for key, line in lines.items()}))


def test_copied_calls_are_shown_and_belong_to_their_original(machine: BilledMachine) -> None:
    if FORK not in machine.reported():
        pytest.skip("the corpus has no such fork")
    calls = {id: machine.timeline(id)["calls"] for id in (FORK, ORIGINAL)}
    assert [row["counted"] for row in calls[ORIGINAL]] == [True] * 3
    assert [row["counted"] for row in calls[FORK]] == [False] * 3 + [True]
    assert [row["cost"] is None for row in calls[FORK]] == [True] * 3 + [False]
