"""Run the long tests of docs/concepts/trust.md: `make trust`, or one row, `make trust ROW=kills`.

What a row measured is stored in bench/results/trust.json, and the table of the page is written from
that file; `--table` prints the stored one. The rows are those of `tests/trust`, where `make test`
runs them with small sizes.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from trust.row import Figures, RowResult  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "trust.json"
PAGE = ROOT / "docs" / "concepts" / "trust.md"
BEGIN, END = "<!-- scripts/trust.py writes this table -->\n", "<!-- end of the table -->\n"

MAX_MINUTES = 40  # that a row takes
SEED = 1
FREE_STEP_BYTES = 64 << 10  # between two points at which a disk is full


def kills(folder: Path) -> RowResult:
    from trust.kills import kill_under_load

    return kill_under_load(folder, kills=1_000)


def hooks(folder: Path) -> RowResult:
    from trust.hook_faults import run_hooks

    return run_hooks(folder, runs=10_000)


def disk(folder: Path) -> RowResult:
    from trust.full_disk import fill_disk

    return fill_disk(folder, range(0, 50 * FREE_STEP_BYTES, FREE_STEP_BYTES))


def soak(folder: Path, minutes: float = MAX_MINUTES) -> RowResult:
    from trust.soak import soak_daemon

    return soak_daemon(folder, rate=300, seconds=minutes * 60)


def openapi(folder: Path) -> RowResult:
    from trust.openapi import try_routes

    return try_routes(folder, examples=200)


def settings(folder: Path) -> RowResult:
    from trust.settings_files import set_up_and_remove

    return set_up_and_remove(folder, files=500)


def fuzz(folder: Path, minutes: float = MAX_MINUTES) -> RowResult:
    from agents.transcript_fuzz import fuzz as fuzz_transcripts

    result = fuzz_transcripts(folder, SEED, seconds=minutes * 60)
    figures = {"files": result.files, "failures": len(result.failures)}
    figures |= {"slowest s": round(result.slowest_s, 2), "peak MB": round(result.peak_mb)}
    return RowResult(figures, {"failures": 0, "slowest s": 2, "peak MB": 300}, result.failures)


def rotation(folder: Path) -> RowResult:
    from trust.rotations import rotate_clients

    return rotate_clients(folder, windows=10)


def clients(folder: Path) -> RowResult:
    from trust.long_scenes import run_scenes

    return run_scenes(folder)


class Row(NamedTuple):
    """A test that takes at most 40 minutes, and what it does, for the page.

    The runs of those that are timed take the minutes as an argument.
    """

    run: Callable[..., RowResult]
    test: str
    is_timed: bool = False


ROWS = {
    "kills": Row(
        kills, "the daemon and hook clients are killed under load, also while the daemon starts"
    ),
    "hooks": Row(
        hooks,
        "hooks and status lines while the daemon is absent, suspended or hangs, the disk is full, "
        "the home is read-only, or the input comes late or never",
    ),
    "disk": Row(disk, "the disk of the state folder fills up, each time at another point"),
    "soak": Row(soak, "300 hooks per second while dashboards open and close", is_timed=True),
    "openapi": Row(
        openapi,
        "schemathesis: valid and invalid requests to every route of the daemon and of a fleet's "
        "server",
    ),
    "settings": Row(
        settings, "setup and its removal with generated settings: the bytes are the same again"
    ),
    "fuzz": Row(fuzz, "damaged files of every agent", is_timed=True),
    "rotation": Row(
        rotation,
        "`run --rotate-at 75`: Claude Code and Codex go through ten context windows each",
    ),
    "clients": Row(
        clients,
        "the scenes of real clients and SDKs that `make test` leaves out; the daemon is killed at "
        "each step of clients that hand over and compact",
    ),
}


class Measured(msgspec.Struct, frozen=True):
    """A run of a row. `load` is the machine's load average at its end."""

    date: str
    cores: int
    load: float
    minutes: float
    figures: Figures
    most: dict[str, float]


def read_results() -> dict[str, Measured]:
    return msgspec.json.decode(RESULTS.read_bytes(), type=dict[str, Measured])


def table(results: dict[str, Measured]) -> str:
    """The table of the page."""
    lines = ["| test | result | measured | command |", "|---|---|---|---|"]
    for name, row in ROWS.items():
        figures, measured = "not measured yet", ""
        if run := results.get(name):
            figures = ", ".join(_figure(run, each) for each in run.figures)
            measured = f"{run.date}, {run.minutes:.0f} min, {run.cores} cores, load {run.load:.1f}"
        lines.append(f"| {row.test} | {figures} | {measured} | `make trust ROW={name}` |")
    return "\n".join(lines) + "\n"


def _figure(run: Measured, name: str) -> str:
    figure, most = run.figures[name], run.most.get(name)
    if most is not None and figure > most:
        return f"**{name} {figure:,}, above the limit of {most:,g}**"
    return f"{name} {figure:,}" + (f" (at most {most:,g})" if most else "")


def store(name: str, result: RowResult, minutes: float) -> None:
    """Store a run, and write the table of the page."""
    measured = Measured(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        cores=os.cpu_count() or 1,
        load=round(os.getloadavg()[2], 1),
        minutes=round(minutes, 1),
        figures=result.figures,
        most=dict(result.most),
    )
    results = read_results() | {name: measured}
    ordered = {name: results[name] for name in ROWS if name in results}
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{table(ordered)}{END}{after}", "utf-8")


def run(name: str, minutes: float) -> bool:
    """Run a row and store its figures; return whether it passed or was skipped."""
    print(f"{name}: {ROWS[name].test}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="brimline-") as folder:
        limits = (minutes,) if ROWS[name].is_timed else ()
        result = ROWS[name].run(Path(folder), *limits)
    if result.skipped is not None:
        print(f"{name}: skipped: {result.skipped}")
        return True
    took = (time.monotonic() - begun) / 60
    print(f"{name}: {took:.1f} min:", ", ".join(f"{n} {v:,}" for n, v in result.figures.items()))
    for failure in result.failures:
        print(f"{name}: FAILED: {failure}")
    store(name, result, took)
    return not result.failures


def main() -> int:
    """Run the named rows, or all of them; 1 if one fails."""
    parser = argparse.ArgumentParser(description="Run the long tests, or the named rows.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of {', '.join(ROWS)}")
    help_text = "of the soak and fuzz rows (default: %(default)s)"
    parser.add_argument("--minutes", type=float, default=MAX_MINUTES, metavar="N", help=help_text)
    parser.add_argument("--table", action="store_true", help="print the stored table")
    options = parser.parse_args()
    for name in options.rows:
        if name not in ROWS:
            parser.error(f"argument ROW: invalid choice: {name!r} (choose from {', '.join(ROWS)})")
    if options.table:
        print(table(read_results()), end="")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends with it
    try:
        passed = [run(name, options.minutes) for name in options.rows or ROWS]
    except KeyboardInterrupt:
        return 130
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
