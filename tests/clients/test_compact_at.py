"""`brimline compact-at` with the real clients: each compacts at the figure within one call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario
from preloaded import run_brimline

from . import claude, codex, gemini, kimi, opencode, pi, qwen
from .run import ClientRun
from .scenes import DONE, SNAPSHOT, steps

pytestmark = [pytest.mark.clients, pytest.mark.slow]

STEP = 10_000
BEFORE = 5  # calls from the first one to the point


def ramp_to(limit: int, after: int = 2_000) -> Ramp:
    """Steady growth that reaches a limit after a few calls."""
    return Ramp(start=limit - BEFORE * STEP, step=STEP, after_compaction=after)


def compact_at(home: Path, *arguments: str, **env: str) -> int:
    """Set the point, and return the limit that the command promises."""
    env["HOME"] = str(home)
    done = run_brimline(("compact-at", *arguments, "--json"), env=env, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    [row] = json.loads(done.stdout)
    assert row["written"]
    return row["limit"]


def run_claude(folder: Path, scenario: Scenario) -> ClientRun:
    return claude.run_claude(scenario, folder, "Go.", model="claude-sonnet-4-5")


def run_codex(folder: Path, scenario: Scenario) -> ClientRun:
    return codex.run_codex(scenario, folder, "Go.")


def run_pi(folder: Path, scenario: Scenario) -> ClientRun:
    return pi.run_pi(scenario, folder, "Go.")


def run_qwen(folder: Path, scenario: Scenario) -> ClientRun:
    return qwen.run_qwen(msgspec.structs.replace(scenario, summary=SNAPSHOT), folder, "Go.")


def long_bash(command: str) -> Reply:
    """Pi compacts only if the conversation is long enough."""
    return pi.bash(f"{command}; seq 1 200")


CASES = [
    pytest.param("claude", run_claude, claude.bash, "60%", 120_000, id="claude"),
    pytest.param("codex", run_codex, codex.shell, "150k", 150_000, id="codex"),
    pytest.param("pi", run_pi, long_bash, "50%", 100_000, id="pi"),
    pytest.param("qwen", run_qwen, qwen.shell, "50%", 500_000, id="qwen", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("agent", "run", "tool", "point", "wanted"), CASES)
def test_client_compacts_at_the_point(
    agent: str,
    run: Callable[[Path, Scenario], ClientRun],
    tool: Callable[[str], Reply],
    point: str,
    wanted: int,
    tmp_path: Path,
) -> None:
    first = run(tmp_path, Scenario(main=(DONE,)))
    limit = compact_at(first.home, point, agent)
    assert limit == wanted
    seen = run(tmp_path, steps(tool, 2 * BEFORE, ramp_to(limit)))
    check_point(seen, limit)
    shown = run_brimline(("compact-at", "--show", agent), env={"HOME": str(first.home)}, timeout=60)
    assert b"works: the last one compacted" in shown.stdout


def test_gemini_cli_compresses_at_the_point(tmp_path: Path) -> None:
    """It compresses before a prompt other than the first."""
    first = gemini.run_gemini(Scenario(main=(DONE,)), tmp_path, "Go.")
    limit = compact_at(first.home, "30%", "gemini")
    scenario = steps(gemini.shell, 2 * BEFORE, ramp_to(limit, after=20_000))
    scenario = msgspec.structs.replace(scenario, summary=SNAPSHOT)
    check_point(gemini.run_gemini(scenario, tmp_path, "Go on.", "--resume", "latest"), limit)


@pytest.mark.parametrize(
    ("agent", "run"),
    [
        pytest.param("opencode", opencode.run_opencode, id="opencode"),
        pytest.param("kilo", opencode.run_kilo, id="kilo", marks=pytest.mark.long),
    ],
)
def test_opencode_compacts_at_the_point(
    agent: str, run: Callable[..., ClientRun], tmp_path: Path
) -> None:
    """The window in its configuration is lower then; that of the command line would go first."""
    file = tmp_path / f"home/.config/{agent}/{agent}.json"
    file.parent.mkdir(parents=True)
    limit: dict[str, int] = {"context": 200_000, "output": 8_192}
    model = {opencode.MODEL: {"limit": limit}}
    file.write_text(json.dumps({"provider": {"fake": {"models": model}}}))
    first = run(Scenario(main=(DONE,)), tmp_path, "Go.", window=None)
    point = compact_at(first.home, "60%", agent)
    assert point == 120_000
    scenario = steps(opencode.bash, 2 * BEFORE, ramp_to(point))
    check_point(run(scenario, tmp_path, "Go.", window=None), point)


def test_kimi_code_compacts_at_the_point(tmp_path: Path) -> None:
    """Also above the reserve of 50,000 tokens that it has without a setting."""
    file = tmp_path / "home/.kimi-code/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(before := "[loop_control]\nmax_steps_per_turn = 50\n")
    first = kimi.run_kimi(Scenario(main=(DONE,)), tmp_path, "Go.")
    limit = compact_at(first.home, "70%", "kimi", **kimi.ENVIRONMENT)
    assert limit == round(0.7 * kimi.WINDOW)
    ramp = Ramp(start=limit - 22_000 - BEFORE * 6_000, step=6_000)  # after its own prompt
    check_point(kimi.run_kimi(steps(kimi.bash, 2 * BEFORE, ramp), tmp_path, "Go."), limit)
    env = {"HOME": str(first.home), **kimi.ENVIRONMENT}
    shown = run_brimline(("compact-at", "--show", "kimi"), env=env, timeout=60)
    assert b"works: the last one compacted" in shown.stdout
    run_brimline(("compact-at", "--remove", "kimi"), env=env, timeout=60)
    assert file.read_text() == before


def check_point(run: ClientRun, limit: int) -> None:
    """Check that the first compaction follows the first call that reached the limit."""
    calls = run.of("main", "compaction")
    at = next(n for n, call in enumerate(calls) if call.thread == "compaction")
    usages = [call.usage for call in calls[:at]]
    held = [u.input + u.cache_read + u.cache_write + u.output for u in usages]
    assert held[-2] < limit <= held[-1]
