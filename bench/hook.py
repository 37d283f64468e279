"""What a hook or a status line costs an agent: the clients, with a daemon and without."""

import argparse
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from brimline import hooks
from brimline.hooks.frame import encode_reply

CLIENT = Path(hooks.__file__).with_name("client.py")
COMPILE = ("cc", "-std=c11", "-O2", "-o")
ANSWER = b"ctx 45% 90K/200K\n"
STDIN = (
    b'{"session_id":"5f2c","transcript_path":"/home/u/.claude/projects/p/5f2c.jsonl","cwd":"/home/u",'
    b'"model":{"id":"claude-sonnet-4-5","display_name":"Sonnet 4.5"},"version":"2.1.325","cost":'
    b'{"total_cost_usd":1.25,"total_duration_ms":81000},"context_window":{"total_input_tokens":90000,'
    b'"context_window_size":200000,"current_usage":{"input_tokens":10,"output_tokens":400,'
    b'"cache_creation_input_tokens":990,"cache_read_input_tokens":89000},"used_percentage":45}}'
)
MS_ABOVE_SHELL = 2.0
OF_PYTHON = 1.3


@dataclass
class Row:
    """A command and how long it took."""

    name: str
    command: list[str]
    told: bytes = b""
    seconds: list[float] = field(default_factory=list[float])

    @property
    def ms(self) -> float:
        """The median in milliseconds."""
        return statistics.median(self.seconds) * 1000

    def check(self) -> None:
        """Fail where it does not say what it should."""
        done = subprocess.run(self.command, input=STDIN, capture_output=True, check=True)
        if done.stdout != self.told:
            raise SystemExit(f"bench: {self.name} said {done.stdout!r}, not {self.told!r}")

    def measure(self, stdin: Path) -> None:
        """Run it once, as a process and nothing more."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, str(stdin), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
        begun = time.perf_counter()
        pid = os.posix_spawn(self.command[0], self.command, os.environ, file_actions=actions)
        os.waitpid(pid, 0)
        self.seconds.append(time.perf_counter() - begun)


class Bench:
    """The rows, each with what it is measured against."""

    def __init__(self, work: Path, path: Path) -> None:
        program = work / "brimline-hook"
        subprocess.run([*COMPILE, str(program), str(CLIENT.with_suffix(".c"))], check=True)
        python = [sys.executable, "-I", "-S"]
        compiled = [str(program), sys.executable, str(CLIENT)]
        script = [*python, str(CLIENT)]
        here = ["statusline", "claude", str(path), str(work / "spool")]
        nowhere = ["statusline", "claude", str(work / "none"), str(work / "spool")]
        self.shell = Row("sh -c true", ["/bin/sh", "-c", "true"])
        self.python = Row("python3 -I -S -c pass", [*python, "-c", "pass"])
        self.asked = Row("compiled, daemon", [*compiled, *here], ANSWER)
        self.script_asked = Row("Python, daemon", [*script, *here], ANSWER)
        self.alone = Row("compiled, no daemon", [*compiled, *nowhere], ANSWER)
        self.script_alone = Row("Python, no daemon", [*script, *nowhere], ANSWER)

    @property
    def rows(self) -> list[Row]:
        """All rows in the order of the table."""
        asked = [self.shell, self.asked, self.script_asked]
        return [*asked, self.python, self.alone, self.script_alone]

    def target(self, row: Row) -> str:
        """What is asked of a row, and whether it holds."""
        if row is self.asked:
            most = self.shell.ms + MS_ABOVE_SHELL
            return f"<= {MS_ABOVE_SHELL} ms above sh: {_holds(row.ms <= most)}"
        if row in (self.alone, self.script_alone):
            return f"<= {OF_PYTHON} x python3: {_holds(row.ms <= OF_PYTHON * self.python.ms)}"
        return ""


def _holds(held: bool) -> str:
    return "yes" if held else "NO"


def _table(bench: Bench) -> Iterator[str]:
    yield f"{'':24}{'median ms':>10}{'best ms':>9}{'above sh':>10}{'x python3':>11}  target"
    for row in bench.rows:
        ratio, above = row.ms / bench.python.ms, row.ms - bench.shell.ms
        figures = f"{row.ms:10.2f}{min(row.seconds) * 1000:9.2f}{above:10.2f}{ratio:11.2f}"
        yield f"{row.name:24}{figures}  {bench.target(row)}".rstrip()


@contextmanager
def _daemon(path: Path) -> Generator[None, None, None]:
    """A daemon that answers at once, in a process of its own."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    pid = os.fork()
    if pid == 0:
        _serve(listener)
    listener.close()
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(encode_reply(ANSWER))
            connection.recv(1)


def main() -> None:
    """Print the table; fail only where something does not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=101)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "stdin").write_bytes(STDIN)
        bench = Bench(work, work / "hook.sock")
        with _daemon(work / "hook.sock"):
            for row in bench.rows:
                row.check()
            for _ in range(rounds):
                for row in bench.rows:
                    row.measure(work / "stdin")
    print(f"{rounds} rounds, {os.cpu_count()} cores, Python {sys.version.split()[0]}\n")
    print(*_table(bench), sep="\n")


if __name__ == "__main__":
    main()
