"""Replicas and takers of messages as processes on one database; one of each is killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres_server import new_schema
from replica_races import DeliveryRace, EventRace, RaceSize

pytestmark = pytest.mark.slow

SPEED = 60.0  # of the takers' clocks: a lease of 30 s ends after half a second


@pytest.fixture
def empty_database(postgres: str) -> Iterator[str]:
    with new_schema(postgres) as url:
        yield url


def test_level_fires_once_over_three_replicas_of_which_one_is_killed(
    empty_database: str, tmp_path: Path
) -> None:
    """Every event is posted to all three; each call is stored once."""
    size = RaceSize(sessions=4, cycles=2, calls=3)
    result = EventRace(empty_database, tmp_path, size).run()
    assert result.posts == size.posts
    result.check(size)


def test_messages_keep_their_order_over_takers_of_which_one_is_killed(
    empty_database: str, tmp_path: Path
) -> None:
    """The messages that it held are handed out again, before later ones."""
    result = DeliveryRace(empty_database, tmp_path, sessions=4, messages=80).run(3, SPEED)
    assert (result.messages, result.violations) == (320, 0)
