"""The cost of `Tracker.observe` in sessions of 100 to 20,000 calls, and of importing `Tracker`."""

import argparse
import statistics
import subprocess
import sys
import time

from brimline.sdk.tracker import Tracker

CALLS = (100, 1_000, 6_000, 20_000)
MAX_RATIO = 1.2
ROUNDS = 15

IMPORTS = {"import anthropic": "import anthropic", "import Tracker": "from brimline import Tracker"}
MAX_IMPORT_SHARE = 0.1  # of the time that the SDK takes


def answer(number: int) -> dict[str, object]:
    """An answer of the Anthropic API; each call sends a little more than the one before."""
    usage = {"input_tokens": 4, "cache_read_input_tokens": 1_000 + number, "output_tokens": 9}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [],
        "stop_reason": "end_turn",
        "usage": usage,
    }


def cost_us(tracker: Tracker, first: int, times: int) -> float:
    """Return the CPU of observing one more call, in microseconds."""
    answers = [answer(number) for number in range(first, first + times)]
    started = time.process_time_ns()
    for each in answers:
        tracker.observe(each)
    return (time.process_time_ns() - started) / 1e3 / times


def import_ms(statement: str) -> float:
    """Return the CPU of an import in a new process, in milliseconds."""
    script = (
        f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return 1e3 * float(printed.stdout)


def print_imports() -> None:
    """Print a row for the import of `Tracker`, with the ratio to that of an SDK."""
    costs: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(ROUNDS):
        for name, statement in IMPORTS.items():
            costs[name].append(import_ms(statement))
    sdk, ours = (statistics.median(costs[name]) for name in IMPORTS)
    verdict = "yes" if ours <= MAX_IMPORT_SHARE * sdk else "NO"
    ratio = f"{ours / sdk:5.2f} x of import anthropic, {sdk:.0f} ms"
    print(f"import Tracker  {ours:5.1f} ms  {ratio}  <= {MAX_IMPORT_SHARE:g}: {verdict}")


def print_calls(times: int) -> None:
    """Print a row for each number of calls, with the ratio to the first."""
    trackers: dict[int, Tracker] = {}
    for calls in CALLS:
        trackers[calls] = Tracker()
        for number in range(calls):
            trackers[calls].observe(answer(number))
    costs: dict[int, list[float]] = {calls: [] for calls in CALLS}
    for number in range(ROUNDS):  # the sizes in turn, so that noise hits all of them
        for calls, tracker in trackers.items():
            costs[calls].append(cost_us(tracker, calls + number * times, times))
    least = statistics.median(costs[CALLS[0]])
    for calls in CALLS:
        cost = statistics.median(costs[calls])
        verdict = "yes" if cost <= MAX_RATIO * least else "NO"
        ratio = f"{cost / least:5.2f} x of {CALLS[0]} calls"
        print(f"{calls:6,} calls  {cost:7.1f} us  {ratio}  <= {MAX_RATIO:g}: {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100, help="calls per round (default: 100)")
    options = parser.parse_args()
    print_calls(options.times)
    print_imports()


if __name__ == "__main__":
    main()
