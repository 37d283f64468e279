"""Runs `brimline` commands in forks of a process that has imported them.

Under coverage a new Python process takes 0.31 s of CPU time to start, a fork 0.05.
`tests/cli/test_start.py` starts each command as a process of its own.
"""

import functools
import inspect
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from pathlib import Path

from coverage import process_startup

from brimline.agents import agent_names

COMMANDS = (
    "commands", "status", "inspect", "explain", "report", "windows", "baseline", "setup", "doctor",
    "send", "inbox", "handoff",
)  # fmt: skip
MODULES = [
    *(f"brimline.cli.{name}" for name in COMMANDS),
    *(f"brimline.agents.{name}.transcript_source" for name in agent_names()),
    "brimline.redaction.search",
    "preloaded",
]
# Fills a cache of the inspect module: coverage, when it starts, would fill it in each fork (20 ms).
inspect.stack()


def run_brimline(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout: float,
    cwd: Path | None = None,
    stdin: bytes = b"",
    first: Callable[[], None] | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command with exactly these variables.

    It gets a process of its own if `first` is to be called in it or a variable is Python's.
    """
    if first is None and not any(name.startswith("PYTHON") for name in env):
        return _run_fork(arguments, env, timeout, cwd or Path.cwd(), stdin)
    return run_process(arguments, env=env, timeout=timeout, cwd=cwd, stdin=stdin, first=first)


def run_process(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout: float,
    cwd: Path | None = None,
    stdin: bytes = b"",
    first: Callable[[], None] | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command as a new process, in which `first` is called."""
    return subprocess.run(
        [sys.executable, "-m", "brimline", *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=env,
        timeout=timeout,
        check=False,
        preexec_fn=first,
    )


def _run_fork(
    arguments: Sequence[str], env: Mapping[str, str], timeout: float, cwd: Path, stdin: bytes
) -> "subprocess.CompletedProcess[bytes]":
    command = ["brimline", *arguments]
    with tempfile.TemporaryDirectory(prefix="brimline-command-") as folder:
        files = [Path(folder, name) for name in ("in", "out", "err")]
        files[0].write_bytes(stdin)
        process = _fork_server().Process(
            target=_run_in_fork, args=(list(arguments), dict(env), cwd, files)
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, timeout)
        output, errors = (file.read_bytes() for file in files[1:])
        return subprocess.CompletedProcess(command, process.exitcode, output, errors)


@functools.cache
def _fork_server() -> ForkServerContext:
    """Start the process that is forked; coverage is not measured in it but in each fork."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    hidden = {name: os.environ.pop(name) for name in _coverage_variables()}
    try:
        ensure_running()
    finally:
        os.environ.update(hidden)
    return context


def _coverage_variables() -> list[str]:
    return [name for name in os.environ if name.startswith("COVERAGE_PROCESS_")]


def _run_in_fork(arguments: list[str], env: dict[str, str], cwd: Path, files: list[Path]) -> None:
    for number, file in enumerate(files):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = io.TextIOWrapper(io.FileIO(0), "utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")), "utf-8")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w")), "utf-8", "backslashreplace", line_buffering=True
    )
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    sys.argv = ["brimline", *arguments]
    from brimline.cli import main

    measured = process_startup() if _coverage_variables() else None
    try:
        sys.exit(main())
    finally:
        if measured is not None:  # a fork ends without the exit handlers that save it
            measured.stop()
            measured.save()
