"""Every SDK: two streams at once, streams left early, calls repeated after 429 and 529."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from .install import frameworks
from .programs import play
from .situation_program import FRAMEWORKS, NEWEST, Case, Sdk, situations

pytestmark = [pytest.mark.clients, pytest.mark.long]

ENVIRONMENT = {
    "GOOGLE_API_KEY": "dummy",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
PROMPT_COMES_FIRST = ("anthropic", "google-genai", "pydantic-ai")
"""The SDKs that report the prompt with the first item of a stream; all others with the last."""


def check(sdks: Sequence[Sdk], cases: Sequence[Case]) -> None:
    expected = {f"{sdk.name}: {name}" for sdk, name in situations(sdks)}
    assert {case.name for case in cases} == expected
    for case in cases:
        check_left_early(case) if case.name.endswith("left early") else check_whole(case)


def check_whole(case: Case) -> None:
    """Each call is what was billed; a refused one is none."""
    assert (case.name, case.read) == (case.name, case.billed)
    assert case.states == ["measured"], case.name
    is_repeated = "repeated" in case.name
    assert len(case.billed) == (1 if is_repeated else 2), case.name
    assert case.refused == ([429, 529] if is_repeated else []), case.name
    assert case.unread == 0, case.name


def check_left_early(case: Case) -> None:
    """What was sent is exact, or the stream is counted as unread; the next answer is exact."""
    read, billed = ([call[:3] for call in calls] for calls in (case.read, case.billed))
    assert len(billed) == 2, case.name
    if case.name.startswith(PROMPT_COMES_FIRST):
        assert (case.name, read, case.states) == (case.name, billed, ["measured", "measured"])
        assert case.unread == 0, case.name
    else:
        assert (case.name, read, case.unread) == (case.name, billed[1:], 1)
        assert case.states == ["unknown", "measured"], case.name
    assert case.read[-1] == case.billed[-1], case.name


def test_newest_sdks(tmp_path: Path) -> None:
    python = Path(sys.executable)
    check(NEWEST, play(python, "real_sdks.situation_program", Case, tmp_path, ENVIRONMENT))


def test_litellm_adk_and_the_sdks_that_they_need(tmp_path: Path) -> None:
    check(
        FRAMEWORKS, play(frameworks(), "real_sdks.situation_program", Case, tmp_path, ENVIRONMENT)
    )
