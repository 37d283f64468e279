"""LangGraph, LlamaIndex, CrewAI and Strands with their integrations, in their own environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from .bill import LOOP
from .install import frameworks
from .integration_cases import Case
from .programs import play

pytestmark = [pytest.mark.clients, pytest.mark.long]

# Nothing but loopback can be reached: what they would report is switched off.
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
}
NAMES = {
    *("LangGraph", "LangGraph streamed", "CrewAI"),
    *("LlamaIndex with OpenAI", "LlamaIndex with OpenAI streamed"),
    *("LlamaIndex with Anthropic", "LlamaIndex with Anthropic streamed"),
    *("Strands with OpenAI", "Strands with Anthropic"),
}


def test_agents_of_every_framework_are_read_as_billed(tmp_path: Path) -> None:
    """Each call counts once; the sum of a run is refused."""
    python = frameworks("agent_frameworks")
    cases = play(python, "real_sdks.agent_frameworks_program", Case, tmp_path, QUIET)
    assert {case.name for case in cases} == NAMES
    for case in cases:
        assert case.read == case.billed, case.name
        assert len(case.billed["main"]) == len(LOOP.main)
        assert (case.states, case.warnings) == (["measured"], [])
