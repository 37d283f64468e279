"""Measure how often the range of the forecast holds the true number of calls.

`python scripts/forecast.py DIR` reads the transcripts that DIR/truth.json names. The first row has
the cycles that ended in an automatic compaction: how many calls came until then. The second row has
all cycles: how many calls came until they held 40,000, 60,000, 80,000 tokens and so on.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.context.forecast import PACE_CALLS, CallsLeft, calls_left
from brimline.context.tracker import Thread
from brimline.context.usage import Usage
from brimline.errors import BrimlineError
from brimline.sessions.target import load_target

FIRST_LIMIT, LIMIT_STEP = 40_000, 20_000


class Outcome(NamedTuple):
    """A forecast, and how many calls really came."""

    forecast: CallsLeft
    calls: int

    @property
    def is_within(self) -> bool:
        return self.forecast.low <= self.calls <= self.forecast.high


def cycles_of(thread: Thread) -> Iterator[tuple[Sequence[Usage], bool]]:
    """The calls of each cycle, and whether an automatic compaction ended it."""
    usages = [call.usage for call in thread.calls_from(0)]
    start = 0
    for compaction in thread.compactions:
        yield usages[start : compaction.calls], compaction.trigger == "auto"
        start = compaction.calls
    yield usages[start:], False


def outcomes(cycle: Sequence[Usage], limit: int) -> Iterator[Outcome]:
    """Every forecast before a cycle reached a limit; none if it never did."""
    last = next((n for n, usage in enumerate(cycle) if usage.held >= limit), None)
    if last is None:
        return
    sents = [usage.sent for usage in cycle]
    for now in range(last + 1):
        recent = sents[max(0, now + 1 - PACE_CALLS) : now + 1]
        if forecast := calls_left(recent, cycle[now].held, limit):
            yield Outcome(forecast, last - now)


def row(name: str, results: Sequence[Outcome]) -> str:
    """A line of the table: how many forecasts, how many held the truth, which side it was on."""
    within = sum(each.is_within for each in results)
    fewer = sum(each.calls < each.forecast.low for each in results)
    total = max(1, len(results))
    return f"{name:32}{len(results):8,}{within / total:9.1%}{fewer / total:9.1%}"


def threads(folder: Path) -> Iterator[Thread]:
    """The threads of all transcripts that the truth names."""
    names = msgspec.json.decode((folder / "truth.json").read_bytes(), type=dict[str, object])
    for name in names:
        try:
            yield from load_target(
                str(folder / name), Places(folder, {}), BytesIO()
            ).session.threads.values()
        except BrimlineError as error:
            print(f"{name}: {error}", file=sys.stderr)


def main(folders: Iterable[str]) -> int:
    """Print the table."""
    cycles = [
        cycle for name in folders for thread in threads(Path(name)) for cycle in cycles_of(thread)
    ]
    compacted = [each for cycle, auto in cycles if auto for each in outcomes(cycle, cycle[-1].held)]
    crossed: list[Outcome] = []
    for cycle, _ in cycles:
        peak = max((usage.held for usage in cycle), default=0)
        for limit in range(FIRST_LIMIT, peak, LIMIT_STEP):
            crossed += outcomes(cycle, limit)
    print(f"{'':32}{'moments':>8}{'within':>9}{'fewer':>9}")
    print(row("until the compaction", compacted))
    print(row("until 40K, 60K, 80K tokens ...", crossed))
    for low, high in ((0, 10), (11, 30), (31, 100), (101, 200)):
        part = [each for each in crossed if low <= each.forecast.calls <= high]
        print(row(f"  forecast of {low} to {high}", part))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
