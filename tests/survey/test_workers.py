"""The same work on every core: nothing is lost, whatever becomes of a worker."""

import os
import signal
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.survey.workers import MOST, cores, shares, spread

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

HERE = os.getpid()


def shouted(items: Sequence[bytes]) -> bytes:
    """Work that needs no one."""
    return b",".join(item.upper() for item in items)


def whose(items: Sequence[bytes]) -> bytes:
    """Work that tells which process did it."""
    return b"%d" % os.getpid()


def dying(items: Sequence[bytes]) -> bytes:
    """Work on which every worker dies."""
    if os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGKILL)
    return shouted(items)


def failing(items: Sequence[bytes]) -> bytes:
    """Work that fails in a worker."""
    if os.getpid() != HERE:
        raise RuntimeError("no")
    return shouted(items)


def large(items: Sequence[bytes]) -> bytes:
    """Work with a result that does not fit into a pipe."""
    return items[0] * 300_000


def test_cores() -> None:
    """There is at least one worker, and not too many."""
    assert 1 <= cores() <= MOST


@given(st.lists(st.integers(0, 1_000)), st.integers(1, 5))
def test_shares(sizes: list[int], count: int) -> None:
    """Everything is in one share, and none is larger than the next by more than its last item."""
    made = shares(sizes, lambda size: size, count)
    assert len(made) == count
    assert sorted(size for share in made for size in share) == sorted(sizes)
    sums = [sum(share) for share in made]
    assert max(sums) - min(sums) <= max(sizes, default=0)


def test_spread() -> None:
    """The results come in the order of the lists; the first is made here."""
    assert list(spread([[b"a", b"b"], [b"c"], [b"d", b"e"]], shouted)) == [b"A,B", b"C", b"D,E"]
    first, *others = spread([[b"a"], [b"b"], [b"c"]], whose)
    assert first == b"%d" % HERE
    assert len({first, *others}) == 3


def test_empty_lists_start_no_worker() -> None:
    """An empty share needs no process."""
    assert list(spread([[b"a"], [], []], whose)) == [b"%d" % HERE]
    assert list(spread([[]], shouted)) == [b""]


def test_large_results() -> None:
    """A result may be larger than a pipe holds."""
    done = list(spread([[b"a"], [b"bc"], [b"d"]], large))
    assert [len(result) for result in done] == [300_000, 600_000, 300_000]


@pytest.mark.parametrize("work", [dying, failing])
def test_a_worker_that_dies(
    work: Callable[[Sequence[bytes]], bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    """Its list is worked on here, and nothing is said of it."""
    assert list(spread([[b"a"], [b"b"], [b"c"]], work)) == [b"A", b"B", b"C"]
    assert capfd.readouterr() == ("", "")


def test_no_worker_is_left() -> None:
    """All workers have ended, and been waited for."""
    list(spread([[b"a"], [b"b"]], shouted))
    list(spread([[b"a"], [b"b"]], dying))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
