"""The same work on many things, on every core: forked workers, results by pipe."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TypeVar

ItemT = TypeVar("ItemT")
MOST = 4


def cores() -> int:
    """How many workers are worth starting."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has no affinity
        usable = os.cpu_count() or 1
    return min(MOST, usable)


def shares(items: Sequence[ItemT], size: Callable[[ItemT], int], count: int) -> list[list[ItemT]]:
    """The items in so many lists of about the same size altogether."""
    lists: list[list[ItemT]] = [[] for _ in range(count)]
    sums = [0] * count
    for item in sorted(items, key=size, reverse=True):
        least = sums.index(min(sums))
        lists[least].append(item)
        sums[least] += size(item)
    return lists


def spread(
    lists: Sequence[Sequence[ItemT]],
    work: Callable[[Sequence[ItemT]], bytes],
    here: Callable[[Sequence[ItemT]], bytes] | None = None,
) -> Iterator[bytes]:
    """The work done on each list, the first one here, the others each in a forked process.

    A worker that dies leaves no gap: its list is worked on here. `here` is the same work as it is
    done in this process, where that can tell how far it came.
    """
    started = [(items, _fork(items, work)) for items in lists[1:] if items]
    yield (here or work)(lists[0])
    for items, (process, pipe) in started:
        done = _collect(process, pipe)
        yield work(items) if done is None else done


def _fork(items: Sequence[ItemT], work: Callable[[Sequence[ItemT]], bytes]) -> tuple[int, int]:
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ours)
        _work(items, work, theirs)
    os.close(theirs)
    return process, ours


def _work(items: Sequence[ItemT], work: Callable[[Sequence[ItemT]], bytes], pipe: int) -> NoReturn:
    """In the worker: the result behind its length, and out, whatever happens."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        result = work(items)
        with os.fdopen(pipe, "wb") as out:
            out.write(len(result).to_bytes(8, "little"))
            out.write(result)
        code = 0
    finally:
        os._exit(code)


def _collect(process: int, pipe: int) -> bytes | None:
    with os.fdopen(pipe, "rb") as file:
        length = file.read(8)
        result = file.read()
    os.waitpid(process, 0)
    whole = len(length) == 8 and int.from_bytes(length, "little") == len(result)
    return result if whole else None
