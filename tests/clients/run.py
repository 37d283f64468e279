"""Run a client once against the fake model, with no network but loopback."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import brimline.testing.fake_model as fake
from brimline.testing.fake_model import Billed, Refused, Scenario

from .install import node

TIMEOUT_S = 180.0  # a turn takes 1 to 10 s; a busy machine is slow, not wrong
LOOPBACK_ONLY = ("unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
SOURCES = Path(fake.__file__).parents[3]


@dataclass(frozen=True)
class ClientRun:
    """The files and output of one run of a client, and the calls that it was billed."""

    client: str
    exit_code: int
    stream: Path
    """The client's standard output."""
    stderr: str
    home: Path
    project: Path
    billed: tuple[Billed, ...]
    refused: tuple[Refused, ...]
    transcripts: tuple[Path, ...]
    """The client's own files of this home, oldest first."""
    requests: Path
    """Every request of this run, whole."""

    @property
    def stdout(self) -> str:
        """The stream as text."""
        return self.stream.read_text(encoding="utf-8")

    def of(self, *threads: str) -> tuple[Billed, ...]:
        """The calls billed to these threads."""
        return tuple(call for call in self.billed if call.thread in threads)


@dataclass(frozen=True)
class Place:
    """The scratch folder of a client; a second run in it continues the first."""

    root: Path

    @property
    def home(self) -> Path:
        """The client's HOME."""
        return self.root / "home"

    @property
    def project(self) -> Path:
        """The client's working directory."""
        return self.root / "project"

    @property
    def log(self) -> Path:
        """The billing log of all runs here."""
        return self.root / "billed.jsonl"

    def make(self) -> None:
        """Make the folders."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.project.mkdir(exist_ok=True)

    def next_number(self) -> int:
        """The number of the run to come, from 1."""
        return len(list(self.root.glob("stream-*.jsonl"))) + 1


class ClientTimeout(Exception):
    """A client did not end within its timeout and was killed."""


@functools.cache
def isolation_prefix() -> tuple[str, ...]:
    """The command prefix that allows loopback only; empty if it is not permitted."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return ()
    trial = subprocess.run([*LOOPBACK_ONLY, "true"], capture_output=True, check=False)
    return LOOPBACK_ONLY if trial.returncode == 0 else ()


def run_client(
    client: str,
    command: Sequence[str | Path],
    place: Place,
    scenario: Scenario,
    *,
    environment: Mapping[str, str],
    transcripts: str,
    fill: Mapping[Path, Path] | None = None,
    timeout: float = TIMEOUT_S,
) -> ClientRun:
    """Run a command under a fresh environment; `transcripts` is a pattern below its home.

    `fill` are templates of the client's files, in which {base_url} becomes the address.
    """
    place.make()
    number = place.next_number()
    before = fake.read_records(place.log)
    script = place.root / f"scenario-{number}.json"
    stream, errors = (place.root / f"{name}-{number}" for name in ("stream", "stderr"))
    stream, errors = stream.with_suffix(".jsonl"), errors.with_suffix(".txt")
    requests = place.root / f"requests-{number}.jsonl"
    fake.save(scenario, script)
    server = ["--scenario", script, "--log", place.log, "--requests", requests]
    for template, file in (fill or {}).items():
        server += ["--fill", template, file]
    command_line = _command_line(server, command, _environment(place) | dict(environment))
    code = _run_until_exit(command_line, place.project, stream, errors, timeout)
    records = fake.read_records(place.log)[len(before) :]
    return ClientRun(
        client=client,
        exit_code=code,
        stream=stream,
        stderr=errors.read_text(encoding="utf-8", errors="replace"),
        home=place.home,
        project=place.project,
        billed=tuple(record for record in records if isinstance(record, Billed)),
        refused=tuple(record for record in records if isinstance(record, Refused)),
        transcripts=tuple(sorted(place.home.glob(transcripts), key=_modified)),
        requests=requests,
    )


def _modified(path: Path) -> tuple[float, str]:
    return (path.stat().st_mtime, str(path))


def _environment(place: Place) -> dict[str, str]:
    return {
        "HOME": str(place.home),
        "PATH": f"{node().binary.parent}:/usr/local/bin:/usr/bin:/bin",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


def _command_line(
    options: Sequence[str | Path], command: Sequence[str | Path], environment: Mapping[str, str]
) -> list[str]:
    """Return one command line for fake model and client: both share a network namespace."""
    server = (*isolation_prefix(), sys.executable, "-m", "brimline.testing.fake_model")
    settings = (f"{name}={value}" for name, value in environment.items())
    return [str(word) for word in (*server, *options, "--", "env", "-i", *settings, *command)]


def _run_until_exit(
    command_line: Sequence[str], folder: Path, stream: Path, errors: Path, timeout: float
) -> int:
    """Run until the end or the timeout, and kill the whole process group."""
    # Without coverage, with which the fake model takes 0.2 s longer to start.
    plain = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_PROCESS_")}
    server_environment = plain | {"PYTHONPATH": str(SOURCES)}
    with stream.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            command_line,
            cwd=folder,
            env=server_environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            _wait_for_exit(process, timeout)
            return process.wait(0)
        except subprocess.TimeoutExpired as error:
            raise ClientTimeout(
                f"{command_line[-1]!r}: did not end within {timeout} s, see {errors}"
            ) from error
        finally:
            _kill_group(process)


def _wait_for_exit(process: subprocess.Popen[bytes], timeout: float) -> None:
    """Wait for a process without delay; `wait` with a timeout polls every 50 ms."""
    if not hasattr(os, "pidfd_open"):
        process.wait(timeout)
        return
    handle = os.pidfd_open(process.pid)
    try:
        select.select([handle], [], [], timeout)
    finally:
        os.close(handle)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
