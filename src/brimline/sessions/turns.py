"""The turns of a session: the calls from one prompt of the user to the next."""

from itertools import pairwise

import msgspec

from brimline.context.tracker import Reading, Thread
from brimline.context.usage import format_tokens

MAX_TURNS = 20  # the last ones, by which the next is judged
MIN_TURNS = 3


class NextTurn(msgspec.Struct, frozen=True):
    """Whether the next turn fits into what is left: `fitting` of the last `turns` would.

    `median_tokens` is by how much these let the context grow.
    """

    turns: int
    fitting: int
    median_tokens: int

    def __str__(self) -> str:
        verdict = "may not fit" if 2 * self.fitting >= self.turns else "probably does not fit"
        if 5 * self.fitting >= 4 * self.turns:
            verdict = "probably fits"
        return (
            f"the next turn {verdict}: {self.fitting} of the last {self.turns} would, "
            f"their median added {format_tokens(self.median_tokens)}"
        )


def predict_next_turn(thread: Thread, reading: Reading, starts: list[int]) -> NextTurn | None:
    """Compare the last turns with what is left; None if that or enough turns are unknown.

    `starts` is how many calls of the thread came before each prompt.
    """
    if reading.left is None:
        return None
    growths = turn_growths(thread, starts)[-MAX_TURNS:]
    if len(growths) < MIN_TURNS:
        return None
    fitting = sum(growth < reading.left for growth in growths)
    return NextTurn(len(growths), fitting, sorted(growths)[len(growths) // 2])


def turn_growths(thread: Thread, starts: list[int]) -> list[int]:
    """Return by how many tokens each turn let the context grow.

    The fall at a compaction does not count, nor what a session begins with.
    """
    helds = [call.usage.held for call in thread.calls_from(0)]
    turns = ((a, b) for a, b in pairwise([*starts, len(helds)]) if a < b)
    return [
        sum(max(0, after - before) for before, after in pairwise(helds[max(0, start - 1) : end]))
        for start, end in turns
    ]
