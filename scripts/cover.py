"""Run all tests and check the required coverage: `python scripts/cover.py`."""

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
PURE_PERCENT, ALL_PERCENT = 100, 90
# Measuring doubles the CPU time of a test. The quick ones run 91 % of the lines; generated examples
# run the same lines again and again, and importing the SDKs takes 4 s in each process.
MEASURED = ("-m", "not slow and not clients and not hypothesis", "--ignore=tests/real_sdks")
UNMEASURED = ("-m", "(slow or clients or hypothesis) and not long")
TEST_TIMEOUT_S = 900  # the first test of a client installs it, for up to 600 s
SLOWEST = 30  # tests that are listed with their durations
NO_TESTS = 5  # pytest's exit code if the arguments select none


def run(*arguments: str) -> int:
    """Run a module of Python with its arguments; returns its exit code."""
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False).returncode


def coverage(*arguments: str) -> int:
    return run("coverage", *arguments)


def main(arguments: list[str]) -> int:
    """Run the tests, then report both coverages even if the first is too low."""
    coverage("erase")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    # One more than cores: tests wait for panes, browsers and clients.
    options = ("-q", "-n", str(cores + 1), "--dist", "loadgroup", f"--timeout={TEST_TIMEOUT_S}")
    options += (f"--durations={SLOWEST}",)
    pytest = ("pytest", *options, *arguments)
    code = coverage("run", "-m", *pytest, *MEASURED)
    if code in (0, NO_TESTS):
        code = run(*pytest, *UNMEASURED)
    if code not in (0, NO_TESTS):
        return code
    # Adds the modules that no test imports. The settings' `include` does not go with a source.
    no_settings = (f"--rcfile={os.devnull}", "--branch", "--parallel-mode")
    source = f"--source={ROOT / 'src' / 'brimline'}"
    coverage("run", *no_settings, source, "-m", "brimline", "--version")
    coverage("combine", "-q")
    pure = ",".join(f"src/brimline/{path}" for path in PURE)
    print(f"\nModules without I/O ({PURE_PERCENT} % required):", flush=True)
    too_low = coverage("report", f"--include={pure}", f"--fail-under={PURE_PERCENT}")
    print(f"\nAll ({ALL_PERCENT} % required):", flush=True)
    return coverage("report", f"--fail-under={ALL_PERCENT}") or too_low


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
