"""How fast `brimline mcp` starts, and how much memory it has then."""

import argparse
import json
import statistics
import subprocess
import sys
import time

import psutil

SERVER = [sys.executable, "-m", "brimline", "mcp"]
REFERENCE = [sys.executable, "-c", "pass"]
MESSAGES = (
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
    {"id": 2, "method": "tools/list"},
)
MS, MEGABYTES = 200, 30


def start_server() -> tuple[float, float]:
    """Return the milliseconds until the tools are listed, and the megabytes then."""
    begun = time.perf_counter()
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in MESSAGES:
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            server.stdout.readline()
        took = 1000 * (time.perf_counter() - begun)
        return took, psutil.Process(server.pid).memory_info().rss / 2**20


def start_reference() -> float:
    begun = time.perf_counter()
    subprocess.run(REFERENCE, check=True)
    return 1000 * (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    starts = [(start_server(), start_reference()) for _ in range(rounds)]
    took = statistics.median(server[0] for server, _ in starts)
    bare = statistics.median(reference for _, reference in starts)
    memory = max(server[1] for server, _ in starts)
    print(f"{'brimline mcp':24}{took:8.0f} ms  <= {MS}: {'yes' if took <= MS else 'NO'}")
    print(f"{'python3 -c pass':24}{bare:8.0f} ms, ratio {took / bare:.1f}")
    print(
        f"{'memory':24}{memory:8.1f} MB  <= {MEGABYTES}: {'yes' if memory <= MEGABYTES else 'NO'}"
    )


if __name__ == "__main__":
    main()
