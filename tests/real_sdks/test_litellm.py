"""The `litellm` package, in its own virtual environment and process."""

from __future__ import annotations

from pathlib import Path

import pytest

from .bill import LEVELS, LOOP
from .connect import CLAUDE_WINDOW, GEMINI_WINDOW, GPT_WINDOW
from .install import frameworks
from .litellm_program import PROVIDERS, WAYS, Case
from .programs import play

pytestmark = pytest.mark.clients

WINDOWS = {"anthropic": CLAUDE_WINDOW, "openai": GPT_WINDOW, "gemini": GEMINI_WINDOW}
EXPECTED = {
    **{f"{provider} {way}": WINDOWS[provider] for provider in PROVIDERS for way in WAYS},
    "responses": GPT_WINDOW,
    "anthropic_messages": CLAUDE_WINDOW,
}
"""Every case, and the window of its model."""


@pytest.mark.long  # test_integrations.py runs it, too
def test_every_case(tmp_path: Path) -> None:
    """Whatever it translates from, whole or streamed, each call is what was billed."""
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    cases = play(frameworks(), "real_sdks.litellm_program", Case, tmp_path, environment)
    assert {case.name: case.window for case in cases} == EXPECTED
    for case in cases:
        assert case.read == case.billed
        assert len(case.billed) == len(LOOP.main)
        assert case.levels == LEVELS


def test_failed_install_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-made environment is never taken for one; a test is skipped, and fails in CI."""
    monkeypatch.setenv("BRIMLINE_CLIENTS_DIR", str(tmp_path))
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.setenv(name, (tmp_path / "nothing").as_uri())
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="pip install failed"):
        frameworks()
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="pip install failed"):
        frameworks()
