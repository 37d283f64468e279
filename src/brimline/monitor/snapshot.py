"""An immutable snapshot of a session: what its readings, rows and signals are made from."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from brimline.context.client_report import ClientReport
from brimline.context.events import MAIN, Call
from brimline.context.tracker import Reading, Session, Thread, context_threads, read
from brimline.context.window import ClientSettings, Overrides, is_same_model

TRANSCRIPT = "transcript"
PROGRAM = "program"  # the source of a session whose program reports it
TELEMETRY = "telemetry"  # that of a session whose client reports it by OpenTelemetry


class ReadingInputs(NamedTuple):
    """What the main thread's reading depends on, with the folded session and pending tokens.

    `source` is where its events come from: TRANSCRIPT, PROGRAM or TELEMETRY. `client_call` is a
    call that the client reported and the transcript does not contain yet; `client_most_sent` is the
    most that it reported a call of this model to have sent.
    """

    agent: str
    version: str | None
    settings: ClientSettings
    model: str | None
    cycle: int
    compacting: bool
    source: str
    client_call: Call | None
    client_source: str
    client_window: int | None
    client_most_sent: int


class Snapshot(NamedTuple):
    """A session at a moment: what its files contain, and what its client and hooks reported.

    `pending` are the tokens by thread that came in since the last call, as an estimate.
    `is_active`: a turn was under way since the session is in memory, so that its levels may fire.
    """

    session: Session
    inputs: ReadingInputs
    cleared: bool
    project: str | None
    parent: str | None
    manager_id: str | None
    host: str | None
    ended_at: float | None
    client_report: ClientReport
    pending: Mapping[str, int]
    is_active: bool

    def is_same(self, other: "Snapshot | None") -> bool:
        """Return whether nothing changed; the folded session is then the very same object."""
        return other is not None and self.session is other.session and self[1:] == other[1:]

    def readings(
        self, overrides: Overrides, before: "Snapshot | None", known: Mapping[str, Reading]
    ) -> dict[str, Reading]:
        """Return the reading of every thread; `known` are those of the snapshot `before`."""
        same_inputs = before is not None and self.inputs == before.inputs
        same_settings = before is not None and self.inputs.settings == before.inputs.settings
        readings: dict[str, Reading] = {}
        for name in {MAIN: None, **context_threads(self.session)}:
            unchanged = (
                before is not None
                and name in known
                and (same_inputs or (name != MAIN and same_settings))
                and self.session.threads.get(name) is before.session.threads.get(name)
                and self.pending.get(name) == before.pending.get(name)
                and self.session.sizes == before.session.sizes
            )
            readings[name] = known[name] if unchanged else self._read(name, overrides)
        return readings

    def _read(self, name: str, overrides: Overrides) -> Reading:
        inputs, pending = self.inputs, self.pending.get(name)
        session = msgspec.structs.replace(
            self.session, agent=inputs.agent, version=self.session.version or inputs.version
        )
        thread = self.session.threads.get(name) or Thread(name)
        if name != MAIN:
            return read(session, thread, inputs.source, overrides, inputs.settings, pending=pending)
        model = thread.last.model if thread.last else inputs.model
        if inputs.client_call and not is_same_model(inputs.client_call.model, model):
            model = inputs.client_call.model
        return read(
            session,
            self._main_thread(thread),
            inputs.source if inputs.client_call is None else inputs.client_source,
            overrides,
            inputs.settings,
            model=inputs.model,
            # Without the client's call: after a switch of the model it was sent under the old one.
            most_sent=max(thread.most_sent_by(model), inputs.client_most_sent),
            pending=pending,
        )

    def _main_thread(self, thread: Thread) -> Thread:
        """The main thread in its present cycle, with the call that the client reported."""
        inputs = self.inputs
        thread = msgspec.structs.replace(
            thread,
            # A transcript without the last compaction does not show what is held now.
            current=None if thread.cycle < inputs.cycle else thread.current,
            cycle=inputs.cycle,
            compacting=inputs.compacting or thread.compacting,
            window=thread.window if inputs.client_window is None else inputs.client_window,
        )
        if inputs.client_call is None:
            return thread
        call = msgspec.structs.replace(inputs.client_call, model=inputs.model or thread.model)
        return msgspec.structs.replace(
            thread,
            calls=thread.calls.with_call(call),
            current=call.id,
            compacting=inputs.compacting,
            at=thread.at if call.at is None else call.at,
        )
