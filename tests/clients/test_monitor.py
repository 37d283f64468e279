"""The real Claude Code with our hooks and a real daemon: what its requests hold."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario
from server.running import Running

from .claude import bash, run_claude
from .run import ClientRun

pytestmark = [pytest.mark.clients, pytest.mark.slow]

MODEL = "claude-sonnet-4-5"
OWN = '{"cleanupPeriodDays": 30}\n'
"""What the user had set before."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    """A daemon that runs, and is gone afterwards."""
    running = Running(tmp_path / "daemon")
    running.start()
    yield running
    running.close()


def installed(daemon: Running, folder: Path, start: str = "--no-autostart") -> Path:
    """A scratch folder whose Claude Code was set up by ourselves."""
    settings = folder / "home/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(OWN)
    done = daemon.command("setup", "claude", start, HOME=str(folder / "home"))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def requests(run: ClientRun) -> list[str]:
    """The bodies of the main thread's requests, in their order."""
    lines = run.requests.read_text().splitlines()
    return [line for line in lines if "/v1/messages" in line and "count_tokens" not in line]


def told(body: str) -> list[str]:
    """What Brimline told the agent, as a request holds it."""
    return re.findall(r"\[brimline\] Your context is at ([0-9.]+)%", body)


def session_of(run: ClientRun) -> str:
    """The session's id, as the stream tells it."""
    return json.loads(run.stdout.splitlines()[0])["session_id"]


def steps(count: int, ramp: Ramp, *before: Reply) -> Scenario:
    """So many tool calls on a ramp, then the end of the turn."""
    loop = (bash(f"echo {n}") for n in range(count))
    return Scenario(main=(*before, *loop, Reply(text="Done.")), ramp=ramp)


def test_levels_reach_the_agent_once(daemon: Running, tmp_path: Path) -> None:
    """Usage ramps over both levels in two turns: the requests hold each text exactly once."""
    place = installed(daemon, tmp_path / "claude")
    first = run_claude(steps(1, Ramp(start=95_000)), place, "Go.", model=MODEL)
    assert first.exit_code == 0, first.stderr
    again = ("--resume", session_of(first))
    second = run_claude(
        steps(3, Ramp(start=120_000, step=6_000)), place, "On.", *again, model=MODEL
    )
    bodies = requests(second)
    warning, critical = (float(percent) for percent in told(bodies[-1]))
    assert 50 <= warning < 65 <= critical
    assert [len(told(body)) for body in bodies] == sorted(len(told(body)) for body in bodies)


def test_jump_over_both_levels(daemon: Running, tmp_path: Path) -> None:
    """A jump over both levels gives one text, the higher."""
    place = installed(daemon, tmp_path / "claude")
    run = run_claude(steps(2, Ramp(start=140_000)), place, "Go.", model=MODEL)
    (percent,) = told(requests(run)[-1])
    assert float(percent) >= 65


def test_window_of_its_own(daemon: Running, tmp_path: Path) -> None:
    """A 1M model at 300k is warned by its own window: not at all."""
    place = installed(daemon, tmp_path / "claude")
    run = run_claude(steps(2, Ramp(start=300_000)), place, "Go.", model="claude-sonnet-4-5[1m]")
    assert told(requests(run)[-1]) == []
    (view,) = daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 1_000_000


def test_handoff_comes_back(daemon: Running, tmp_path: Path) -> None:
    """The agent hands a document over with its own tool; the first request after the compaction
    holds it, and the levels fire again in the new cycle."""
    place = installed(daemon, tmp_path / "claude")
    words = shlex.join([sys.executable, "-m", "brimline", "handoff", "notes.md"])
    write = f"echo 'The parser is half done.' > notes.md && {words}"
    scenario = steps(7, Ramp(start=70_000, step=12_000, after_compaction=90_000), bash(write))
    environment = {
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "170000",
        "BRIMLINE_STATE_DIR": str(daemon.state),
    }
    run = run_claude(scenario, place, "Go.", model=MODEL, environment=environment)
    assert run.exit_code == 0, run.stderr
    timeline = daemon.get(f"/v1/sessions/{session_of(run)}/timeline")
    kinds = [(s["kind"], s["cycle"]) for s in timeline["signals"]]
    assert ("compacted", 0) in kinds
    assert ("level", 1) in kinds
    after = next(body for body in requests(run) if "handoff" in body and " begins -----" in body)
    assert after.count("The parser is half done.") == 1


def test_removed(daemon: Running, tmp_path: Path) -> None:
    """Taken out again, the settings are what they were, and nothing is told any more."""
    place = installed(daemon, tmp_path / "claude")
    settings = place / "home/.claude/settings.json"
    assert settings.read_text() != OWN
    daemon.command("setup", "claude", "--remove", HOME=str(place / "home"))
    assert settings.read_text() == OWN
    run = run_claude(steps(2, Ramp(start=140_000)), place, "Go.", model=MODEL)
    assert told(requests(run)[-1]) == []
    assert daemon.get("/v1/sessions") == []


def test_daemon_killed_between_turns(daemon: Running, tmp_path: Path) -> None:
    """Killed and started again between turns, the daemon tells no level twice and loses none."""
    place = installed(daemon, tmp_path / "claude")
    first = run_claude(steps(1, Ramp(start=95_000)), place, "Go.", model=MODEL)
    daemon.kill()
    daemon.start()
    again = ("--resume", session_of(first))
    second = run_claude(steps(1, Ramp(start=96_000)), place, "On.", *again, model=MODEL)
    daemon.kill()
    daemon.start()
    third = run_claude(steps(1, Ramp(start=97_000)), place, "On.", *again, model=MODEL)
    assert len(told(requests(second)[-1])) == 1
    assert told(requests(third)[-1]) == told(requests(second)[-1])


def test_no_daemon(daemon: Running, tmp_path: Path) -> None:
    """Without the daemon the agent works as ever; what happened is taken in when it is back."""
    place = installed(daemon, tmp_path / "claude")
    daemon.stop()
    run = run_claude(steps(2, Ramp(start=140_000)), place, "Go.", model=MODEL)
    assert run.exit_code == 0
    assert told(requests(run)[-1]) == []
    daemon.start()
    path = f"/v1/sessions/{session_of(run)}/timeline"
    timeline = daemon.until("/v1/sessions", bool) and daemon.get(path)
    assert [signal["kind"] for signal in timeline["signals"]] == ["level"]


def test_a_session_starts_the_daemon(daemon: Running, tmp_path: Path) -> None:
    """Where no daemon runs a session's start brings one up, and it hears the session."""
    place = installed(daemon, tmp_path / "claude", "--autostart")
    daemon.stop()
    environment = {"BRIMLINE_STATE_DIR": str(daemon.state)}
    run = run_claude(steps(2, Ramp(start=140_000)), place, "Go.", model=MODEL,
                     environment=environment)  # fmt: skip
    assert run.exit_code == 0, run.stderr
    shown = daemon.command("serve", "--status", "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["heard"] > 0
    assert daemon.command("serve", "--stop").returncode == 0
