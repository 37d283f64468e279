"""Which signals an observation causes, by the user's rules and what has fired before."""

from collections.abc import Mapping, Sequence

from brimline.context.events import MAIN
from brimline.context.policy.levels import figure_of
from brimline.context.policy.signals import Signal, are_hooks_silent, decide, expect_next_call
from brimline.context.tracker import Reading
from brimline.monitor.fired_signals import MAX_CYCLES
from brimline.monitor.machine_environment import MonitorEnvironment
from brimline.monitor.session_state import SessionState, calls_left_of
from brimline.monitor.session_table import MonitoredSession
from brimline.monitor.signal_writes import SignalWriter
from brimline.monitor.user_rules import Rules
from brimline.store.base import Write


class SignalFinder:
    """Finds the new signals of sessions, and their writes.

    No level fires for a session that had no call since a time: its user may not continue it.
    """

    def __init__(self, rules: Rules, environment: MonitorEnvironment, since: float) -> None:
        self._rules, self._environment, self._since = rules, environment, since

    def find(
        self, session: MonitoredSession, known: Mapping[str, Reading], at: float
    ) -> dict[str, list[Signal]]:
        """Return the signals of each thread whose last reading was another, `known`."""
        names = session.state.last_readings
        return {name: self._find_of(session, name, known.get(name), at) for name in names}

    def _find_of(
        self, session: MonitoredSession, thread: str, known: Reading | None, at: float
    ) -> list[Signal]:
        state, history = session.state, session.signals
        reading = state.last_readings[thread]
        whose = state.id, state.agent, state.model_of(thread)
        levels, of = self._rules.levels_of(*whose), self._rules.measure_of(*whose)
        early = self._rules.early
        expected = expect_next_call(reading) if early else reading
        calls_levels = self._rules.calls_levels
        left = calls_left_of(state, thread, expected) if calls_levels else None
        calls_left = left and left.calls
        fired = history.fired(thread, reading.cycle, figure_of(expected, of), calls_left)
        cleared = thread == MAIN and state.cleared
        is_active = state.is_active or (reading.at or 0.0) >= self._since
        new_signals = [
            each
            for each in decide(
                known, reading, levels, fired, of, cleared, early, calls_levels, calls_left
            )
            if is_active or each.kind != "level"
        ]
        if thread == MAIN:
            new_signals = [
                each
                for each in new_signals
                if each.kind != "compacted" or not state.is_inherited(each.cycle)
            ]
            new_signals += self._source_signals(state, reading, at)
            if levels and reading.sent is not None and figure_of(reading, of) is None:
                new_signals.append(Signal("no window", reading.cycle))
        return history.unfired(thread, new_signals)

    def _source_signals(self, state: SessionState, reading: Reading, at: float) -> list[Signal]:
        """Return signals about sources that disagree, and hooks that report nothing."""
        new_signals: list[Signal] = []
        if state.client.comparison.is_lasting(at):
            new_signals.append(Signal("disagree", reading.cycle))
        if state.calls_without_hook:
            since = self._environment.hooks_installed_at(state.agent, state.project)
            if are_hooks_silent(state.calls_without_hook, state.first_call_at, since):
                new_signals.append(Signal("no data", reading.cycle))
        return new_signals

    def writes(
        self, session: MonitoredSession, found: Mapping[str, Sequence[Signal]], at: float
    ) -> list[Write]:
        """Return the writes for the new signals of each thread."""
        return [
            write
            for thread, signals in found.items()
            for signal in signals
            for write in SignalWriter(session, self._rules, thread, signal, at).writes()
        ]

    def ended_writes(self, session: MonitoredSession, at: float) -> list[Write]:
        """Return the writes when a session has ended."""
        cycles = range(max(0, session.state.cycle - MAX_CYCLES), session.state.cycle + 1)
        ends = (Signal("compacted", cycle) for cycle in cycles)
        writers = [SignalWriter(session, self._rules, MAIN, each, at) for each in ends]
        writes = [write for writer in writers for write in writer.ended_writes()]
        return [*writes, *(writers[-1].end_messages() if session.state.has_just_ended else ())]
