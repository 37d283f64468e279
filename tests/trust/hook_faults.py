"""Hooks while something is broken: each exits with 0, prints no error and is in time.

`sh -c true` runs in between: what any process takes on this machine at that moment.
"""

import json
import os
import random
import signal
import statistics
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hooks.agent import Agent, ClientResult
from hooks.daemon import Daemon, waits
from server.running import Running
from server.test_daemon import hook_input, status_input

from .hook_clients import client_commands
from .row import RowResult
from .small_disk import MountFailed, fill, make_read_only, small_disk

SEED = 1
CLIENTS_AT_A_TIME = 4
MAX_MS = 250.0
DISK_BYTES = 1 << 20
REFERENCE = "sh -c true"
REFERENCE_EVERY = 10  # runs of a client

DELAYS_S = (0.05, 0.1, 0.15, 0.3)  # of the input; the client waits until 0.19 s
NEVER_S = 1.0  # longer than any client waits

INPUTS = {
    "hook": json.dumps(hook_input("UserPromptSubmit", prompt="Go on.")).encode(),
    "statusline": json.dumps(status_input(40_000)).encode(),
}


class Place(NamedTuple):
    """Where clients find the daemon's socket and the spool; `is_late`: their input comes late."""

    state: Path
    socket: Path
    is_late: bool = False


@contextmanager
def absent(folder: Path) -> Generator[Place]:
    """No daemon runs."""
    folder.mkdir(mode=0o700)
    yield Place(folder, folder / "hook.sock")


@contextmanager
def suspended(folder: Path) -> Generator[Place]:
    """The daemon's process is stopped by SIGSTOP."""
    with _daemon(folder) as daemon:
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGSTOP)
        yield Place(daemon.state, daemon.socket)


@contextmanager
def hanging(folder: Path) -> Generator[Place]:
    """A daemon accepts requests and never answers."""
    with absent(folder) as place, Daemon(place.socket, waits):
        yield place


@contextmanager
def full_disk(folder: Path) -> Generator[Place]:
    """No daemon runs, and the state folder has no space for the spool."""
    with small_disk(folder, DISK_BYTES) as disk, absent(disk / "state") as place:
        fill(disk)
        yield place


@contextmanager
def read_only_home(folder: Path) -> Generator[Place]:
    """No daemon runs, and the state folder cannot be written."""
    with small_disk(folder, DISK_BYTES) as disk, absent(disk / "state") as place:
        make_read_only(disk)
        yield place


@contextmanager
def late_input(folder: Path) -> Generator[Place]:
    """A daemon runs; the input comes late, in two parts, or never."""
    with _daemon(folder) as daemon:
        yield Place(daemon.state, daemon.socket, is_late=True)


@contextmanager
def _daemon(folder: Path) -> Generator[Running]:
    daemon = Running(folder)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.close()


Fault: TypeAlias = Callable[[Path], AbstractContextManager[Place]]

FAULTS: dict[str, Fault] = {
    "no daemon": absent,
    "suspended": suspended,
    "hanging": hanging,
    "full disk": full_disk,
    "read-only home": read_only_home,
    "late input": late_input,
}


class Runs:
    """Runs of clients in one place, several at a time."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._rng = random.Random(SEED)
        self.results: dict[str, list[ClientResult]] = {name: [] for name in client_commands()}
        self.reference: list[ClientResult] = []
        self.printed_by_hooks: list[bytes] = []

    def run(self, number: int) -> None:
        """Run a client with a kind of input, each in turn; now and then the reference."""
        kind = list(INPUTS)[number % len(INPUTS)]
        client = list(self.results)[number // len(INPUTS) % len(self.results)]
        if number % REFERENCE_EVERY == 0:
            nothing = Reference(("/bin/sh", "-c", "true"), self._place.state, self._place.socket)
            self.reference.append(nothing.run(b""))
        agent = Agent(client_commands()[client], self._place.state, self._place.socket)
        is_late = self._place.is_late
        result = self._run_late(agent, kind) if is_late else agent.run(INPUTS[kind], kind)
        self.results[client].append(result)
        if kind == "hook":
            self.printed_by_hooks.append(result.stdout)

    def _run_late(self, agent: Agent, kind: str) -> ClientResult:
        """Run a client whose input is written after a while, as a whole or its second half."""
        reader, writer = os.pipe()
        whole = INPUTS[kind]
        first = self._rng.choice((b"", whole[: len(whole) // 2]))
        delay_s, is_over = self._rng.choice((*DELAYS_S, NEVER_S)), threading.Event()

        def write_rest() -> None:
            if not is_over.wait(delay_s):
                with suppress(BrokenPipeError):
                    os.write(writer, whole[len(first) :])
            os.close(writer)

        os.write(writer, first)
        late = threading.Thread(target=write_rest)
        late.start()
        try:
            return agent.run(reader, kind)
        finally:
            is_over.set()
            late.join()
            os.close(reader)


class Reference(Agent):
    """Runs a command without arguments of ours."""

    def words(self, kind: str) -> list[str]:
        return list(self.command)


def run_hooks(folder: Path, runs: int, max_ms: float = MAX_MS) -> RowResult:
    """Run so many clients, with each fault the same number; 99 % of them must be in time."""
    tried: dict[str, Runs] = {}
    for name, fault in FAULTS.items():
        try:
            with fault(folder / name.replace(" ", "-")) as place:
                tried[name] = Runs(place)
                with ThreadPoolExecutor(CLIENTS_AT_A_TIME) as threads:
                    list(threads.map(tried[name].run, range(-(-runs // len(FAULTS)))))
        except MountFailed as error:
            print(f"{name}: skipped: {error}", flush=True)
        else:
            print(f"{name}: {sum(map(len, tried[name].results.values())):,} runs", flush=True)
    times: dict[str, int | float] = {
        f"{client} client, {name}: p99 ms": p99_ms(results)
        for client in client_commands()
        for name, each in tried.items()
        if (results := each.results[client])
    }
    reference = [result for each in tried.values() for result in each.reference]
    problems = [f"{name}: {text}" for name, each in tried.items() for text in find_problems(each)]
    figures: dict[str, int | float] = {
        "runs": sum(len(results) for each in tried.values() for results in each.results.values()),
        "problems": len(problems),
        f"`{REFERENCE}`: p99 ms": p99_ms(reference),
    }
    return RowResult(figures | times, {"problems": 0} | dict.fromkeys(times, max_ms), problems)


def find_problems(tried: Runs) -> list[str]:
    """What clients must never do, whatever is broken."""
    results = [result for results in tried.results.values() for result in results]
    codes = [f"exit code {result.code}" for result in results if result.code]
    errors = [f"on stderr: {result.stderr!r}" for result in results if result.stderr]
    printed = [f"a hook printed {text!r}" for text in tried.printed_by_hooks if text]
    return codes + errors + printed


def p99_ms(results: Sequence[ClientResult]) -> float:
    times = [1_000 * result.seconds for result in results]
    return round(statistics.quantiles(times, n=100, method="inclusive")[98], 1)
