"""A program that looks like Claude Code, for tests that need a composer and no model.

`python client.py LOG [HABIT...]`: each submitted text is a JSON line in LOG. Habits: `deaf`
ignores Enter, `prickly` ignores pastes, `meddled` types a letter into every paste, `nibbles`
loses the first letters, `keeps` does not clear, `low` shows three rows of the input, `busy` works
until Esc, `dialog` shows a question instead, `pi` looks like Pi, `restless` changes its height
all the time, `late` shows no composer at first, `queued` shows queued messages.
"""

import json
import os
import select
import shutil
import signal
import sys
import termios
import textwrap
import time
import tty

LATE_S = 0.2
START, END = "\x1b[200~", "\x1b[201~"


class Client:
    """The submitted texts, the input, and how both are drawn."""

    def __init__(self, log: str, habits: set[str]) -> None:
        self.log, self.habits = log, habits
        self.texts = [f"An earlier line {n}." for n in range(6)]
        self.typed = ""
        self.begun = time.monotonic()

    @property
    def redraw_after_s(self) -> float | None:
        """Seconds to wait for keys before it draws itself again."""
        return 0.002 if self.habits & {"restless", "late"} else None

    def handle_input(self, data: str) -> None:
        while data:
            if data.startswith(START):
                text, _, data = data[len(START) :].partition(END)
                self.paste(text.replace("\r", "\n"))
            else:
                key, data = data[0], data[1:]
                self.press(key)

    def paste(self, text: str) -> None:
        """Insert a text; its line breaks do not submit it."""
        if "prickly" in self.habits:
            return
        text = text[3:] if "nibbles" in self.habits else text
        self.typed += f"x{text}" if "meddled" in self.habits else text

    def press(self, key: str) -> None:
        if key == "\x1b":
            self.habits.discard("busy")
        elif key == "\x7f":
            self.typed = self.typed[:-1]
        elif key != "\r":
            self.typed += key
        elif "deaf" not in self.habits and self.typed:
            self.submit()

    def submit(self) -> None:
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(json.dumps(self.typed) + "\n")
        if self.typed == "/clear" and "keeps" not in self.habits:
            self.texts = []
        self.texts.append(f"❯ {self.typed}")
        self.typed = ""

    def is_late(self) -> bool:
        """Whether its composer is still to come."""
        return "late" in self.habits and time.monotonic() - self.begun < LATE_S

    def visible_input(self, width: int) -> str:
        """The input; with `low`, its last rows."""
        if "low" not in self.habits:
            return self.typed
        return "\n".join(textwrap.wrap(self.typed, width - 4)[-3:])

    def draw(self) -> None:
        if "restless" in self.habits:
            self.texts = self.texts[1:] or [f"An earlier line {n}." for n in range(12)]
        width, height = shutil.get_terminal_size()
        rule = "─" * width
        mark = "" if "pi" in self.habits else "❯\N{NO-BREAK SPACE}"
        typed = (mark + self.visible_input(width)).replace("\n", "\n" + " " * len(mark)).split("\n")
        rows = ["Client v1", *(line for text in self.texts for line in text.split("\n"))]
        rows += ["", "✻ Pondering…", ""] if "busy" in self.habits else [""]
        rows += ["❯ more", "  ctrl+x ctrl+s to send now", ""] if "queued" in self.habits else []
        above = len(rows) + len(typed)
        rows += [rule, *typed, rule, "  accept edits on"]
        if "dialog" in self.habits or self.is_late():
            rows = ["Do you want to proceed?", "❯ 1. Yes", "  2. No"]
        place = above + 1 - max(0, len(rows) - height)
        cursor = f"\x1b[{place};{len(typed[-1]) + 1}H"
        sys.stdout.write("\x1b[2J\x1b[H" + "\r\n".join(rows[-height:]) + cursor)
        sys.stdout.flush()


def main(log: str, *habits: str) -> None:
    """Draw and read keys until it is killed."""
    client = Client(log, set(habits))
    signal.signal(signal.SIGWINCH, lambda number, frame: client.draw())
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        sys.stdout.write("\x1b[?2004h")
        client.draw()
        while True:
            ready, _, _ = select.select([0], [], [], client.redraw_after_s)
            if ready:
                client.handle_input(os.read(0, 1 << 20).decode())
            client.draw()
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


if __name__ == "__main__":
    main(*sys.argv[1:])
