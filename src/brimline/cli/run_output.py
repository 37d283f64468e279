"""What people see of a run: the child's output, the bar below it, and the lines about it."""

import contextlib
import os
import sys
import time

import msgspec

from brimline.cli.context import Context, wants_colour
from brimline.cli.progress_bar import Bar, line, piped, put, same_terminal, status, tell
from brimline.cli.stream_renderer import Nowhere, Outlet, Pretty, Through
from brimline.run.iteration import Plan
from brimline.run.result import Iteration
from brimline.run.run_state import Track
from brimline.terminal.text import strip_control
from brimline.tracker import Reading
from brimline.usage import context_line

SETTLE = 0.15
"""So long, in seconds, a reader in our pipe (`| jq`) has the terminal for itself."""

QUIET = ("none", "json")
"""Ways to render in which nothing of the child is shown, and no bar."""


class Stage:
    """Keeps the child's output, the bar and our own lines out of each other's way."""

    def __init__(self, outlet: Outlet, bar: Bar | None, iterations: int, colour: bool) -> None:
        self.outlet = outlet
        self.colour = colour
        self._bar = bar
        self._iterations = iterations
        self._shared = same_terminal()
        self._piped = piped()
        self._name = ""
        self._began = self._written = 0.0

    @property
    def live(self) -> bool:
        """Whether there is a bar."""
        return self._bar is not None

    @property
    def words(self) -> bool:
        """Whether the stream is shown as text."""
        return isinstance(self.outlet, Pretty)

    def begin(self, iteration: int, hat: str | None) -> None:
        """A run begins; in a loop it is said which."""
        self._began = time.monotonic()
        if self._iterations > 1:
            self._name = f"{strip_control(hat)} {iteration}/{self._iterations}" if hat else ""
            named = f", {strip_control(hat)}" if hat else ""
            self.say(f"Iteration {iteration} of {self._iterations}{named}")

    def output(self, chunk: bytes, agent: str | None) -> None:
        """Show what the child printed, above the bar."""
        if self._bar is not None and (self._shared or self._piped):
            self._bar.erase()
        self._write(chunk, agent)
        self._written = time.monotonic()
        if self._bar is not None and self._shared:
            self._bar.again()

    def _write(self, chunk: bytes, agent: str | None) -> None:
        """Write it; where that cannot be done for another reason than usual, the reason is told."""
        try:
            self.outlet.write(chunk, agent)
        except BrokenPipeError:
            raise
        except OSError as error:
            self.say(f"brimline: cannot write the output: {error.strerror or error}")
            raise BrokenPipeError from error

    def glance(self, track: Track) -> None:
        """Draw the bar, unless somebody may be writing to the terminal what we just gave them."""
        reading = track.reading()
        if self._bar is None or reading is None:
            return
        if self._piped and time.monotonic() - self._written < SETTLE:
            return
        beside = status(reading, track.calls, time.monotonic() - self._began, self._name)
        self._bar.draw(line(reading, beside, self._bar.width(), self.colour))

    def reached(self, level: float, reading: Reading, ends: bool) -> None:
        """Say that a level was reached."""
        now = context_line(reading.sent, reading.window.tokens if reading.window else None)
        then = "; the child is asked to end" if ends else ""
        self.say(f"brimline: level {level:g} reached, {now}{then}")

    def pause(self) -> None:
        """Leave the terminal clean."""
        if self._bar is not None:
            self._bar.erase()

    def end(self) -> None:
        """Show what is left of the output, and take the bar away."""
        self.pause()
        self._flush()
        if self._bar is not None:
            self._bar.forget()

    def _flush(self) -> None:
        try:
            self.outlet.close()
        except OSError:
            self.outlet = Nowhere()

    def say(self, text: str) -> None:
        """Write a line of our own to standard error."""
        self.pause()
        broken = self._shared and not self.outlet.at_start
        tell(("\n" if broken else "") + f"{text}\n")


def stage(context: Context, render: str | None, plan: Plan) -> Stage:
    """The stage for a way to render; by default pretty on a terminal, else as it comes."""
    chosen = render or ("pretty" if os.isatty(1) else "plain")
    dumb = context.places.env.get("TERM", "dumb") == "dumb"
    bar = Bar() if os.isatty(2) and not dumb and chosen not in QUIET else None
    colour = wants_colour(context.settings.colour, context.places.env, sys.stderr)
    return Stage(_outlet(context, chosen), bar, plan.iterations, colour)


def _outlet(context: Context, chosen: str) -> Outlet:
    if chosen in QUIET:
        return Nowhere()
    return Pretty(context.width, context.colour) if chosen == "pretty" else Through()


def print_json(made: Iteration) -> None:
    """Write what a run came to as one line of JSON; nobody may be there to read it."""
    with contextlib.suppress(BrokenPipeError):
        put(1, msgspec.json.encode(made) + b"\n")
