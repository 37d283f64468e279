"""Runs `brimline` commands in forks of a process that has imported them.

A new Python process imports for 0.2 s of CPU time, a fork for none. Only `make quick` does this, by
setting PRELOAD; all other runs of the tests start real processes.
"""

import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PRELOAD = "BRIMLINE_TEST_PRELOAD"
MODULES = [f"brimline.cli.{name}" for name in (
    "commands", "status", "inspect", "report", "windows", "baseline", "setup", "doctor", "send",
    "inbox", "handoff",
)]  # fmt: skip


def run_brimline(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout: float,
    cwd: Path | None = None,
    stdin: bytes = b"",
    first: Callable[[], None] | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command with exactly these variables; `first` is called in its process."""
    command = [sys.executable, "-m", "brimline", *arguments]
    is_plain = first is None and not any(name.startswith("PYTHON") for name in env)
    if PRELOAD not in os.environ or not is_plain:
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env=env,
            timeout=timeout,
            check=False,
            preexec_fn=first,
        )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    with tempfile.TemporaryDirectory(prefix="brimline-command-") as folder:
        files = [Path(folder, name) for name in ("in", "out", "err")]
        files[0].write_bytes(stdin)
        process = context.Process(
            target=_run_in_fork, args=(list(arguments), dict(env), cwd or Path.cwd(), files)
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, timeout)
        output, errors = (file.read_bytes() for file in files[1:])
        return subprocess.CompletedProcess(command, process.exitcode, output, errors)


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

    sys.exit(main())
