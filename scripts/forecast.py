"""Measure the forecast of calls left, and fit its numbers: `python scripts/forecast.py PATH...`.

A path is a folder of transcripts with a truth.json that names them, or a JSON file of series: a
list of `{"project", "sessions"}`, each session with `calls` as `[seconds, sent, output]`, the
indexes of the calls that begin a cycle as `cycle_ends`, and for each of these in `automatic`
whether the client compacted by itself. Cycles that ended so are forecast until their last call.

The first table is of the numbers in `context/forecast.py`. With `--fit`, each project is forecast
by the numbers that fit the other projects, and the numbers that fit all of them are printed.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.context.forecast import (
    MAX_FORECAST_CALLS,
    MIN_GROWTHS,
    PACE_CALLS,
    CallsLeft,
    Pace,
    calls_left,
    growth_pace,
)
from brimline.context.tracker import Thread
from brimline.errors import BrimlineError
from brimline.sessions.target import load_target

MARKS = (0.5, 0.65, 0.8, 0.9)  # of the way to the limit, at the first call from there on
FIT_MARKS = tuple(n / 40 for n in range(14, 40))  # evenly, as most calls come late on the way
# More than 8 of 10: of a project that was not fitted, the range holds fewer.
FIT_RANGE = (0.09, 0.91)
FIT_STEPS = 60  # of the iteration, which has converged by then


class Cycle(NamedTuple):
    """The calls of a cycle that ended in an automatic compaction."""

    project: str
    sents: list[int]
    helds: list[int]

    @property
    def limit(self) -> int:
        return self.helds[-1]

    def recent_sents(self, now: int) -> list[int]:
        return self.sents[max(0, now + 1 - PACE_CALLS) : now + 1]


class Moment(NamedTuple):
    """A call of a cycle, and how many calls came from there until the limit."""

    cycle: Cycle
    now: int
    pace: Pace
    room: int
    left: int

    @property
    def way(self) -> float:
        return self.cycle.helds[self.now] / self.cycle.limit

    @property
    def features(self) -> tuple[float, ...]:
        return 1.0, math.log(self.room / self.pace.tokens), math.log(self.pace.growths)


class Fit(NamedTuple):
    """The numbers of the forecast: those of the middle, as of `Moment.features`, and the range."""

    middle: tuple[float, ...]
    range_from: float
    range_to: float

    def forecast(self, moment: Moment) -> CallsLeft | None:
        calls = math.exp(dot(self.middle, moment.features))
        low, high = max(1, round(self.range_from * calls)), math.ceil(self.range_to * calls)
        left = CallsLeft(max(1, round(calls)), low, high)
        return left if left.calls <= MAX_FORECAST_CALLS else None


Forecast = Callable[[Moment], CallsLeft | None]


class _Series(msgspec.Struct):
    """A session of a file of series."""

    calls: list[tuple[float, int, int]]
    cycle_ends: list[int]
    automatic: list[bool]


class _Project(msgspec.Struct):
    project: str
    sessions: list[_Series]


def read_series(path: Path) -> Iterator[Cycle]:
    for project in msgspec.json.decode(path.read_bytes(), type=list[_Project]):
        for session in project.sessions:
            starts = [0, *session.cycle_ends]
            for start, end, automatic in zip(
                starts, session.cycle_ends, session.automatic, strict=False
            ):
                if automatic:
                    calls = session.calls[start:end]
                    helds = [sent + output for _, sent, output in calls]
                    yield Cycle(project.project, [sent for _, sent, _ in calls], helds)


def read_transcripts(folder: Path) -> Iterator[Cycle]:
    """Yield the cycles of the transcripts that a truth.json names; a folder is a project."""
    names = msgspec.json.decode((folder / "truth.json").read_bytes(), type=dict[str, object])
    for name in names:
        try:
            loaded = load_target(str(folder / name), Places(folder, {}), BytesIO())
        except BrimlineError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        for thread in loaded.session.threads.values():
            yield from cycles_of(thread, Path(name).parent.name)


def cycles_of(thread: Thread, project: str) -> Iterator[Cycle]:
    usages = [call.usage for call in thread.calls_from(0)]
    start = 0
    for compaction in thread.compactions:
        part = usages[start : compaction.calls]
        if part and compaction.trigger == "auto":
            yield Cycle(project, [each.sent for each in part], [each.held for each in part])
        start = compaction.calls


def moments(cycle: Cycle) -> Iterator[Moment]:
    """Yield the calls of a cycle from which a forecast is possible, until its limit."""
    last = next(n for n, held in enumerate(cycle.helds) if held >= cycle.limit)
    for now in range(MIN_GROWTHS, last):
        if pace := growth_pace(cycle.recent_sents(now)):
            yield Moment(cycle, now, pace, cycle.limit - cycle.helds[now], last - now)


def marked(cycle: Cycle, marks: Iterable[float]) -> list[Moment]:
    """Return the first moment of a cycle from each of these parts of its way on, each once."""
    every = list(moments(cycle))
    first = (next((each for each in every if each.way >= mark), None) for mark in marks)
    return list({each.now: each for each in first if each is not None}.values())


def fit(cycles: Iterable[Cycle]) -> Fit:
    """Fit the middle by least absolute errors of logarithms; every cycle has the same weight."""
    rows: list[tuple[tuple[float, ...], float, float]] = []
    for cycle in cycles:
        part = marked(cycle, FIT_MARKS)
        rows += [(each.features, math.log(each.left), 1 / len(part)) for each in part]
    middle = (0.0,) * len(rows[0][0])
    errors = [1.0] * len(rows)
    for _ in range(FIT_STEPS):  # least squares, weighted by the errors before
        weights = [
            weight / max(1e-4, abs(error))
            for (_, _, weight), error in zip(rows, errors, strict=True)
        ]
        middle = least_squares([(x, y) for x, y, _ in rows], weights)
        errors = [y - dot(middle, x) for x, y, _ in rows]
    ranked = sorted((error, weight) for error, (_, _, weight) in zip(errors, rows, strict=True))
    low, high = (math.exp(quantile(ranked, share)) for share in FIT_RANGE)
    return Fit(middle, low, high)


def least_squares(
    rows: Sequence[tuple[tuple[float, ...], float]], weights: Sequence[float]
) -> tuple[float, ...]:
    """Solve the weighted normal equations by elimination."""
    size = len(rows[0][0])
    table = [[0.0] * (size + 1) for _ in range(size)]
    for (x, y), weight in zip(rows, weights, strict=True):
        for line, one in zip(table, x, strict=True):
            for column, other in enumerate((*x, y)):
                line[column] += weight * one * other
    for place in range(size):
        pivot = table[place][place]
        table[place] = [value / pivot for value in table[place]]
        for other in range(size):
            if other != place:
                factor = table[other][place]
                pairs = zip(table[other], table[place], strict=True)
                table[other] = [value - factor * own for value, own in pairs]
    return tuple(line[-1] for line in table)


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def quantile(ranked: Sequence[tuple[float, float]], share: float) -> float:
    """Return the value below which so much of the weight is."""
    left = share * sum(weight for _, weight in ranked)
    for value, weight in ranked:
        left -= weight
        if left <= 0:
            return value
    return ranked[-1][0]


def shipped(moment: Moment) -> CallsLeft | None:
    cycle, now = moment.cycle, moment.now
    return calls_left(cycle.recent_sents(now), cycle.helds[now], cycle.limit)


def table(name: str, cycles: Sequence[Cycle], forecast: Forecast) -> Iterator[str]:
    """Yield a line for each mark, and for all moments by what was forecast."""
    yield f"{name:26}{'moments':>8}{'error':>8}{'within':>8}{'fewer':>8}{'width':>7}"
    for mark in MARKS:
        here = [moment for cycle in cycles for moment in marked(cycle, [mark])]
        yield row(f"at {mark:.0%} of the way", here, forecast)
    every = [moment for cycle in cycles for moment in moments(cycle)]
    yield row("at every call", every, forecast)
    for low, high in ((1, 10), (11, 30), (31, 100), (101, MAX_FORECAST_CALLS)):
        part = [each for each in every if (left := forecast(each)) and low <= left.calls <= high]
        yield row(f"  a forecast of {low} to {high}", part, forecast)


def row(name: str, chosen: Sequence[Moment], forecast: Forecast) -> str:
    """The median error, how often the range held the truth, or was above it, and its width."""
    pairs = [(left, each.left) for each in chosen if (left := forecast(each)) is not None]
    if not pairs:
        return f"{name:26}{0:8}"
    error = median(abs(left.calls - truth) / truth for left, truth in pairs)
    within = sum(left.low <= truth <= left.high for left, truth in pairs) / len(pairs)
    fewer = sum(truth < left.low for left, truth in pairs) / len(pairs)
    width = median(left.high / left.low for left, _ in pairs)
    return f"{name:26}{len(pairs):8,}{error:8.2f}{within:8.0%}{fewer:8.0%}{width:7.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--fit", action="store_true", help="fit, and cross-validate over projects")
    options = parser.parse_args(arguments)
    cycles = [
        cycle
        for path in options.paths
        for cycle in (read_transcripts(path) if path.is_dir() else read_series(path))
        if any(moments(cycle))
    ]
    projects = sorted({cycle.project for cycle in cycles})
    print(f"{len(cycles)} cycles of {len(projects)} projects")
    print(*table("numbers of the source", cycles, shipped), sep="\n")
    if not options.fit:
        return 0
    others = {
        project: fit(cycle for cycle in cycles if cycle.project != project) for project in projects
    }
    print(
        *table("by other projects", cycles, lambda m: others[m.cycle.project].forecast(m)), sep="\n"
    )
    for project, each in {**others, "all": fit(cycles)}.items():
        level, room, growths = each.middle
        print(
            f"{'fitted to all' if project == 'all' else f'without {project}'}: "
            f"CALLS {math.exp(level):.2f}, ROOM_EXPONENT {room:.3f}, "
            f"GROWTHS_EXPONENT {-growths:.3f}, RANGE {each.range_from:.2f} to {each.range_to:.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
