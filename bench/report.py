"""Brimline beside ccusage on the same tree of transcripts: times, peak memory, totals."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

import other_tools
from measure import Case, Failed, run
from tree import Plan, Tree, make

CACHE = Path(__file__).parent / ".cache"
TARGETS = {"report, cold": 0.7, "report, unchanged": 0.1}
STATUS_SECONDS = 0.3
COLD_MB = 100


class Usage(msgspec.Struct, frozen=True):
    """Tokens, as `brimline report --json` names them."""

    input: int
    cache_read: int
    cache_write: int
    output: int


class Total(msgspec.Struct, frozen=True):
    """The last line of `brimline report --json`."""

    calls: int
    usage: Usage
    cost: float | None


class Report(msgspec.Struct, frozen=True):
    """What is read of `brimline report --json`."""

    total: Total


class Bench:
    """The cases, and the surroundings they run in."""

    def __init__(self, tree: Path, work: Path, program: Path) -> None:
        brimline = [str(Path(sys.executable).with_name("brimline"))]
        self._state = work / "cache"
        self._env = _environment(tree, work)
        self.ccusage = Case("ccusage daily", other_tools.ccusage_report(program, "daily"))
        self.cold = Case("report, cold", [*brimline, "report", "--json"])
        self.again = Case("report, unchanged", self.cold.command)
        self.status = Case("status, cold", [*brimline, "status", "--json"])
        self.cases = [self.ccusage, self.cold, self.again, self.status]

    def round(self) -> None:
        """Run every case once, ours and the reference in turn, so that noise hits both."""
        for case in self.cases:
            if case in (self.cold, self.status):
                shutil.rmtree(self._state, ignore_errors=True)
            case.runs.append(run(case.command, self._env))


def _environment(tree: Path, work: Path) -> dict[str, str]:
    """An environment in which nothing of this machine is found but the tree."""
    home = work / "home"
    home.mkdir()
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TZ": "UTC",
        "CLAUDE_CONFIG_DIR": str(tree),
        "BRIMLINE_CACHE_DIR": str(work / "cache"),
    }


def _table(bench: Bench) -> Iterator[str]:
    base = bench.ccusage.median
    yield f"{'':24}{'median s':>9}{'best s':>9}{'peak MB':>9}{'ratio':>8}  target"
    for case in bench.cases:
        row = f"{case.name:24}{case.median:9.3f}{case.best:9.3f}{case.peak_mb:9.0f}"
        yield f"{row}{case.median / base:8.2f}  {_target(case, bench)}"


def _target(case: Case, bench: Bench) -> str:
    if case is bench.cold:
        return f"<= {TARGETS[case.name]} x, <= {COLD_MB} MB"
    if case is bench.status:
        return f"<= {STATUS_SECONDS} s"
    return f"<= {TARGETS[case.name]} x" if case.name in TARGETS else ""


def _sums(bench: Bench, tree: Tree) -> Iterator[str]:
    """Our totals beside ccusage's and beside those of the tree."""
    theirs = msgspec.json.decode(bench.ccusage.runs[-1].output, type=other_tools.Report).totals
    ours = msgspec.json.decode(bench.cold.runs[-1].output, type=Report).total
    yield f"{'':24}{'brimline':>16}{'expected':>16}"
    yield _compared("calls (as written)", ours.calls, tree.calls)
    yield _compared("input", ours.usage.input, theirs.input_tokens)
    yield _compared("cache write", ours.usage.cache_write, theirs.cache_creation_tokens)
    yield _compared("cache read", ours.usage.cache_read, theirs.cache_read_tokens)
    yield _compared("output", ours.usage.output, theirs.output_tokens)
    yield _compared("cost (cents)", round(100 * (ours.cost or 0)), round(100 * theirs.total_cost))


def _compared(name: str, ours: int, expected: int) -> str:
    return f"{name:24}{ours:>16,}{expected:>16,}  {'equal' if ours == expected else 'DIFFERENT'}"


def _bench(args: argparse.Namespace) -> None:
    folder = args.cache / "tree"
    tree = make(folder, Plan(size=int(args.mb * 1_000_000), files=args.files))
    program = other_tools.ccusage(args.cache)
    print(f"{args.files} files, {args.mb:.0f} MB, {tree.calls} calls; ", end="")
    print(f"ccusage {other_tools.CCUSAGE}, {os.cpu_count()} cores, {args.rounds} rounds\n")
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(folder, Path(work), program)
        bench.round()
        for case in bench.cases:
            case.runs.clear()
        for _ in range(args.rounds):
            bench.round()
    print(*_table(bench), "", *_sums(bench, tree), sep="\n")


def main() -> int:
    """Print the comparison; fail only where something does not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=1000, help="size of the tree")
    parser.add_argument("--files", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=CACHE, help="keeps the tree and ccusage")
    try:
        _bench(parser.parse_args())
    except (Failed, msgspec.DecodeError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
