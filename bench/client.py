"""What Brimline costs a real agent: the same turn of Claude Code with our hooks, and without."""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the real clients are run as the tests run them

from brimline.testing.fake_model import Ramp, Reply, Scenario  # noqa: E402
from clients.claude import bash, run_claude  # noqa: E402
from server.running import Running  # noqa: E402

MODEL = "claude-sonnet-4-5"
NOTHING = shutil.which("true") or "/bin/true"
WITHOUT, IDLE, WITH = "without Brimline", "hooks that do nothing", "hooks and daemon"
Prepare = Callable[[Running, Path], None]


def turn(calls: int) -> Scenario:
    """A turn of so many tool calls, that stays below the levels: else the agent is told more."""
    tools = (bash(f"echo {number}") for number in range(calls))
    return Scenario(main=(*tools, Reply(text="Done.")), ramp=Ramp(start=10_000, step=1_000))


def with_hooks(daemon: Running, folder: Path) -> None:
    """Set up by our own command, the daemon running."""
    done = daemon.command("setup", "claude", "--no-autostart", HOME=str(folder / "home"))
    if done.returncode:
        raise SystemExit(f"bench: {done.stderr}")


def with_idle_hooks(daemon: Running, folder: Path) -> None:
    """The same hooks, each a process that does nothing: what the client itself takes for them."""
    with_hooks(daemon, folder)
    path = folder / "home/.claude/settings.json"
    settings = json.loads(path.read_text())
    for matchers in settings["hooks"].values():
        for matcher in matchers:
            matcher["hooks"] = [{"type": "command", "command": NOTHING, "args": []}]
    path.write_text(json.dumps(settings))


def without(daemon: Running, folder: Path) -> None:
    """As the client is."""


def seconds(daemon: Running, prepare: Prepare, calls: int) -> float:
    """How long a turn takes in a folder of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "claude")
        (folder / "home/.claude").mkdir(parents=True)
        prepare(daemon, folder)
        begun = time.perf_counter()
        run = run_claude(turn(calls), folder, "Go.", model=MODEL)
        took = time.perf_counter() - begun
    if run.exit_code:
        raise SystemExit(f"bench: the client ended with {run.exit_code}: {run.stderr}")
    return took


def main() -> int:
    """Print them, turn about, so that noise hits all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=10, help="tool calls of a turn")
    options = parser.parse_args()
    cases: dict[str, Prepare] = {
        WITHOUT: without,
        IDLE: with_idle_hooks,
        WITH: with_hooks,
    }
    took: dict[str, list[float]] = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as place:
        daemon = Running(Path(place))
        daemon.start()
        try:
            for number in range(options.rounds + 1):
                for name, prepare in cases.items():
                    spent = seconds(daemon, prepare, options.calls)
                    took[name] += [spent] if number else []  # the first warms up
        finally:
            daemon.close()
    print(f"{options.rounds} rounds of {options.calls} tool calls\n")
    print(f"{'':24}{'median s':>9}{'best s':>9}{'worst s':>9}{'ratio':>8}")
    base = statistics.median(took[WITHOUT])
    for name, all_of in took.items():
        middle = statistics.median(all_of)
        row = f"{name:24}{middle:9.3f}{min(all_of):9.3f}{max(all_of):9.3f}{middle / base:8.2f}"
        print(row)
    noise = 2 * statistics.stdev(took[WITHOUT])
    print(f"\nnoise (two standard deviations of the first): {noise:.3f} s")
    for other in (WITHOUT, IDLE):
        more = statistics.median(took[WITH]) - statistics.median(took[other])
        verdict = "yes" if more <= noise else "NO"
        print(f"slower than {other} by {more:.3f} s, at most the noise: {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
