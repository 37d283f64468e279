"""Run every test and hold the coverage against what we ask of it: `python scripts/cover.py`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PURE = (
    "errors.py",
    "usage.py",
    "windows/*",
    "prices.py",
    "events.py",
    "terminal/colours.py",
    "settings.py",
    "providers/*",
    "tracker/*",
    "formulas.py",
    "forecast.py",
    "policy/*",
)
OF_PURE, OF_ALL = 100, 90


def coverage(*arguments: str) -> int:
    """Run coverage in the project's folder."""
    return subprocess.run(
        [sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=False
    ).returncode


def main(arguments: list[str]) -> int:
    """The tests first; then every shortfall, not the first alone."""
    coverage("erase")
    workers = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    code = coverage("run", "-m", "pytest", "-q", "-n", workers, "--dist", "loadgroup", *arguments)
    if code:
        return code
    coverage("combine", "-q")
    pure = ",".join(f"src/brimline/{room}" for room in PURE)
    print(f"\nThe pure rooms ({OF_PURE} % asked for):", flush=True)
    short = coverage("report", f"--include={pure}", f"--fail-under={OF_PURE}")
    print(f"\nAll ({OF_ALL} % asked for):", flush=True)
    return coverage("report", f"--fail-under={OF_ALL}") or short


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
