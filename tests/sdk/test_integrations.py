"""`brimline.integrations` with the real frameworks: whole, streamed, at once, left, retried."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .install import frameworks
from .integration_cases import Case
from .programs import play

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
    cases = play(PYTHON, "sdk.langchain_program", Case, tmp_path, QUIET)
    check(cases, 32, {"without usage": ["stream_usage=True"]})


def test_openai_agents(tmp_path: Path) -> None:
    cases = play(PYTHON, "sdk.openai_agents_program", Case, tmp_path, QUIET)
    check(cases, 15, {"without usage": ["ModelSettings(include_usage=True)"]})


def test_pydantic_ai(tmp_path: Path) -> None:
    check(play(PYTHON, "sdk.pydantic_ai_program", Case, tmp_path, QUIET), 27, {})


def test_litellm(tmp_path: Path) -> None:
    cases = play(frameworks(), "sdk.callback_program", Case, tmp_path, QUIET)
    check(cases, 39, {"stream without usage": ["include_usage"], "retry": ["Router"]})


def test_opentelemetry(tmp_path: Path) -> None:
    """Spans of calls are read; the span of an agent, which has their sum, is not."""
    cases = play(frameworks(), "sdk.span_program", Case, tmp_path, QUIET)
    refused = ["gen_ai.operation.name is 'plan'", "must be at most the prompt"]
    check(cases, 10, {"spans that are refused": refused})
