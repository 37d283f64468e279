"""Fixtures that run a test with both hook clients."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .agent import Agent, compile_client, compiled_client, python_client


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled client; without a C compiler a test is skipped, or fails under CI=true."""
    if shutil.which(os.environ.get("CC", "cc").split()[0]) is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no C compiler")
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("compiled") / "brimline-hook"
    compile_client(program)
    return program


@pytest.fixture
def folder() -> Iterator[Path]:
    """A state folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="brimline-") as name:
        yield Path(name)


@pytest.fixture(params=["python", "compiled"])
def client(request: pytest.FixtureRequest) -> list[str]:
    """The command of each client."""
    if request.param == "python":
        return python_client()
    return compiled_client(request.getfixturevalue("compiled"))


@pytest.fixture
def agent(client: list[str], folder: Path) -> Agent:
    """An agent with either client and no daemon."""
    return Agent(client, folder, folder / "hook.sock")


@pytest.fixture
def compiled_agent(compiled: Path, folder: Path) -> Agent:
    """An agent with the compiled client, for what the Python client does not do."""
    return Agent(compiled_client(compiled), folder, folder / "hook.sock")


@pytest.fixture
def stopped(folder: Path) -> Iterator[Path]:
    """The socket of a suspended daemon: it accepts connections and never answers."""
    path = folder / "stopped.sock"
    program = (
        "import os, signal, socket, sys\n"
        "listener = socket.socket(socket.AF_UNIX)\n"
        "listener.bind(sys.argv[1])\n"
        "listener.listen()\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(path)])
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    yield path
    process.kill()
    process.wait()
