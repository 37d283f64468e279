"""What Brimline costs a real agent: the same turn of each client with our hooks, and without."""

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the real clients are run as the tests run them

from brimline.agents import get_agent  # noqa: E402
from brimline.agents.transcripts.source import Places  # noqa: E402
from brimline.testing.fake_model import Ramp, Reply, Scenario  # noqa: E402
from clients import claude, codex, gemini, opencode, pi  # noqa: E402
from clients.monitored import Opencode, Pi  # noqa: E402
from clients.run import ClientRun, Place  # noqa: E402
from server.running import Running  # noqa: E402

REAL = (2.1, 3.3, 3.9, 4.5, 5.3, 6.6, 8.3, 11.1, 17.9)
"""Seconds that a real model takes for a reply: the deciles of 3,044 of real sessions."""

WARMING = 2
"""The first turns: a client fills its caches."""

RAMP = Ramp(start=10_000, step=1_000)
"""Below the levels: an agent that gets a message makes another turn."""

WITHOUT, AGAIN = "without Brimline", "without it, once more"
IDLE, WITH = "hooks that do nothing", "with Brimline"
NOTHING = shutil.which("true") or "/bin/true"
EMPTY = {one.agent: one.user_extension for one in (Pi, Opencode)}
"""Extensions that do nothing."""

Turn: TypeAlias = Callable[[Scenario, Path], ClientRun]


def nothing(place: Place) -> None:
    """A client that needs none of it."""


@dataclass(frozen=True)
class Client:
    """How a client is run, how its model asks for a shell command, and what it has before."""

    run: Turn
    shell: Callable[[str], Reply]
    prepare: Callable[[Place], object] = nothing


CLIENTS = {
    "claude": Client(
        lambda scene, root: claude.run_claude(scene, root, "Go.", model="claude-sonnet-4-5"),
        claude.bash,
    ),
    "codex": Client(
        lambda scene, root: codex.run_codex(scene, root, "Go.", hooks=True), codex.shell
    ),
    "gemini": Client(
        lambda scene, root: gemini.run_gemini(scene, root, "Go."),
        gemini.shell,
        lambda place: gemini.write_settings(place, {}),
    ),
    "pi": Client(lambda scene, root: pi.run_pi(scene, root, "Go."), pi.bash),
    "opencode": Client(
        lambda scene, root: opencode.run_opencode(scene, root, "Go."),
        opencode.bash,
        opencode.write_plugin_lock,
    ),
}


@dataclass
class Case:
    """A client in a folder of its own, in which it is run again and again."""

    name: str
    client: Client
    root: Path
    seconds: list[float] = field(default_factory=list[float])

    @property
    def median(self) -> float:
        """The median time in seconds."""
        return statistics.median(self.seconds)

    def turn(self, scene: Scenario) -> None:
        """Run it once."""
        begun = time.perf_counter()
        run = self.client.run(scene, self.root)
        self.seconds.append(time.perf_counter() - begun)
        if run.exit_code:
            raise SystemExit(f"bench: the client ended with {run.exit_code}: {run.stderr}")


def cases(agent: str, daemon: Running, work: Path) -> Iterator[Case]:
    """As the client is, twice, with hooks that do nothing, and with ours."""
    recipe = get_agent(agent).install_spec
    for name in (WITHOUT, AGAIN, IDLE, WITH):
        case = Case(name, CLIENTS[agent], work / f"{agent}-{name}")
        home = Place(case.root).home
        file = recipe.user_file(Places(home, {}))
        file.parent.mkdir(parents=True)
        case.client.prepare(Place(case.root))
        if name in (IDLE, WITH):
            done = daemon.command("setup", agent, "--no-autostart", HOME=str(home))
            if done.returncode:
                raise SystemExit(f"bench: {done.stderr}")
        if name == IDLE:
            file.write_text(EMPTY.get(agent) or idle(file.read_text()))
        yield case


def idle(settings: str) -> str:
    """The same hooks, each a process that does nothing: what the client itself takes for them."""
    document: dict[str, Any] = json.loads(settings)
    for groups in document["hooks"].values():
        for group in groups:
            group["hooks"] = [one | {"command": NOTHING} for one in group["hooks"]]
    return json.dumps(document)


def scene(client: Client, calls: int, pace: random.Random | None) -> Scenario:
    """A turn of `calls` tool calls; each reply comes at once, or at a real model's pace."""
    tools = (client.shell(f"echo {number}") for number in range(calls))
    replies = (*tools, Reply(text="Done."))
    if pace is not None:
        replies = tuple(
            msgspec.structs.replace(reply, delay=pace.choice(REAL)) for reply in replies
        )
    return Scenario(main=replies, ramp=RAMP)


def slower(one: Case, other: Case) -> list[float]:
    """By how many seconds one was slower than another, in each round."""
    return [ours - theirs for ours, theirs in zip(one.seconds, other.seconds, strict=True)]


def report(agent: str, measured: list[Case], calls: int) -> Iterator[str]:
    """The table of a client, and whether ours is slower by more than the noise.

    That is how much the same turn differs from itself, with the same replies.
    """
    yield f"\n{agent:24}{'median s':>9}{'best s':>9}{'worst s':>9}{'ratio':>8}"
    base, again, idle, ours = measured
    for case in measured:
        middle, all_of = case.median, case.seconds
        yield (
            f"{case.name:24}{middle:9.3f}{min(all_of):9.3f}{max(all_of):9.3f}"
            f"{middle / base.median:8.2f}"
        )
    noise = 2 * statistics.stdev(slower(again, base))
    yield f"noise, two standard deviations of what two without it differ by: {noise:.3f} s"
    for other in (base, idle):
        more = statistics.median(slower(ours, other))
        verdict = "yes" if more <= noise else "NO"
        yield (
            f"slower than {other.name} by {more:.3f} s, {1000 * more / calls:.1f} ms a tool call, "
            f"at most the noise: {verdict}"
        )


def main() -> int:
    """Print them, turn about, so that noise hits all; the replies of a round are the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=", ".join(CLIENTS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=10, help="tool calls of a turn")
    parser.add_argument("--real", action="store_true", help="replies that take a real model's time")
    options = parser.parse_args()
    if unknown := set(options.agents) - set(CLIENTS):
        parser.error(f"no such agent: {', '.join(sorted(unknown))}")
    pace = random.Random(1) if options.real else None
    print(f"{options.rounds} rounds of {options.calls} tool calls")
    with tempfile.TemporaryDirectory() as place:
        daemon = Running(Path(place))
        daemon.start()
        try:
            for agent in options.agents or CLIENTS:
                measured = list(cases(agent, daemon, Path(place)))
                for number in range(WARMING + options.rounds):
                    asked = scene(
                        CLIENTS[agent], options.calls, pace if number >= WARMING else None
                    )
                    for case in measured:
                        case.turn(asked)
                for case in measured:
                    del case.seconds[:WARMING]
                print(*report(agent, measured, options.calls), sep="\n", flush=True)
        finally:
            daemon.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
