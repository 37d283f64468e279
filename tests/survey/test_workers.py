"""The same work on every core: nothing is lost, whatever becomes of a worker."""

import os
import signal
import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.survey.workers import MOST, TICKETS, cores, spread
from hypothesis_examples import examples

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

HERE = os.getpid()


def shouted(item: str) -> str:
    """Work that needs no one."""
    return item.upper()


def whose(item: str) -> str:
    """Work that tells which process did it, and takes its time."""
    time.sleep(0.01)
    return str(os.getpid())


def dying(item: str) -> str:
    """Work on which every worker dies."""
    time.sleep(0.01)
    if os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGKILL)
    return shouted(item)


def failing(item: str) -> str:
    """Work that fails in a worker."""
    time.sleep(0.01)
    if os.getpid() != HERE:
        raise RuntimeError("no")
    return shouted(item)


def large(item: str) -> str:
    """Work with a result that does not fit into a pipe."""
    time.sleep(0.01)
    return item * 300_000


def texts(
    items: Sequence[str],
    work: Callable[[str], str],
    count: int,
    told: Callable[[int], None] | None = None,
) -> list[str]:
    """Work that makes texts."""
    return spread(items, work, str, count, told)


def test_cores() -> None:
    """There is at least one process, and not too many."""
    assert 1 <= cores() <= MOST


@examples(30)
@given(st.lists(st.text(max_size=3), max_size=40), st.integers(1, 4))
def test_everything_is_done(items: list[str], count: int) -> None:
    """However many processes there are, the results are those of all items, in their order."""
    assert texts(items, shouted, count) == [item.upper() for item in items]


def test_more_items_than_tickets() -> None:
    """Any number of items is done."""
    numbers = range(3 * TICKETS + 5)
    assert spread(numbers, lambda n: n + 1, int, 3) == [n + 1 for n in numbers]


def test_all_take_part() -> None:
    """Each process takes what is next."""
    done = texts(["x"] * 40, whose, 3)
    assert len(set(done)) == 3
    assert str(HERE) in done


def test_alone() -> None:
    """One process is this one."""
    assert texts(["x"] * 3, whose, 1) == [str(HERE)] * 3


def test_large_results() -> None:
    """A result may be larger than a pipe holds."""
    done = texts(["a", "bc", "d", "e"], large, 3)
    assert [len(result) for result in done] == [300_000, 600_000, 300_000, 300_000]


def test_told() -> None:
    """Whoever wants to know is told how many are taken, ever more, and of the last when alone."""
    taken: list[int] = []
    texts(["x"] * 20, whose, 2, taken.append)
    assert taken
    assert taken == sorted(set(taken))
    assert taken[-1] <= 20
    taken.clear()
    texts(["x"] * 5, shouted, 1, taken.append)
    assert taken == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("work", [dying, failing])
def test_a_worker_that_dies(work: Callable[[str], str], capfd: pytest.CaptureFixture[str]) -> None:
    """What it took is done here, and nothing is said of it."""
    assert texts(list("abcdefgh"), work, 3) == list("ABCDEFGH")
    assert capfd.readouterr() == ("", "")


def test_nothing_is_left() -> None:
    """All workers have ended and been waited for, and no pipe is open."""
    before = os.listdir("/dev/fd")
    texts(list("abcd"), shouted, 3)
    texts(list("abcd"), dying, 3)
    assert os.listdir("/dev/fd") == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
