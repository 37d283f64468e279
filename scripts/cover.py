"""Run all tests, and check that those of modules without I/O run all lines of these.

`python scripts/cover.py --all` runs the quick tests, and checks the coverage of all modules.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Modules without I/O.
PURE = (
    "errors.py",
    "context/usage.py",
    "context/window/*",
    "context/prices.py",
    "context/events.py",
    "terminal/colours.py",
    "settings.py",
    "context/providers/*",
    "context/tracker/*",
    "context/formulas.py",
    "context/forecast.py",
    "context/need.py",
    "context/cache_misses.py",
    "sessions/ledger/*",
    "context/policy/*",
)
# Their own tests run all of their lines. Measuring doubles the CPU time of a test, so that the
# others are measured only for the coverage of all modules.
PURE_TESTS = (
    "tests/context",
    "tests/sdk",
    "tests/sessions",
    "tests/terminal",
    "tests/test_errors.py",
    "tests/test_settings.py",
)
PURE_PERCENT, ALL_PERCENT = 100, 90
# Without those that run the same lines again and again, or import the SDKs for 4 s.
QUICK = ("-m", "not slow and not clients and not hypothesis", "--ignore=tests/real_sdks")
NOT_LONG = ("-m", "not long")
TEST_TIMEOUT_S = 900  # the first test of a client installs it, for up to 600 s
SLOWEST = 30  # tests that are listed with their durations


def run(*arguments: str) -> int:
    """Run a module of Python with its arguments; returns its exit code."""
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False).returncode


def coverage(*arguments: str) -> int:
    return run("coverage", *arguments)


def measure(*tests: str) -> int:
    """Run tests, and collect which lines of all modules they run; returns the exit code."""
    coverage("erase")
    if code := coverage("run", "-m", *tests):
        return code
    # Adds the modules that no test imports. The settings' `include` does not go with a source.
    no_settings = (f"--rcfile={os.devnull}", "--branch", "--parallel-mode")
    source = f"--source={ROOT / 'src' / 'brimline'}"
    coverage("run", *no_settings, source, "-m", "brimline", "--version")
    return coverage("combine", "-q")


def report(title: str, percent: int, *options: str) -> int:
    print(f"\n{title} ({percent} % required):", flush=True)
    return coverage("report", f"--fail-under={percent}", *options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="measure the quick tests alone, of all")
    measures_all = parser.parse_args().all
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    # One more than cores: tests wait for panes, browsers and clients.
    pytest = ("pytest", "-q", "-n", str(cores + 1), "--dist", "loadgroup")
    pytest += (f"--timeout={TEST_TIMEOUT_S}", f"--durations={SLOWEST}")
    if measures_all:
        return measure(*pytest, *QUICK) or report("All", ALL_PERCENT)
    others = (f"--ignore={path}" for path in PURE_TESTS)
    code = measure(*pytest, *NOT_LONG, *PURE_TESTS) or run(*pytest, *NOT_LONG, *others)
    pure = ",".join(f"src/brimline/{path}" for path in PURE)
    return code or report("Modules without I/O", PURE_PERCENT, f"--include={pure}")


if __name__ == "__main__":
    sys.exit(main())
