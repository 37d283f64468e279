"""What `Tracker.observe` costs in sessions of 100 to 20,000 calls."""

import argparse
import statistics
import time

from brimline.observe.tracker import Tracker

CALLS = (100, 1_000, 6_000, 20_000)
MAX_RATIO = 1.2
ROUNDS = 15


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


def main() -> None:
    """Print a row for each number of calls, with the ratio to the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100, help="calls per round (default: 100)")
    options = parser.parse_args()
    trackers: dict[int, Tracker] = {}
    for calls in CALLS:
        trackers[calls] = Tracker()
        for number in range(calls):
            trackers[calls].observe(answer(number))
    costs: dict[int, list[float]] = {calls: [] for calls in CALLS}
    for number in range(ROUNDS):  # the sizes in turn, so that noise hits all of them
        for calls, tracker in trackers.items():
            costs[calls].append(cost_us(tracker, calls + number * options.times, options.times))
    least = statistics.median(costs[CALLS[0]])
    for calls in CALLS:
        cost = statistics.median(costs[calls])
        verdict = "yes" if cost <= MAX_RATIO * least else "NO"
        ratio = f"{cost / least:5.2f} x of {CALLS[0]} calls"
        print(f"{calls:6,} calls  {cost:7.1f} us  {ratio}  <= {MAX_RATIO:g}: {verdict}")


if __name__ == "__main__":
    main()
