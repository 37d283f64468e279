"""What the tests of the SQLite store share."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store can be, in a folder that is not there yet."""
    return tmp_path / "state" / "brimline.db"
