"""`brimline explain` on a transcript of 100 MB, beside decoding its lines as untyped JSON."""

import argparse
import os
import sys
from pathlib import Path

from measure import Case, run
from tree import Plan, make, transcripts

ROOT = Path(__file__).parent.parent
SIZE_BYTES = 100_000_000
ROUNDS = 5
DECODE = """
import sys, msgspec
for line in open(sys.argv[1], "rb"):
    msgspec.json.decode(line)
"""


def transcript(cache: Path) -> Path:
    """The transcript that `hook.py` uses too; it is created if it is not there."""
    folder = cache / f"transcript-{SIZE_BYTES}"
    make(folder, Plan(size=SIZE_BYTES, files=1))
    (path,) = transcripts(folder)
    return path


def main(arguments: list[str]) -> int:
    """Print a row for the reference and for the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=ROOT / "bench" / ".cache")
    path = str(transcript(parser.parse_args(arguments).cache))
    cases = [
        Case("untyped JSON", [sys.executable, "-c", DECODE, path]),
        Case("explain", [sys.executable, "-m", "brimline", "explain", path, "--json"]),
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    for _ in range(ROUNDS):
        for case in cases:
            case.runs.append(run(case.command, environment))
    reference, _ = cases
    print(f"{'100 MB transcript':<20}{'seconds':>10}{'best':>8}{'peak MB':>10}{'ratio':>8}")
    for case in cases:
        ratio = case.median / reference.median
        figures = f"{case.median:>10.2f}{case.best:>8.2f}{case.peak_mb:>10.0f}{ratio:>8.2f}"
        print(f"{case.name:<20}{figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
