"""A running daemon for a test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .running import Running


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    """A daemon that is stopped after the test."""
    running = Running(tmp_path)
    running.start()
    yield running
    running.close()
