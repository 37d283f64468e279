"""A user and a daemon for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.running import Running

from .terminal import User


@pytest.fixture
def user(tmp_path: Path) -> User:
    """A user with an empty home."""
    return User(tmp_path)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    """A running daemon that has no session, stopped after the test."""
    running = Running(tmp_path / "daemon")
    running.start()
    yield running
    running.close()
