"""What the tests of the SQLite store share."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a store in a folder that does not exist yet."""
    return tmp_path / "state" / "brimline.db"
