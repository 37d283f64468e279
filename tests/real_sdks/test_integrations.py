"""`brimline.integrations` with the real frameworks: whole, streamed, at once, left, retried."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario
from clients import claude, scenes
from clients.install import require
from clients.run import SOURCES, ClientRun, Place, run_client

from .bill import held, sent
from .install import frameworks
from .integration_cases import Case
from .programs import TESTS, play

pytestmark = pytest.mark.clients

PYTHON = Path(sys.executable)
QUIET = {
    "GOOGLE_API_KEY": "dummy",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


def check(cases: list[Case], count: int, warnings: dict[str, list[str]]) -> None:
    """Every case reads what was billed; what is not measured says why, once."""
    assert len({case.name for case in cases}) == count
    for case in cases:
        assert case.read == case.billed, case.name
        assert set(case.states) <= {"measured"}, case.name
    reasons = {case.name: case.warnings for case in cases if case.warnings}
    assert reasons.keys() == warnings.keys()
    for name, parts in warnings.items():
        assert all(part in text for part, text in zip(parts, reasons[name], strict=True))


def test_langchain(tmp_path: Path) -> None:
    cases = play(PYTHON, "real_sdks.langchain_program", Case, tmp_path, QUIET)
    check(cases, 33, {"without usage": ["stream_usage=True"]})


def test_openai_agents(tmp_path: Path) -> None:
    cases = play(PYTHON, "real_sdks.openai_agents_program", Case, tmp_path, QUIET)
    check(cases, 16, {"without usage": ["ModelSettings(include_usage=True)"]})


def test_pydantic_ai(tmp_path: Path) -> None:
    check(play(PYTHON, "real_sdks.pydantic_ai_program", Case, tmp_path, QUIET), 28, {})


def test_litellm(tmp_path: Path) -> None:
    cases = play(frameworks(), "real_sdks.callback_program", Case, tmp_path, QUIET)
    check(cases, 39, {"stream without usage": ["include_usage"], "retry": ["Router"]})


def test_opentelemetry(tmp_path: Path) -> None:
    """Spans of calls are read; the span of an agent, which has their sum, is not."""
    cases = play(frameworks(), "real_sdks.span_program", Case, tmp_path, QUIET)
    check(cases, 10, {"spans that are refused": ["gen_ai.operation.name is 'plan'"]})


def converse(scenario: Scenario, folder: Path, **wish: Any) -> tuple[ClientRun, dict[str, Case]]:
    """Let clients of the Claude Agent SDK converse; returns what each read, by its prompt."""
    told = msgspec.json.encode({"cli": str(require("claude")), **wish}).decode()
    ours = {"PYTHONPATH": f"{TESTS}:{SOURCES}", "PYTHONDONTWRITEBYTECODE": "1"}
    run = run_client(
        "claude-agent-sdk",
        [PYTHON, "-m", "real_sdks.claude_client_program", told],
        Place(folder),
        scenario,
        environment=claude.ENVIRONMENT | ours,
        transcripts=claude.TRANSCRIPTS,
    )
    assert run.exit_code == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
    cases = [msgspec.json.decode(line, type=Case) for line in lines]
    return run, {case.name: case for case in cases}


def test_client_of_the_claude_agent_sdk_after_refused_calls(tmp_path: Path) -> None:
    refused = (Reply(error="rate_limited"), Reply(error="overloaded"))
    run, cases = converse(scenes.failing(claude.bash, *refused), tmp_path)
    assert cases["Go."].read == {"main": [(sent(one), held(one)) for one in run.of("main")]}
    assert (len(run.of("main")), len(run.refused), cases["Go."].states) == (3, 2, ["measured"])


APPLES, PEARS = "Count the apples.", "Count the pears."
TWO = Scenario(
    main=(
        Reply(text="One.", when="apples", added=1_000, delay=0.5),
        Reply(text="Two.", when="pears", added=100_000, delay=0.5),
    )
)


def test_two_clients_of_the_claude_agent_sdk_at_once(tmp_path: Path) -> None:
    run, cases = converse(TWO, tmp_path, prompts=[APPLES, PEARS])
    small, large = sorted((sent(one), held(one)) for one in run.of("main"))
    assert small[0] + 90_000 < large[0]
    assert cases[APPLES].read == {"main": [small]}
    assert cases[PEARS].read == {"main": [large]}


def test_second_client_on_a_tracker_is_not_measured(tmp_path: Path) -> None:
    """Two sessions in one tracker would take turns in restarting it."""
    run, cases = converse(TWO, tmp_path, prompts=[APPLES, PEARS], shared=True)
    small, _ = sorted((sent(one), held(one)) for one in run.of("main"))
    assert cases[PEARS].read in ({"main": [small]}, {})
    (warning,) = cases[APPLES].warnings
    assert "give each client a tracker" in warning


def test_client_of_the_claude_agent_sdk_that_is_left(tmp_path: Path) -> None:
    scenario = Scenario(main=(Reply(text="One. " * 400, pace=0.05),), ramp=Ramp(start=50_000))
    run, cases = converse(scenario, tmp_path, left=True)
    (call,) = cases["Go."].read["main"]
    assert (call[0], cases["Go."].states) == (sent(run.of("main")[0]), ["measured"])
