"""What a status line costs an agent, with a daemon and without; what its daemon costs."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from brimline.agents.hook_command import Program
from brimline.hooks.client import client
from brimline.install.launcher import write_launcher
from serving import Daemon, report, serving
from tree import Plan, make, transcripts

CACHE = Path(__file__).parent / ".cache"
CLIENT = Path(client.__file__)
COMPILE = ("cc", "-std=c11", "-O2", "-o")
STDIN = (
    b'{"session_id":"%b","transcript_path":"%b","cwd":"/home/u",'
    b'"model":{"id":"claude-sonnet-4-5","display_name":"Sonnet 4.5"},"version":"2.1.325","cost":'
    b'{"total_cost_usd":1.25,"total_duration_ms":81000},"workspace":{"current_dir":"/home/u",'
    b'"project_dir":"/home/u"},"context_window":{"total_input_tokens":90000,'
    b'"context_window_size":200000,"current_usage":{"input_tokens":10,"output_tokens":400,'
    b'"cache_creation_input_tokens":990,"cache_read_input_tokens":89000},"used_percentage":45}}'
)
LINE_TEXT, BAR = b"45.0% 90K/200K", "█".encode()
"""Every line with figures has this text; only a line of the daemon has a bar."""

NO_FIGURES = b"ctx unknown | daemon off"
"""The line of the Python client without a daemon."""

MS_ABOVE_SHELL = 2.0
OF_PYTHON = 1.3
PATIENCE = 120.0
"""Seconds that a daemon may take to have read a long transcript for the first time."""


@dataclass(frozen=True)
class Scene:
    """A session with a transcript of some size: the input of its status line, and its folder."""

    stdin: Path
    env: dict[str, str]

    @classmethod
    def of(cls, work: Path, cache: Path, size: int) -> "Scene":
        """One with a transcript of this size."""
        tree = cache / f"transcript-{size}"
        make(tree, Plan(size=size, files=1))
        (transcript,) = transcripts(tree)
        stdin = work / f"stdin-{size}"
        stdin.write_bytes(STDIN % (b"%d" % size, bytes(transcript)))
        env = {"HOME": str(work), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "COLUMNS": "120"}
        env |= {
            "TERM": "xterm",
            "CLAUDE_CONFIG_DIR": str(tree),
            "CLAUDE_CODE_SESSION_ID": str(size),
        }
        return cls(stdin, env)


@dataclass
class Row:
    """A command and how long it took, in each scene."""

    name: str
    command: list[str]
    seconds: dict[Path, list[float]] = field(default_factory=dict[Path, list[float]])

    def ms(self, scene: Scene) -> float:
        """The median in milliseconds."""
        return statistics.median(self.seconds[scene.stdin]) * 1000

    def output(self, scene: Scene) -> bytes:
        """What it prints; nothing if it fails."""
        with scene.stdin.open("rb") as stdin:
            done = subprocess.run(
                self.command, stdin=stdin, env=scene.env, capture_output=True, check=False
            )
        return b"" if done.returncode else done.stdout

    def measure(self, scene: Scene) -> None:
        """Run it once, as a process and nothing more."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, str(scene.stdin), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
        begun = time.perf_counter()
        pid = os.posix_spawn(self.command[0], self.command, scene.env, file_actions=actions)
        os.waitpid(pid, 0)
        self.seconds.setdefault(scene.stdin, []).append(time.perf_counter() - begun)


def compile_client(work: Path) -> Path:
    """Compile the hook client as setup does."""
    compiled = work / "compiled"
    sources = sorted(map(str, CLIENT.parent.glob("*.c")))
    subprocess.run([*COMPILE, str(compiled), *sources], check=True)
    return compiled


def launcher(state: Path, socket: Path, compiled: Path | None = None) -> list[str]:
    """The command of a status line as setup installs it."""
    paths = (str(CLIENT), str(socket), str(state / "spool"))
    program = Program(sys.executable, *paths, str(compiled) if compiled else None)
    write_launcher(program)
    return [*program.command("statusline", "claude").words]


class Bench:
    """The rows, each with its reference."""

    def __init__(self, work: Path, daemon: Daemon) -> None:
        compiled = compile_client(work)
        python = [sys.executable, "-I", "-S"]
        none = work / "none"
        self.shell = Row("sh -c true", ["/bin/sh", "-c", "true"])
        self.python = Row("python3 -I -S -c pass", [*python, "-c", "pass"])
        self.asked = Row("brimline, compiled", launcher(work / "a", daemon.socket, compiled))
        here = [self.asked.command[0], "{percent} {sent}/{window}", "here"]
        self.here = Row("brimline-hook TEXT here", here)
        self.script_asked = Row("brimline, Python", launcher(work / "b", daemon.socket))
        self.alone = Row("brimline, compiled, no daemon", launcher(work / "c", none, compiled))
        self.script_alone = Row("brimline, Python, no daemon", launcher(work / "d", none))
        self.ours = [self.asked, self.here, self.script_asked, self.alone, self.script_alone]
        self.rows = [self.shell, self.python, *self.ours]

    def check(self, scene: Scene) -> None:
        """Fail if our line is wrong."""
        end = time.monotonic() + PATIENCE
        while not (answered := BAR in self.asked.output(scene)) and time.monotonic() < end:
            time.sleep(0.1)
        if not answered:
            raise SystemExit("bench: the daemon does not answer")
        for row in self.ours:
            text = NO_FIGURES if row is self.script_alone else LINE_TEXT
            if text not in (printed := row.output(scene)):
                raise SystemExit(f"bench: {row.name} printed {printed!r}, not {text!r}")

    def measure(self, scenes: list[Scene], rounds: int) -> None:
        """Run every row in turn, so that noise hits all of them."""
        for _ in range(rounds):
            for row in self.rows:
                for scene in scenes:
                    row.measure(scene)

    def target(self, row: Row, scene: Scene) -> str:
        """What is asked of a row, and whether it holds."""
        took, shell, python = row.ms(scene), self.shell.ms(scene), self.python.ms(scene)
        if row in (self.asked, self.here, self.alone):
            return f"<= {MS_ABOVE_SHELL} ms above sh: {_holds(took <= shell + MS_ABOVE_SHELL)}"
        if row is self.script_alone:
            return f"<= {OF_PYTHON} x python3: {_holds(took <= OF_PYTHON * python)}"
        return ""


def _holds(held: bool) -> str:
    return "yes" if held else "NO"


def _table(bench: Bench, small: Scene, large: Scene, megabytes: float) -> Iterator[str]:
    heads = f"{'1 KB':>8}{megabytes:6g} MB{'x sh':>8}{'x python3':>11}"
    yield f"{'median ms, with a transcript of':34}{heads}"
    shell, python = bench.shell.ms(small), bench.python.ms(small)
    for row in bench.rows:
        took, long = row.ms(small), row.ms(large)
        figures = f"{took:8.2f}{long:9.2f}{took / shell:8.1f}{took / python:11.2f}"
        yield f"{row.name:34}{figures}  {bench.target(row, small)}".rstrip()


def main() -> None:
    """Print the tables; fail only if something of ours does not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--mb", type=float, default=100, help="size of the long transcript")
    parser.add_argument("--hooks", type=int, default=1000, help="hooks sent to the daemon")
    parser.add_argument("--cache", type=Path, default=CACHE)
    options = parser.parse_args()
    cache = options.cache.resolve()
    with tempfile.TemporaryDirectory(prefix="brimline-") as name:
        work = Path(name)
        sizes = (1_000, int(options.mb * 1_000_000))
        small, large = (Scene.of(work, cache, size) for size in sizes)
        with serving(work) as daemon:
            bench = Bench(work, daemon)
            for scene in (small, large):
                bench.check(scene)
            bench.measure([small, large], options.rounds)
        print(f"{options.rounds} rounds, {os.cpu_count()} cores, Python {sys.version.split()[0]}\n")
        print(*_table(bench, small, large, options.mb), sep="\n")
        print("\nThe daemon:", *report(work, small.stdin.read_bytes(), options.hooks), sep="\n")


if __name__ == "__main__":
    main()
