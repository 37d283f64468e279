"""Sessions for which nothing waits: known from what was read, and forgotten in time."""

from pathlib import Path

import pytest

from brimline.store.base import MarkMessage, PutSession, QueueMessage, RecordSignal, Store, Write
from brimline.store.sqlite import quiet as module
from brimline.store.sqlite.quiet import MOST, NOTICED, Quiet, may_queue
from brimline.store.sqlite.store import SqliteStore
from brimline.testing.store.suite import fire, message, session, signal

from .using import on

QUEUES: list[Write] = [
    QueueMessage(message("m")),
    fire("m"),
    MarkMessage("m", "queued", ("handed",), 1.0),
]
OTHERS: list[Write] = [
    PutSession(session()),
    RecordSignal(signal()),
    MarkMessage("m", "delivered", ("handed",), 1.0),
]


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


class Version:
    """A file that others write to."""

    now: int | None = 1

    def __call__(self) -> int | None:
        """Its version."""
        return self.now


def test_known() -> None:
    """What was read to be empty is known, and of no other session."""
    quiet = Quiet(Version())
    assert not quiet.knows("s")
    quiet.learn("s", quiet.era())
    assert quiet.knows("s")
    assert not quiet.knows("t")


def test_others_write() -> None:
    """From time to time the file is asked whether others wrote; where it cannot tell, they did."""
    clock, version = Clock(), Version()
    quiet = Quiet(version, clock)
    quiet.learn("s", quiet.era())
    clock.now = NOTICED
    assert quiet.knows("s")
    version.now = 2
    assert quiet.knows("s"), "that was not long ago"
    clock.now = 2 * NOTICED
    assert not quiet.knows("s")
    version.now = None
    quiet.learn("s", quiet.era())
    assert quiet.knows("s")
    clock.now = 3 * NOTICED
    assert not quiet.knows("s")


@pytest.mark.parametrize("write", QUEUES)
def test_forgotten(write: Write) -> None:
    """Whatever may queue a message, for whomever, and what was read before that says nothing."""
    assert may_queue([*OTHERS, write])
    quiet = Quiet(Version())
    era = quiet.era()
    quiet.learn("s", era)
    quiet.forget()
    assert not quiet.knows("s")
    quiet.learn("s", era)
    assert not quiet.knows("s")
    quiet.learn("s", quiet.era())
    assert quiet.knows("s")


def test_not_forgotten() -> None:
    """What queues nothing changes nothing."""
    assert not may_queue(OTHERS)


def test_not_too_many() -> None:
    """It does not grow without end."""
    quiet = Quiet(Version())
    for number in range(MOST + 1):
        quiet.learn(str(number), quiet.era())
    assert not quiet.knows("0")
    assert quiet.knows(str(MOST))


def test_in_a_store(tmp_path: Path) -> None:
    """A store knows it after it was asked, and no more when a message came."""

    async def use(store: Store) -> list[bool]:
        said = [store.may_wait("s")]
        await store.pending_messages("s")
        said.append(store.may_wait("s"))
        await store.write([PutSession(session())])
        said.append(store.may_wait("s"))
        await store.write([QueueMessage(message("m"))])
        await store.pending_messages("s")
        return [*said, store.may_wait("s")]

    assert on(tmp_path / "brimline.db", use) == [True, False, False, True]


def test_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another one writes into the file is noticed, and what this one does is no news."""
    monkeypatch.setattr(module, "NOTICED", 0.0)
    path = tmp_path / "brimline.db"

    async def use(store: Store) -> list[bool]:
        other = await SqliteStore.open(path)
        await store.pending_messages("s")
        said = [store.may_wait("s")]
        await store.write([PutSession(session())])
        said.append(store.may_wait("s"))
        await other.write([QueueMessage(message("m"))])
        said.append(store.may_wait("s"))
        await other.close()
        return said

    assert on(path, use) == [False, False, True]
