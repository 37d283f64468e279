"""Run a command once or in a loop, and track each run."""

import time
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

from brimline.context.tracker import Reading
from brimline.run.child import ChildProcess, IoLoop, SignalForwarder
from brimline.run.level_actions import LevelAlarm, LevelCommands, Terminator, level_env
from brimline.run.result import EndReason, IterationResult
from brimline.run.rotation import RotationRule
from brimline.run.run_state import RunState, RunTarget

LIVE_STEP_S = 0.1  # interval of reading and display with a bar or with levels
IDLE_STEP_S = 0.5  # the same without
TRANSCRIPT_POLL_S = 1.0
MAX_BACKLOG_BYTES = 1 << 18


class RunPlan(msgspec.Struct, frozen=True):
    """What to run, how often, and what to do at which level.

    `hats` name the iterations in turn. `levels` are reported; at `stop_at` the child is stopped.
    `rotation` continues a session in a new one before it is compacted.
    """

    target: RunTarget
    iterations: int = 1
    hats: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    stop_at: float | None = None
    on_level: str | None = None
    rotation: RotationRule | None = None

    def hat_of(self, iteration: int) -> str | None:
        return self.hats[(iteration - 1) % len(self.hats)] if self.hats else None


class RunDisplay(Protocol):
    """Shows a run while it runs."""

    @property
    def is_live(self) -> bool:
        """Whether `update_bar` is to be called regularly."""
        ...

    @property
    def renders_stream(self) -> bool:
        """Whether the display depends on the agent: output is then read before it is shown."""
        ...

    def start_iteration(self, iteration: int, hat: str | None) -> None: ...

    def write_output(self, chunk: bytes, agent: str | None) -> None:
        """Show the child's output; `agent` is set if it is that agent's JSON stream.

        Raises BrokenPipeError if the reader has gone.
        """
        ...

    def update_bar(self, state: RunState) -> None: ...

    def report_level(self, level: float, reading: Reading, stops: bool) -> None:
        """Report that a level is reached, and whether the child is stopped for it."""
        ...

    def report_unknown_window(self) -> None:
        """Report that no level could be checked, because the window is unknown."""
        ...

    def report_rotation(self, text: str) -> None:
        """Report a step on the way to the next window, or why there is none."""
        ...

    def hide_bar(self) -> None:
        """Clean up the terminal before this process is suspended."""
        ...

    def end_iteration(self) -> None:
        """Show the rest of the output, and remove the bar."""
        ...


class ContextWatch(Protocol):
    """Watches the context of a child, and ends it in time."""

    def step(self, state: RunState) -> bool:
        """Look at what is known now, a few times per second; True stops the child."""
        ...


class IterationRunner(Protocol):
    """Runs each iteration in its own way."""

    @property
    def first_iteration(self) -> int: ...

    def run(self, number: int, signals: SignalForwarder) -> IterationResult:
        """Run an iteration to its end. Raises CommandFailed if it cannot be started."""
        ...


def iterate(
    plan: RunPlan, display: RunDisplay, runner: IterationRunner | None = None
) -> Iterator[IterationResult]:
    """Run the command as often as planned, each time in a fresh process, or as `runner` does it.

    Ends early after a run in which the agent said the text, that failed, or during which a signal
    asked us to end. A run that was stopped at a level is followed by the next.
    """
    with SignalForwarder(display.hide_bar) as signals:
        for number in range(runner.first_iteration if runner else 1, plan.iterations + 1):
            display.start_iteration(number, plan.hat_of(number))
            if runner is None:
                result = Iteration(plan, number, signals, display).run()
            else:
                result = runner.run(number, signals)
            yield result
            if result.said_it or result.failed or signals.end_signal is not None:
                return


class Iteration:
    """One child process; its output is forwarded at once and read when there is time.

    `state` is what is known of it. `env` are more variables for the child.
    """

    def __init__(
        self,
        plan: RunPlan,
        iteration: int,
        signals: SignalForwarder,
        display: RunDisplay,
        watch: ContextWatch | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._plan, self._iteration, self._hat = plan, iteration, plan.hat_of(iteration)
        self._signals, self._display, self._watch = signals, display, watch
        self._env = env or {}
        self.state = RunState(plan.target, time.time())
        self._alarm = LevelAlarm(plan.levels, plan.stop_at)
        self._commands = LevelCommands(plan.on_level, signals.mask)
        self._terminator: Terminator | None = None
        self._child: ChildProcess | None = None
        self._backlog: list[bytes] = []
        self._backlog_bytes = 0
        self._is_watched = display.is_live or not self._alarm.is_off or watch is not None
        self._step_at = self._poll_transcript_at = 0.0

    def run(self) -> IterationResult:
        """Run the command to its end. Raises CommandFailed if it cannot be started."""
        started = time.monotonic()
        self._poll_transcript_at = started + TRANSCRIPT_POLL_S
        self._child = ChildProcess(self._plan.target.command, self._child_env(), self._signals.mask)
        self._signals.set_child(self._child)
        loop = IoLoop(self._child, self._signals, self)
        code = loop.run()
        self._signals.set_child(None)
        self._finish()
        return self._result(code, (loop.ended_at or time.monotonic()) - started)

    @property
    def child_pid(self) -> int | None:
        return self._child.pid if self._child else None

    def _child_env(self) -> dict[str, str]:
        env = {**self._plan.target.places.env, **self._env}
        env["BRIMLINE_ITERATION"] = str(self._iteration)
        if self._hat is not None:
            env["BRIMLINE_HAT"] = self._hat
        return env

    @property
    def seconds_until_step(self) -> float:
        return max(0.0, self._step_at - time.monotonic())

    def on_output(self, chunk: bytes) -> None:
        """Forward output first and read it later, unless the display depends on it."""
        if self._display.renders_stream:
            stream = self.state.stream
            stream.feed(chunk)
            self._display.write_output(chunk, stream.agent if stream.is_stream else None)
            return
        self._backlog.append(chunk)
        self._backlog_bytes += len(chunk)
        self._display.write_output(chunk, None)
        if self._backlog_bytes > MAX_BACKLOG_BYTES:
            self._read_backlog()

    def _read_backlog(self) -> None:
        if self._backlog:
            self.state.stream.feed(b"".join(self._backlog))
            self._backlog, self._backlog_bytes = [], 0

    def step(self) -> None:
        """Read what came, check levels and update the bar, if it is time."""
        now = time.monotonic()
        if now < self._step_at:
            return
        self._step_at = now + (LIVE_STEP_S if self._is_watched else IDLE_STEP_S)
        self._read_backlog()
        if self._is_watched and now >= self._poll_transcript_at:
            self._poll_transcript_at = now + TRANSCRIPT_POLL_S
            self.state.read_transcript()
        if self._terminator is not None:
            self._terminator.step()
        self._check_levels()
        if self._watch is not None and self._terminator is None and self._watch.step(self.state):
            self._terminate()
        if self._display.is_live:
            self._display.update_bar(self.state)

    def _check_levels(self, has_ended: bool = False) -> None:
        if self._alarm.is_off or (reading := self.state.reading()) is None:
            return
        # Only at the end: Claude Code reports a window in its result.
        if has_ended and reading.sent is not None and reading.percent_raw is None:
            self._display.report_unknown_window()
        level = self._alarm.fire_level(reading)
        if level is not None:
            self._display.report_level(level, reading, stops=False)
            env = {**self._child_env(), **level_env(level, reading), **self._session_env()}
            self._commands.start(env)
        if not has_ended and self._terminator is None and self._alarm.should_stop(reading):
            self._stop_child(reading)

    def _stop_child(self, reading: Reading) -> None:
        level = self._plan.stop_at
        if level is not None and self._terminate():
            self._display.report_level(level, reading, stops=True)

    def _terminate(self) -> bool:
        """Begin to stop the child; False if it has ended."""
        if self._child is None or self._child.poll() is not None:
            return False
        self._terminator = Terminator(self._child)
        self._terminator.step()
        return True

    def _session_env(self) -> dict[str, str]:
        values = {"AGENT": self.state.agent, "SESSION": self.state.session_id}
        return {f"BRIMLINE_{name}": value for name, value in values.items() if value is not None}

    def _finish(self) -> None:
        self._read_backlog()
        self.state.close()
        self._check_levels(has_ended=True)
        self._commands.finish()
        self._display.end_iteration()

    def _result(self, code: int, seconds: float) -> IterationResult:
        ended = self._end_reason()
        code = 0 if ended == "level" else code
        result = self.state.result(seconds, failed=code != 0)
        return IterationResult(
            **msgspec.structs.asdict(result),
            iteration=self._iteration,
            hat=self._hat,
            agent=self.state.agent,
            session_id=self.state.session_id,
            exit_code=code,
            ended=ended,
            said_it=self.state.stream.text_found,
            reading=self.state.reading(),
        )

    def _end_reason(self) -> EndReason:
        if self._signals.end_signal is not None:
            return "signal"
        return "level" if self._terminator is not None else "itself"
