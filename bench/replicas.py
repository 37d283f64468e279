"""Races between three replicas of a fleet's server on one PostgreSQL database, with real processes.

Events: every event is posted to all three replicas at the same time, and one is killed half-way.
Messages: eight processes take the messages of the same sessions, and one is killed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the races are those of the tests

from postgres_server import local_server  # noqa: E402
from replica_races import DeliveryRace, EventRace, RaceSize  # noqa: E402

CALLS, CYCLES = 16, 5  # calls at each level, in each cycle
MESSAGES = 400  # of each session
WORKERS = 8
MAX_REDELIVERY_S = 35.0


def race_events(database: str, folder: Path, posts: int) -> None:
    """Post events; fail unless each call is stored once and each level fired once."""
    size = RaceSize(max(1, posts // RaceSize(1, CYCLES, CALLS).posts), CYCLES, CALLS)
    result = EventRace(database, folder, size).run()
    result.check(size)
    rate = result.posts / result.seconds
    print(f"{result.posts:,} posts of {sum(result.calls.values()):,} calls, {rate:.0f} a second")
    print(f"{result.refused:,} were refused or not answered, and posted again")
    print(f"{len(result.fired):,} levels fired, each once; every call is stored once", flush=True)


def race_messages(database: str, folder: Path, messages: int) -> None:
    """Take messages; fail unless they are in order, and a killed taker's come again in time."""
    race = DeliveryRace(database, folder, max(1, messages // MESSAGES), MESSAGES)
    result = race.run(WORKERS)
    rate = result.messages / result.seconds
    print(f"{result.messages:,} messages by {WORKERS} takers, {rate:.0f} a second")
    print(f"{result.violations} out of order, {result.repeated} handed out again")
    print(f"the first of a killed taker after {result.redelivered_after_s:.1f} s")
    assert result.violations == 0
    assert result.redelivered_after_s is not None
    assert result.redelivered_after_s <= MAX_REDELIVERY_S


def main() -> None:
    """Run the races with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--posts", type=int, default=100_000, help="of events (default: 100,000)")
    parser.add_argument("--messages", type=int, default=100_000, help="(default: 100,000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, local_server() as server:
        if options.posts:
            race_events(server.url, Path(folder), options.posts)
        if options.messages:
            race_messages(server.url, Path(folder), options.messages)


if __name__ == "__main__":
    main()
