"""Run an iteration through several context windows, each a session that continues the one before.

The agent is asked for a handoff at the level. When its turn ends, or when it was stopped, the same
command is started again with the handoff as its prompt.
"""

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from brimline.agents.prompt_argument import PromptPlace
from brimline.errors import InvalidRequest
from brimline.run.child import SignalForwarder
from brimline.run.handoff_request import (
    HandoffRequest,
    HandoffService,
    RunSession,
    continuation_text,
    join_draft,
)
from brimline.run.iteration import Iteration, RunDisplay, RunPlan
from brimline.run.result import IterationResult
from brimline.run.rotation import RotationRule, WindowState, reset_time, rotation_percent
from brimline.run.run_record import RunRecord, RunRecordFile
from brimline.run.run_state import RunState
from brimline.run.window_result import HandoffOrigin, WindowResult, make_window, merge_results

WINDOW_VARIABLE = "BRIMLINE_WINDOW"  # set for the child: `brimline handoff` then ends the turn


ORIGINS: dict[HandoffOrigin | None, str] = {
    "agent": "the agent's handoff",
    "draft": "a draft",
    None: "its beginning",
}
RESET_SLACK_S = 2.0  # the provider's clock is another one
PARK_STEP_S = 30.0  # a machine that was suspended looks at the clock again


class WindowWatch:
    """Watches one window: asks for the handoff at the level, and stops a child that writes none.

    `has_progress`: it had made more than one call when the level was reached, with an edit or a
    reply. `problem` says why the window is not rotated, and is reported once. `has_earlier`: it
    began from a handoff, which another one can begin from again.
    """

    def __init__(
        self,
        rule: RotationRule,
        service: HandoffService,
        report: Callable[[str], None],
        on_session: Callable[[RunSession], None],
        problem: str | None = None,
        has_earlier: bool = False,
    ) -> None:
        self._rule, self._service, self._report = rule, service, report
        self._has_earlier = has_earlier
        self._on_session = on_session
        self._problem, self._is_off = problem, False
        self._request: HandoffRequest | None = None
        self.state = WindowState()
        self.session: RunSession | None = None
        self.has_progress = True

    @property
    def document(self) -> str | None:
        """What the agent handed over."""
        return self._request.document if self._request else None

    def step(self, state: RunState) -> bool:
        self._find_session(state)
        if self._is_off:
            return False
        if self._request is not None:
            self._request.poll()
        percent = rotation_percent(state.reading())
        has_document = self.document is not None
        before = self.state
        self.state = before.after(percent, state.call_count, self._rule.rotate_at, has_document)
        if self.state is before:
            return False
        if self.state.phase == "asked" and percent is not None:
            self._ask(percent, state.call_count)
        elif self.state.phase == "stopped" and not has_document:
            self._report("no handoff came in time: continuing from a draft")
        return self.state.phase == "stopped" and self._can_continue()

    def close(self) -> None:
        """Look for the document once more when the child has ended."""
        if self._request is not None:
            self._request.close()
            if self._request.document is not None and self.state.phase == "asked":
                self.state = WindowState("handed over")

    def _find_session(self, state: RunState) -> None:
        if self.session is None and state.agent and state.session_id:
            self.session = RunSession(state.agent, state.session_id)
            self._on_session(self.session)

    def _ask(self, percent: float, calls: int) -> None:
        """Ask for a handoff; if nothing delivers that, the child is stopped."""
        at = f"at {percent:.0f}% of the limit"
        if self._problem is None and self.session is None:
            self._problem = "the session's id is unknown"
        if self._problem is not None or self.session is None:
            self._turn_off(f"{at}, but not rotated: {self._problem}")
            return
        self.has_progress = calls > 1 and self._service.has_progress(self.session)
        self._request = HandoffRequest(self._service, self.session, percent)
        if reason := self._request.delivery.problem:
            self._report(f"{at}: continuing from a draft ({reason})")
            self.state = self.state.without_answer(calls)
        else:
            self._report(f"{at}: asked for a handoff")

    def _can_continue(self) -> bool:
        """Whether there is something to continue from; else the child is not stopped."""
        if self.document is not None or self._has_earlier:
            return True
        if self.session is None or not self._service.draft(self.session):
            self._turn_off("not stopped: there is no transcript to continue from")
        return not self._is_off

    def _turn_off(self, reason: str) -> None:
        self._is_off, self.state = True, WindowState()
        self._report(reason)


class WindowChain:
    """The windows of a run; call `run` for each iteration, within `hold_record`."""

    def __init__(
        self,
        plan: RunPlan,
        place: PromptPlace,
        rule: RotationRule,
        service: HandoffService,
        records: RunRecordFile,
        display: RunDisplay,
        restart: bool = False,
    ) -> None:
        self._restart = restart
        self._plan, self._place, self._rule = plan, place, rule
        self._service, self._records, self._display = service, records, display
        self._resets_at: float | None = None  # of a quota that ended the last window
        self._child_pid: Callable[[], int | None] = lambda: None
        self._record = RunRecord(iteration=1, began_at=time.time())

    @contextmanager
    def hold_record(self) -> Generator[None]:
        """Continue what an interrupted run left, and keep the record from other processes."""
        self._records.open()
        try:
            self._record = self._resumed_record() or self._record
            yield
        finally:
            self._records.close()

    @property
    def first_iteration(self) -> int:
        return min(self._record.iteration, self._plan.iterations)

    def run(self, number: int, signals: SignalForwarder) -> IterationResult:
        """Run an iteration to its end, through as many windows as it takes."""
        if number != self._record.iteration:
            self._record = RunRecord(number, time.time(), count=self._record.count)
        results: list[IterationResult] = []
        while True:
            result, window, document = self._run_window(number, signals)
            results.append(result)
            windows = (*self._record.windows, window)
            if document is None and self._resets_at is None:
                break
            self._record = RunRecord(number, time.time(), windows, self._record.count, document)
            if self._resets_at is not None and not self._park(self._resets_at, signals):
                break
            origin = ORIGINS[window.handoff]
            self._display.report_rotation(f"window {window.window + 1} continues from {origin}")
        self._close_record(result, len(windows), signals.end_signal is not None)
        return merge_results(results, windows)

    def _run_window(
        self, number: int, signals: SignalForwarder
    ) -> tuple[IterationResult, WindowResult, str | None]:
        """Run one window; return its results, and what the next one continues from if any."""
        record = self._record
        self._records.write(record)
        window = len(record.windows) + 1
        refusal = record.count.refusal(self._rule)
        watch = WindowWatch(
            self._rule,
            self._service,
            self._display.report_rotation,
            self._set_session,
            refusal,
            has_earlier=record.document is not None,
        )
        env = {WINDOW_VARIABLE: str(window)}
        iteration = Iteration(self._window_plan(), number, signals, self._display, watch, env)
        self._child_pid = lambda: iteration.child_pid
        result = iteration.run()
        watch.close()
        state = iteration.state
        figures = make_window(
            result, window, state.call_count, state.first_sent, state.compaction_count
        )
        is_over = result.said_it or signals.end_signal is not None
        if result.failed and not is_over and self._rule.parks:
            self._resets_at = reset_time(state.quotas, time.time())
        if self._resets_at is not None:
            return self._parked_window(watch, result, figures)
        if is_over or result.failed or not watch.state.continues:
            return result, figures, None
        document, origin = self._handoff_of(watch)
        if document is None:
            self._display.report_rotation("not continued: there is no handoff and no draft")
            return result, figures, None
        self._record = msgspec.structs.replace(record, count=record.count.after(watch.has_progress))
        return result, msgspec.structs.replace(figures, handoff=origin), document

    def _parked_window(
        self, watch: WindowWatch, result: IterationResult, figures: WindowResult
    ) -> tuple[IterationResult, WindowResult, str | None]:
        """Return what a window that a quota ended continues from; it may be what it began from."""
        document, origin = self._handoff_of(watch)
        if document is None:
            return result, figures, self._record.document
        return result, msgspec.structs.replace(figures, handoff=origin), document

    def _park(self, resets_at: float, signals: SignalForwarder) -> bool:
        """Wait until a quota is reset; False if a signal asked us to end."""
        moment = time.strftime("%H:%M", time.localtime(resets_at))
        self._display.report_rotation(f"the five hours are used up: waiting until {moment}")
        self._records.write(self._record)
        while signals.end_signal is None and (left := resets_at + RESET_SLACK_S - time.time()) > 0:
            signals.wait(min(left, PARK_STEP_S))
        self._resets_at = None
        return signals.end_signal is None

    def _window_plan(self) -> RunPlan:
        """Return the plan with the command of this window."""
        if self._record.document is None:
            return self._plan
        text = continuation_text(
            self._record.document, self._place.prompt, len(self._record.windows) + 1
        )
        command = self._place.with_prompt(text)
        target = msgspec.structs.replace(self._plan.target, command=command)
        return msgspec.structs.replace(self._plan, target=target)

    def _set_session(self, session: RunSession) -> None:
        before = next((w.session_id for w in self._record.windows[-1:]), None)
        if before is not None and before != session.id:
            self._service.continue_session(RunSession(session.agent, before), session)
        pid = self._child_pid()
        self._record = msgspec.structs.replace(self._record, session=session, pid=pid)
        self._records.write(self._record)

    def _handoff_of(self, watch: WindowWatch) -> tuple[str | None, HandoffOrigin]:
        if watch.document is not None or watch.session is None:
            return watch.document, "agent"
        return self._draft_of(watch.session, self._record.document), "draft"

    def _draft_of(self, session: RunSession, earlier: str | None) -> str | None:
        draft = self._service.draft(session)
        return join_draft(draft, earlier) if draft else earlier

    def _close_record(self, result: IterationResult, windows: int, is_interrupted: bool) -> None:
        """Keep the record of a run that was interrupted, or that failed after a rotation."""
        keeps = is_interrupted or (result.failed and windows > 1)
        if keeps and self._records.is_ours:
            self._display.report_rotation(
                f"interrupted in window {windows}: the same command continues from there, "
                "and begins anew with --restart"
            )
        else:
            self._records.remove()

    def _resumed_record(self) -> RunRecord | None:
        """Return where an interrupted run continues: in a new window, from what its last did."""
        record = None if self._restart else self._records.read()
        if record is None or record.iteration > self._plan.iterations:
            return None
        if record.pid is not None and is_running(record.pid, self._plan.target.command):
            raise InvalidRequest(
                f"the agent of the run that was interrupted still runs: pid {record.pid}",
                "Stop it or wait for its end, then try again; --restart begins anew beside it.",
            )
        document = record.document
        if record.session is not None:
            handed_over = self._service.find_document(record.session, record.began_at)
            document = handed_over or self._draft_of(record.session, document)
        if document is None:
            return None
        window = len(record.windows) + 1
        figures = WindowResult(
            window=window,
            session_id=record.session.id if record.session else None,
            calls=0,
            duration_ms=0,
            handoff="draft",
        )
        self._display.report_rotation(
            f"continues the run that was interrupted in window {window} (--restart begins anew)"
        )
        return RunRecord(
            record.iteration, time.time(), (*record.windows, figures), record.count, document
        )


def is_running(pid: int, command: Sequence[str]) -> bool:
    """Whether a process still is a command's child; without /proc, whether there is a process."""
    try:
        os.kill(pid, 0)
        if not Path("/proc/self").exists():
            return True
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return os.fsencode(command[-1]) in words or os.fsencode(os.path.basename(command[0])) in words
