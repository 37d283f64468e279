"""A tmux server for one test, with the pane of a program in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from brimline.agents.observations import Pane
from brimline.daemon.tmux.pane import TmuxPane
from brimline.daemon.tmux.screen import Composer, read_composer
from system_programs import require_program

PATIENCE_S = 120.0  # generous: a busy machine is slow, not wrong


class Terminal:
    """A tmux server with one window; its folder is short because socket paths are limited."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (100, 30),
    ) -> None:
        self._tmux = require_program("tmux")
        self._place = Path(tempfile.mkdtemp(prefix="brimline-", dir="/tmp"))
        self.socket = str(self._place / "tmux")
        self._env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        self._env |= dict(env or {})
        width, height = (str(number) for number in size)
        words = ("new-session", "-d", "-x", width, "-y", height, "-c", str(folder))
        pane_id = self.tmux("-f", "/dev/null", *words, "-P", "-F", "#{pane_id}", "--", *command)
        self.pane = Pane(self.socket, pane_id.strip())

    def tmux(self, *words: str) -> str:
        """The output of a tmux command."""
        completed = subprocess.run(
            [self._tmux, "-S", self.socket, *words],
            env=self._env,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        return completed.stdout

    @property
    def text(self) -> str:
        """The text in the pane."""
        return self.tmux("capture-pane", "-p", "-t", self.pane.id)

    def press(self, *keys: str) -> None:
        """Press keys by tmux' names."""
        self.tmux("send-keys", "-t", self.pane.id, *keys)

    def type(self, text: str) -> None:
        """Type letters as the user does."""
        self.tmux("send-keys", "-t", self.pane.id, "-l", text)

    def composer(self, agent: str) -> Composer:
        screen = TmuxPane(self.pane, self._place).capture()
        return Composer("unknown") if screen is None else read_composer(agent, screen)

    def until(self, fits: Callable[[], object], why: str = "") -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + PATIENCE_S
        while not fits():
            assert time.monotonic() < end, f"{why}\n{self.text}"
            time.sleep(0.05)

    def soon(self, fits: Callable[[], object], within: float = 5.0) -> bool:
        """Whether a condition holds within some seconds."""
        end = time.monotonic() + within
        while not fits() and time.monotonic() < end:
            time.sleep(0.05)
        return bool(fits())

    def until_composer(self, agent: str, state: str = "empty") -> None:
        """Wait until an agent's composer has a state."""
        self.until(lambda: self.composer(agent).state == state, f"its composer is not {state}")

    def begin(self, wait: Callable[[], None]) -> None:
        """Wait for the first output; a program that shows none is ended."""
        try:
            wait()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the server and everything in it."""
        subprocess.run([self._tmux, "-S", self.socket, "kill-server"], env=self._env,
                       capture_output=True, check=False)  # fmt: skip
        shutil.rmtree(self._place, ignore_errors=True)
