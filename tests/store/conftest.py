"""What the tests of the stores share."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a store in a folder that does not exist yet."""
    return tmp_path / "state" / "brimline.db"


@pytest.fixture(scope="session")
def shared_database(postgres: str) -> Iterator[str]:
    """The URL of a database for tests that have organisations of their own."""
    from postgres_server import new_schema

    with new_schema(postgres) as url:
        yield url


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    """The URL of an empty database."""
    from postgres_server import new_schema

    with new_schema(postgres) as url:
        yield url
