"""Hook latency of a real daemon at 300 and 1,000 hooks per second, with growing transcripts."""

import argparse
import tempfile
import time
from pathlib import Path

from hook_load import HookSender, Latency, Load, measure, print_row, process
from serving import serving

MAX_P99_MS = {300: 20.0, 1_000: 50.0}
"""The targets, by hooks per second."""

SETTLE_S = 2.0


def run(work: Path, sessions: int, seconds: float) -> None:
    """Measure one rate after the other on one daemon, the lowest again at the end; print it."""
    transcripts = work / "transcripts"
    transcripts.mkdir()
    with serving(work) as daemon:
        sender = HookSender(str(daemon.socket), transcripts, sessions)
        with process(sender.serve) as hooks:
            measure(hooks, daemon, Load(sessions, 1.0))  # each session is read once
            rates = [*MAX_P99_MS, min(MAX_P99_MS)]
            for rate in rates:
                time.sleep(SETTLE_S)
                cpu, started = daemon.cpu_ns, time.perf_counter()
                latency = measure(hooks, daemon, Load(rate, seconds))
                busy = (daemon.cpu_ns - cpu) / 1e7 / (time.perf_counter() - started)
                print_row(f"{rate} hooks/s", latency)
                print(f"{'':18}  {_verdict(rate, latency)}, {busy:.0f} % of a core")


def _verdict(rate: int, latency: Latency) -> str:
    verdict = "yes" if latency.p99 <= MAX_P99_MS[rate] else "NO"
    return f"p99 <= {MAX_P99_MS[rate]:g} ms: {verdict}"


def main() -> None:
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100, help="that grow (default: 100)")
    parser.add_argument("--seconds", type=float, default=10, help="per rate (default: 10)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), options.sessions, options.seconds)


if __name__ == "__main__":
    main()
