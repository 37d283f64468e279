"""The same work on many things, on every core: forked workers, results by pipe."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TypeVar

import msgspec

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
MOST = 4
TICKETS = 4_096
"""So many fit into any pipe; with more items than these, a ticket stands for several."""


def cores() -> int:
    """How many processes are worth having."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has no affinity
        usable = os.cpu_count() or 1
    return min(MOST, usable)


def spread(
    items: Sequence[ItemT],
    work: Callable[[ItemT], ResultT],
    result: type[ResultT],
    count: int,
    told: Callable[[int], None] | None = None,
) -> list[ResultT]:
    """The work done on each item by so many processes, this one among them.

    Each takes the next item that none has taken: the largest had better come first. A worker that
    dies leaves no gap: what it took is done here. `told` is told how many items are taken.
    """
    tickets = _Tickets(min(len(items), TICKETS))
    decode = msgspec.msgpack.Decoder(result).decode
    started = [_fork(lambda: _drawn(tickets, items, _packed(work))) for _ in range(count - 1)]
    done = _drawn(tickets, items, work, told)
    tickets.close()
    for process, pipe in started:
        done |= {number: decode(packed) for number, packed in _received(pipe).items()}
        os.waitpid(process, 0)
    return [done[n] if n in done else work(item) for n, item in enumerate(items)]


class _Tickets:
    """Numbers from 0 on, each of which is drawn by one of several processes."""

    def __init__(self, count: int) -> None:
        self._pipe, into = os.pipe()
        os.write(into, b"".join(number.to_bytes(2, "little") for number in range(count)))
        os.close(into)

    def __iter__(self) -> Iterator[int]:
        while ticket := os.read(self._pipe, 2):
            yield int.from_bytes(ticket, "little")

    def close(self) -> None:
        """Draw no more."""
        os.close(self._pipe)


def _drawn(
    tickets: _Tickets,
    items: Sequence[ItemT],
    work: Callable[[ItemT], ResultT],
    told: Callable[[int], None] | None = None,
) -> dict[int, ResultT]:
    """The work done on what this process draws, by the number of the item."""
    done: dict[int, ResultT] = {}
    for ticket in tickets:
        for number in range(ticket, len(items), TICKETS):
            done[number] = work(items[number])
        if told:
            told(ticket + 1)
    return done


def _packed(work: Callable[[ItemT], object]) -> Callable[[ItemT], bytes]:
    """Work whose results are ready to be sent."""
    encode = msgspec.msgpack.Encoder().encode
    return lambda item: encode(work(item))


def _fork(work: Callable[[], dict[int, bytes]]) -> tuple[int, int]:
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ours)
        _work(work, theirs)
    os.close(theirs)
    return process, ours


def _work(work: Callable[[], dict[int, bytes]], pipe: int) -> NoReturn:
    """In the worker: what it did behind its length, and out, whatever happens, Ctrl-C too."""
    code = 1
    try:
        sent = msgspec.msgpack.encode(work())
        with os.fdopen(pipe, "wb") as out:
            out.write(len(sent).to_bytes(8, "little"))
            out.write(sent)
        code = 0
    finally:
        os._exit(code)


def _received(pipe: int) -> dict[int, bytes]:
    """What a worker sent; nothing where it is not whole."""
    with os.fdopen(pipe, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        sent = file.read(length)
    if not length or len(sent) < length:
        return {}
    return msgspec.msgpack.decode(sent, type=dict[int, bytes])
