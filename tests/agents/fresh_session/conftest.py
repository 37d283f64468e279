"""A machine for each test."""

from pathlib import Path

import pytest

from .scripted import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with Claude Code on it, as it answers when all is well."""
    made = Machine(tmp_path)
    made.install()
    return made
