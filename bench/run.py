"""What tracking costs: a client's stream through `brimline run`, beside the same through `cat`."""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from measure import Failed

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "claude"
STREAMS = {"whole messages": "tool-loop", "partial messages": "partial"}
"""Recorded streams of Claude Code, the second with --include-partial-messages."""

MAX_CORE = 0.03
"""Of one core, for a client that prints 1 MB/s."""

PACED = """
import os, sys, time
lines = open(sys.argv[1], "rb").read().splitlines(keepends=True)
began, sent = time.monotonic(), 0
for line in lines:
    os.write(1, line)
    sent += len(line)
    ahead = sent / 1e6 - (time.monotonic() - began)
    if ahead > 0:
        time.sleep(ahead)
"""
"""Prints a file line by line, 1 MB a second."""


def cpu(process: "subprocess.Popen[bytes]") -> float:
    """The CPU seconds of a process alone, once it has ended: its children's do not count."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    if code := process.wait():
        raise Failed([str(word) for word in cast("list[object]", process.args)], code, "")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours(child: Sequence[str]) -> float:
    """The CPU of `brimline run` for a child."""
    command = [sys.executable, "-m", "brimline", "run", "--agent", "claude", "--", *child]
    null = subprocess.DEVNULL
    return cpu(subprocess.Popen(command, stdout=null, stderr=null))


def cats(child: Sequence[str]) -> float:
    """The CPU of cat for the same child."""
    with subprocess.Popen(child, stdout=subprocess.PIPE) as producer:
        return cpu(subprocess.Popen(["cat"], stdin=producer.stdout, stdout=subprocess.DEVNULL))


def stream(scene: str, megabytes: float, folder: Path) -> Path:
    """A recorded stream, repeated up to a length."""
    once = (FIXTURES / scene / "stream-1.jsonl").read_bytes()
    path = folder / f"{scene}.jsonl"
    path.write_bytes(once * round(megabytes * 1e6 / len(once)))
    return path


def row(name: str, child: Sequence[str], seconds: float, rounds: int) -> str:
    """Measure a child's stream; our own start does not count, it is the same for any length."""
    start = statistics.median(ours(["true"]) for _ in range(rounds))
    cat = statistics.median(cats(child) for _ in range(rounds)) / seconds
    own = (statistics.median(ours(child) for _ in range(rounds)) - start) / seconds
    ratio = own / cat if cat else math.inf  # a short run of cat takes less than a tick
    verdict = "yes" if own <= MAX_CORE else "NO"
    return f"{name:24}{cat:8.2%}{own:11.2%}{ratio:8.1f}  <= {MAX_CORE:.0%}: {verdict}"


def main() -> int:
    """Print the table; fail only where something does not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="length of a run")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print(f"{'of a core at 1 MB/s':24}{'cat':>8}{'brimline':>11}{'ratio':>8}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, scene in STREAMS.items():
                file = stream(scene, args.seconds, Path(folder))
                child = [sys.executable, "-c", PACED, str(file)]
                print(row(name, child, args.seconds, args.rounds), flush=True)
    except Failed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
