"""LangChain, the OpenAI Agents SDK and Google ADK, in a process of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .bill import LOOP
from .framework_program import ADK, LANGCHAIN_AND_AGENTS, Case
from .install import frameworks
from .programs import play

pytestmark = pytest.mark.clients

QUIET = {"GOOGLE_API_KEY": "dummy", "LANGSMITH_TRACING": "false"}


def check(cases: list[Case], expected: set[str]) -> None:
    assert {case.name for case in cases} == expected
    for case in cases:
        assert case.read == case.billed, case.name
        assert len(case.billed) == len(LOOP.main), case.name


def test_calls_of_langchain_and_of_the_agents_sdk_are_what_was_billed(tmp_path: Path) -> None:
    python = Path(sys.executable)
    cases = play(python, "real_sdks.framework_program", Case, tmp_path, QUIET)
    check(cases, set(LANGCHAIN_AND_AGENTS))


def test_calls_of_google_adk_are_what_was_billed(tmp_path: Path) -> None:
    cases = play(frameworks(), "real_sdks.framework_program", Case, tmp_path, QUIET)
    check(cases, set(ADK))
