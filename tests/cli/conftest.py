"""A user for each test."""

from pathlib import Path

import pytest

from .terminal import User


@pytest.fixture
def user(tmp_path: Path) -> User:
    """A user with an empty home."""
    return User(tmp_path)
