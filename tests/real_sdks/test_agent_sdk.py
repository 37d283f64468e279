"""The `claude-agent-sdk` package over the real Claude Code: every message, step by step."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.testing.fake_model import Billed, Ramp, Reply, Scenario
from clients import claude, scenes
from clients.install import require
from clients.run import SOURCES, ClientRun, Place, run_client

from .bill import held, sent
from .connect import CLAUDE_WINDOW
from .steps import Figures, Step, figures, read_steps

pytestmark = pytest.mark.clients

TESTS = Path(__file__).parents[1]
FILLING = scenes.steps(claude.bash, 3, Ramp(start=150_000, step=200_000))
"""Four calls, which fill the window to about 15, 35, 55 and 75 per cent."""


def play(
    scenario: Scenario, folder: Path, *, environment: dict[str, str] | None = None, **wish: Any
) -> tuple[ClientRun, list[Step]]:
    """Run a session of the SDK, isolated as any client."""
    program = [sys.executable, "-m", "real_sdks.agent_program"]
    told = msgspec.json.encode({"cli": str(require("claude")), **wish}).decode()
    ours = {"PYTHONPATH": f"{TESTS}:{SOURCES}", "PYTHONDONTWRITEBYTECODE": "1"}
    run = run_client(
        "claude-agent-sdk",
        [*program, told],
        Place(folder),
        scenario,
        environment=claude.ENVIRONMENT | ours | (environment or {}),
        transcripts=claude.TRANSCRIPTS,
    )
    assert run.exit_code == 0, run.stderr
    return run, read_steps(run.stdout)


UNKNOWN: Figures = (None, None, "unknown")


def begun(one: Billed) -> Figures:
    """A call of which its first event is known: the prompt, and one token of the answer."""
    return sent(one), sent(one) + 1, "streaming"


def ended(one: Billed) -> Figures:
    """A call of which everything is known."""
    return sent(one), held(one), "measured"


def changed_by_twice(steps: list[Step]) -> list[str]:
    """What made a difference when it was observed a second time."""
    return [step.kind for step in steps if not step.twice][:1]


def test_whole_messages(tmp_path: Path) -> None:
    """Each call's prompt is exact as soon as its first block is there, and so is the window.

    The length of an answer comes with the result: that of the last call, and the sum of the others.
    """
    run, steps = play(FILLING, tmp_path)
    billed = run.of("main")
    assert figures(steps) == [*(begun(one) for one in billed), ended(billed[-1])]
    assert changed_by_twice(steps) == []
    assert steps[-1].levels == (50, 65)
    window = steps[-1].readings["main"].window
    assert window is not None
    assert (window.tokens, window.origin) == (CLAUDE_WINDOW, "reported")


def test_partial_messages(tmp_path: Path) -> None:
    """With partial messages each call streams with its exact prompt, then holds what was billed."""
    run, steps = play(FILLING, tmp_path, prompts=["Go."], partial=True)
    assert figures(steps) == [*chain(*((begun(one), ended(one)) for one in run.of("main")))]
    assert changed_by_twice(steps) == []
    assert steps[-1].levels == (50, 65)


def check_subagent(steps: list[Step], name: str, billed: Sequence[Billed]) -> None:
    """Each call is seen once; the last one is over when the subagent is."""
    seen = figures(steps, name)
    assert [one[0] for one in seen] == [sent(one) for one in (*billed, billed[-1])]
    assert [one[2] for one in seen[-2:]] == ["streaming", "measured"]


def test_subagent_in_the_background(tmp_path: Path) -> None:
    """A subagent's calls are in its own thread, also after the main turn has ended."""
    run, steps = play(scenes.CLAUDE_AGENT, tmp_path, prompts=["Go."], results=2)
    (name,) = set(steps[-1].readings) - {"main"}
    check_subagent(steps, name, run.of("subagent"))
    sents = dict.fromkeys(one[0] for one in figures(steps))
    assert list(sents) == [sent(one) for one in run.of("main")]
    assert changed_by_twice(steps) == []


def test_synchronous_subagent(tmp_path: Path) -> None:
    """A subagent that the turn waits for; its text must be asked for to see its last call."""
    run, steps = play(
        scenes.CLAUDE_AGENT,
        tmp_path,
        environment=scenes.SYNCHRONOUS,
        prompts=["Go."],
        partial=True,
        arguments={"forward-subagent-text": None},
    )
    (name,) = set(steps[-1].readings) - {"main"}
    check_subagent(steps, name, run.of("subagent"))
    assert figures(steps) == [*chain(*((begun(one), ended(one)) for one in run.of("main")))]


def test_compaction(tmp_path: Path) -> None:
    """It is seen to begin and to end; nothing is known before the next call, levels begin anew."""
    run, steps = play(
        scenes.steps(claude.bash, 6, scenes.CLAUDE_FULL),
        tmp_path,
        environment={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"},
        prompts=["Go."],
        partial=True,
        levels=[5, 10],
    )
    told = [(begun(one), ended(one)) for one in run.of("main")]
    last = run.of("main")[3]
    between = [(sent(last), held(last), "compacting"), UNKNOWN]
    assert figures(steps) == [*chain(*told[:4]), *between, *chain(*told[4:])]
    assert {step.readings["main"].cycle for step in steps if step.readings} == {0, 1}
    assert steps[-1].levels == (5, 10, 5)


def commanded(folder: Path) -> tuple[ClientRun, list[Step]]:
    """A session that is compacted and cleared by hand, each turn of which is one call."""
    prompts = ["Go.", "/compact", "/clear", "Again."]
    return play(Scenario(otherwise=scenes.DONE), folder, prompts=prompts)


def test_commands(tmp_path: Path) -> None:
    """A compaction and a clear each begin a cycle; a turn of one call ends with what was billed."""
    run, steps = commanded(tmp_path)
    first, second = run.of("main")
    under_way = (sent(first), held(first), "compacting")
    again = [begun(second), ended(second)]
    assert figures(steps) == [begun(first), ended(first), under_way, UNKNOWN, *again]
    assert steps[-1].readings["main"].cycle == 2


def test_commands_observed_twice(tmp_path: Path) -> None:
    """A compaction and a clear that are told again are the same ones."""
    assert changed_by_twice(commanded(tmp_path)[1]) == []


def test_calls_that_the_client_repeats(tmp_path: Path) -> None:
    """A call that is refused with 429 and 529 is no call; the next try is what was billed."""
    errors = (Reply(error="rate_limited"), Reply(error="overloaded"))
    run, steps = play(scenes.failing(claude.bash, *errors), tmp_path, prompts=["Go."], partial=True)
    assert [one.status for one in run.refused] == [429, 529]
    assert figures(steps) == [*chain(*((begun(one), ended(one)) for one in run.of("main")))]


def test_interrupted_turn_is_over(tmp_path: Path) -> None:
    """The prompt of a call that was interrupted is exact, and the call is over."""
    slow = Scenario(main=(Reply(text="It rains. " * 50, pace=0.3),), otherwise=scenes.DONE)
    prompts = ["Go.", "Again."]
    run, steps = play(slow, tmp_path, prompts=prompts, partial=True, interrupt=True)
    first, second = run.of("main")
    over = (sent(first), sent(first) + 1, "measured")
    assert figures(steps) == [begun(first), over, begun(second), ended(second)]


def test_two_sessions_at_once(tmp_path: Path) -> None:
    """Each tracker has the calls of its own session."""
    scenario = Scenario(otherwise=scenes.DONE, ramp=Ramp(start=100_000, step=50_000))
    run, steps = play(scenario, tmp_path, prompts=["Go.", "Again."], partial=True, sessions=2)
    sessions = {step.session for step in steps} - {None}
    assert len(sessions) == 2
    for session in sessions:
        billed = [one for one in run.of("main") if one.session_id == session]
        own = [step for step in steps if step.session == session]
        assert figures(own) == [*chain(*((begun(one), ended(one)) for one in billed))]
        assert len(billed) == 2
