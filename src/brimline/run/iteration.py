"""One run of a command, from its start to what it came to."""

import time

import msgspec

from brimline.run.child import Child
from brimline.run.io_loop import Pump
from brimline.run.level_actions import Alarm, Commands, Ender, figures
from brimline.run.output import Show
from brimline.run.result import Ended, Iteration
from brimline.run.run_state import Job, Track
from brimline.run.signals import Signals
from brimline.tracker import Reading

TICK = 0.1
"""So often, in seconds, what came is looked at and shown while somebody looks on."""

REST = 0.5
"""So often where nobody does."""

FOLLOW = 1.0
"""So often a transcript is looked at."""

BACKLOG = 1 << 18
"""So many bytes may wait to be looked at."""


class Plan(msgspec.Struct, frozen=True):
    """What is run, how often, and what is done at which level.

    `hats` name the iterations in turn. `levels` are told, at `stop_at` the child is ended.
    """

    job: Job
    iterations: int = 1
    hats: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    stop_at: float | None = None
    on_level: str | None = None

    def hat(self, iteration: int) -> str | None:
        """The hat of an iteration, counted from 1."""
        return self.hats[(iteration - 1) % len(self.hats)] if self.hats else None


class Once:
    """Watches over one child: passes its output on at once, and looks at it when there is time."""

    def __init__(self, plan: Plan, iteration: int, signals: Signals, show: Show) -> None:
        self._plan, self._iteration, self._hat = plan, iteration, plan.hat(iteration)
        self._signals, self._show = signals, show
        self._track = Track(plan.job, time.time())
        self._alarm = Alarm(plan.levels, plan.stop_at)
        self._commands = Commands(plan.on_level, signals.mask)
        self._ender: Ender | None = None
        self._child: Child | None = None
        self._backlog: list[bytes] = []
        self._waiting = 0
        self._awake = show.live or not self._alarm.idle
        self._due = self._look_at = 0.0

    def run(self) -> Iteration:
        """Run the command; CommandFailed where it cannot be started."""
        self._show.begin(self._iteration, self._hat)
        began = time.monotonic()
        self._look_at = began + FOLLOW
        self._child = Child(self._plan.job.command, self._env(), self._signals.mask)
        self._signals.adopt(self._child)
        pump = Pump(self._child, self._signals, self)
        code = pump.run()
        self._signals.adopt(None)
        self._finish()
        return self._made(code, (pump.ended or time.monotonic()) - began)

    def _env(self) -> dict[str, str]:
        """The child's environment: ours, and which iteration it is."""
        told = {"BRIMLINE_ITERATION": str(self._iteration)}
        if self._hat is not None:
            told["BRIMLINE_HAT"] = self._hat
        return {**self._plan.job.places.env, **told}

    @property
    def pause(self) -> float:
        """How long until the next step is due."""
        return max(0.0, self._due - time.monotonic())

    def output(self, chunk: bytes) -> None:
        """Pass it on first: what is read of it can wait, unless it decides what is shown."""
        if self._show.words:
            tap = self._track.tap
            tap.feed(chunk)
            self._show.output(chunk, tap.agent if tap.streams else None)
            return
        self._backlog.append(chunk)
        self._waiting += len(chunk)
        self._show.output(chunk, None)
        if self._waiting > BACKLOG:
            self._settle()

    def _settle(self) -> None:
        """Read what waits."""
        if self._backlog:
            self._track.tap.feed(b"".join(self._backlog))
            self._backlog, self._waiting = [], 0

    def step(self) -> None:
        """Look, if it is time."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (TICK if self._awake else REST)
        self._settle()
        if self._awake and now >= self._look_at:
            self._look_at = now + FOLLOW
            self._track.look()
        if self._ender is not None:
            self._ender.step()
        self._sound()
        if self._show.live:
            self._show.glance(self._track)

    def _sound(self, over: bool = False) -> None:
        """Say which level is reached, and end the child where that was asked for."""
        if self._alarm.idle:
            return
        reading = self._track.reading()
        if reading is None:
            return
        level = self._alarm.level(reading)
        if level is not None:
            self._show.reached(level, reading, ends=False)
            self._commands.start({**self._env(), **figures(level, reading), **self._whose()})
        if not over and self._ender is None and self._alarm.stops(reading):
            self._stop(reading)

    def _stop(self, reading: Reading) -> None:
        """End the child gently, unless it has ended meanwhile."""
        child, level = self._child, self._plan.stop_at
        if child is not None and level is not None and child.poll() is None:
            self._show.reached(level, reading, ends=True)
            self._ender = Ender(child)
            self._ender.step()

    def _whose(self) -> dict[str, str]:
        told = {"AGENT": self._track.agent, "SESSION": self._track.session_id}
        return {f"BRIMLINE_{name}": value for name, value in told.items() if value is not None}

    def _finish(self) -> None:
        self._settle()
        self._track.close()
        self._sound(over=True)
        self._commands.finish()
        self._show.end()

    def _made(self, code: int, seconds: float) -> Iteration:
        ended = self._ended()
        code = 0 if ended == "level" else code
        result = self._track.result(seconds, failed=code != 0)
        return Iteration(
            **msgspec.structs.asdict(result),
            iteration=self._iteration,
            hat=self._hat,
            agent=self._track.agent,
            session_id=self._track.session_id,
            exit_code=code,
            ended=ended,
            said_it=self._track.tap.found,
            reading=self._track.reading(),
        )

    def _ended(self) -> Ended:
        if self._signals.ending is not None:
            return "signal"
        return "level" if self._ender is not None else "itself"
