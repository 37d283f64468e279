"""The SDKs talk to loopback alone, whatever this machine is set up for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# The installed clients and the way to run them isolated are those of tests/clients.
sys.path.insert(0, str(Path(__file__).parents[1]))

SETTINGS = ("ANTHROPIC_", "GEMINI_", "GOOGLE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_")


@pytest.fixture(autouse=True)
def _loopback_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith(SETTINGS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
