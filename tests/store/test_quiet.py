"""Sessions for which nothing waits: known from what was read, and forgotten in time."""

from pathlib import Path

import pytest

from brimline.store.base import Fire, Mark, PutSession, Queue, Store, Write
from brimline.store.sqlite.quiet import MOST, NOTICED, Quiet, may_queue
from brimline.testing.store.suite import fire, message, session, signal

from .using import on

QUEUES: list[Write] = [
    Queue(message("m")),
    fire("m"),
    Mark("m", "queued", ("handed",), 1.0),
]
OTHERS: list[Write] = [
    PutSession(session()),
    Fire(signal()),
    Mark("m", "delivered", ("handed",), 1.0),
]


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_known() -> None:
    """What was read to be empty is known, for a while, and of no other session."""
    clock = Clock()
    quiet = Quiet(clock)
    assert not quiet.knows("s")
    quiet.learn("s", quiet.era)
    assert quiet.knows("s")
    assert not quiet.knows("t")
    clock.now = NOTICED
    assert not quiet.knows("s")


@pytest.mark.parametrize("write", QUEUES)
def test_forgotten(write: Write) -> None:
    """Whatever may queue a message, for whomever, and what was read before that says nothing."""
    assert may_queue([*OTHERS, write])
    quiet = Quiet(Clock())
    era = quiet.era
    quiet.learn("s", era)
    quiet.forget()
    assert not quiet.knows("s")
    quiet.learn("s", era)
    assert not quiet.knows("s")
    quiet.learn("s", quiet.era)
    assert quiet.knows("s")


def test_not_forgotten() -> None:
    """What queues nothing changes nothing."""
    assert not may_queue(OTHERS)


def test_not_too_many() -> None:
    """It does not grow without end."""
    quiet = Quiet(Clock())
    for number in range(MOST + 1):
        quiet.learn(str(number), quiet.era)
    assert not quiet.knows("0")
    assert quiet.knows(str(MOST))


def test_in_a_store(tmp_path: Path) -> None:
    """A store knows it after it was asked, and no more when a message came."""

    async def use(store: Store) -> list[bool]:
        said = [store.may_wait("s")]
        await store.waiting("s")
        said.append(store.may_wait("s"))
        await store.write([PutSession(session())])
        said.append(store.may_wait("s"))
        await store.write([Queue(message("m"))])
        await store.waiting("s")
        return [*said, store.may_wait("s")]

    assert on(tmp_path / "brimline.db", use) == [True, False, False, True]
