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


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon for all tests of a module; each uses its own session."""
    running = Running(tmp_path_factory.mktemp("daemon"))
    running.start()
    yield running
    running.close()
