"""Runs a command on a terminal and renders the final screen."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

from .terminal import PATIENCE_S, User

_TOKEN = re.compile(r"\x1b(?:\[([0-9;]*)([A-Za-z])|([78D]))|([\r\n])|([^\x1b\r\n]+)")


class Terminal:
    """`brimline run` in the foreground of its own terminal."""

    def __init__(
        self,
        user: User,
        *arguments: str,
        columns: int = 80,
        env: dict[str, str] | None = None,
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "brimline", "run", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=user.cwd,
            env={**user.env, **(env or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.out = b""  # all output so far

    @property
    def pid(self) -> int:
        return self._process.pid

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def wait_for(self, text: str) -> None:
        """Read until the output contains a text."""
        while text.encode() not in self.out:
            assert self._read(), f"{text!r} never came: {self.out!r}"

    def end(self) -> int:
        """Read to the end; returns the exit code."""
        while self._read():
            pass
        os.close(self._ours)
        return self._process.wait(PATIENCE_S)

    def _read(self) -> bool:
        end = time.monotonic() + PATIENCE_S
        if not select.select([self._ours], [], [], PATIENCE_S)[0] or time.monotonic() > end:
            self._process.kill()
            raise TimeoutError(self.out.decode(errors="replace"))
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # Linux says so when the last process has let go of the terminal
            return False
        self.out += piece
        return bool(piece)

    @property
    def text(self) -> str:
        return self.out.decode()


class Screen:
    """The subset of a terminal that Brimline uses."""

    def __init__(self) -> None:
        self.lines = [""]
        self.row = self.column = 0
        self._saved = (0, 0)

    def write(self, text: str) -> None:
        for code, command, escape, control, words in _TOKEN.findall(text):
            if words:
                self._words(words)
            else:
                self._obey(control or escape or command, code)

    def _words(self, words: str) -> None:
        line = self.lines[self.row]
        after = line[self.column + len(words) :]
        self.lines[self.row] = line[: self.column].ljust(self.column) + words + after
        self.column += len(words)

    def _obey(self, command: str, code: str) -> None:
        match command:
            case "\r":
                self.column = 0
            case "\n" | "D" | "B":
                self.row += 1
                self.lines += [""] * (self.row - len(self.lines) + 1)
            case "A":
                self.row -= 1
            case "7":
                self._saved = self.row, self.column
            case "8":
                self.row, self.column = self._saved
            case "J":
                self.lines[self.row :] = [self.lines[self.row][: self.column]]
            case "m":
                pass
            case _:
                raise AssertionError(f"unexpected escape sequence: {code}{command}")


def screen(text: str) -> list[str]:
    """The final lines as a terminal would show them."""
    display = Screen()
    display.write(text)
    return [line.rstrip() for line in display.lines]
