"""A real tmux server of a test's own, and the pane of a program that runs in it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from brimline.observations import Pane
from brimline.tmux.composers import Composer, read_composer
from brimline.tmux.pane import TmuxPane

PATIENCE = 120.0  # generous: a busy machine is slow, not wrong

INSTALLERS = (
    ("apt-get", "install", "-y", "--no-install-recommends", "tmux"),
    ("dnf", "install", "-y", "tmux"),
    ("apk", "add", "tmux"),
    ("brew", "install", "tmux"),
)


def require_tmux() -> str:
    """tmux, installed if need be and we may; without it a test is skipped, or fails in CI."""
    with (Path(tempfile.gettempdir()) / f"brimline-tmux-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if shutil.which("tmux") is None:
            _install()
    found = shutil.which("tmux")
    if found is not None:
        return found
    why = "install tmux with the system's package manager"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def _install() -> None:
    """Try what the machine has; a package manager that fails leaves it to the user."""
    for command in INSTALLERS:
        may = os.geteuid() == 0 or command[0] == "brew"
        if may and shutil.which(command[0]):
            subprocess.run(command, capture_output=True, check=False)
            return


class Terminal:
    """A tmux server with one window; its folder is short, for a socket's path has an end."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (100, 30),
    ) -> None:
        self._tmux = require_tmux()
        self._place = Path(tempfile.mkdtemp(prefix="brimline-", dir="/tmp"))
        self.socket = str(self._place / "tmux")
        self._env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        self._env |= dict(env or {})
        width, height = (str(number) for number in size)
        words = ("new-session", "-d", "-x", width, "-y", height, "-c", str(folder))
        made = self.tmux("-f", "/dev/null", *words, "-P", "-F", "#{pane_id}", "--", *command)
        self.pane = Pane(self.socket, made.strip())

    def tmux(self, *words: str) -> str:
        """What a command of tmux prints."""
        done = subprocess.run(
            [self._tmux, "-S", self.socket, *words],
            env=self._env,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return done.stdout

    @property
    def shown(self) -> str:
        """What the pane shows."""
        return self.tmux("capture-pane", "-p", "-t", self.pane.id)

    def press(self, *keys: str) -> None:
        """Press keys, by tmux' names."""
        self.tmux("send-keys", "-t", self.pane.id, *keys)

    def type(self, text: str) -> None:
        """Type letters, as the user does."""
        self.tmux("send-keys", "-t", self.pane.id, "-l", text)

    def composer(self, agent: str) -> Composer:
        """What an agent's composer holds."""
        screen = TmuxPane(self.pane, self._place).capture()
        return Composer("unknown") if screen is None else read_composer(agent, screen)

    def until(self, fits: Callable[[], object], why: str = "") -> None:
        """Wait until something holds."""
        end = time.monotonic() + PATIENCE
        while not fits():
            assert time.monotonic() < end, f"{why}\n{self.shown}"
            time.sleep(0.05)

    def soon(self, fits: Callable[[], object], within: float = 5.0) -> bool:
        """Whether something holds within so many seconds."""
        end = time.monotonic() + within
        while not fits() and time.monotonic() < end:
            time.sleep(0.05)
        return bool(fits())

    def until_composer(self, agent: str, state: str = "empty") -> None:
        """Wait until an agent's composer is so."""
        self.until(lambda: self.composer(agent).state == state, f"its composer is not {state}")

    def begin(self, wait: Callable[[], None]) -> None:
        """Wait for the first picture; a program that shows none leaves nothing running."""
        try:
            wait()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the server and all in it."""
        subprocess.run([self._tmux, "-S", self.socket, "kill-server"], env=self._env,
                       capture_output=True, check=False)  # fmt: skip
        shutil.rmtree(self._place, ignore_errors=True)
