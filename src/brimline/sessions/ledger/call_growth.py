"""What each call of a thread added to the prompt of the call before."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Literal, TypeAlias

import msgspec

from brimline.context.events import (
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Edited,
    Rewound,
    Trimmed,
)
from brimline.context.tracker.session_fold import SYNTHETIC
from brimline.sessions.ledger.context_parts import ContextPart

Start: TypeAlias = Literal["continued", "cleared", "compacted", "trimmed", "rewound", "summarised"]
RESTARTED = frozenset[Start]({"cleared", "compacted", "rewound"})


class Step(msgspec.Struct):
    """A call, the parts that came in before it, and the parts of its reply.

    `start` is what happened to the context before it; `rewound_to` is the place of the call whose
    context it continues, None for the empty one.
    """

    call: Call
    start: Start
    inputs: list[ContextPart]
    outputs: list[ContextPart]
    rewound_to: int | None = None


class StepRecorder:
    """Collects the steps of one thread from its events and parts, in the order of its records."""

    def __init__(self, usage_follows_reply: bool = False, resends_reasoning: bool = True) -> None:
        self._usage_follows_reply = usage_follows_reply
        self._resends_reasoning = resends_reasoning
        self.steps: list[Step] = []
        self._places: dict[str, int] = {}
        self._start: Start = "continued"
        self._rewound_to: int | None = None
        self._compacted_at: float | None = None
        self.inputs: list[ContextPart] = []  # came in since the last call
        self._outputs: list[ContextPart] = []  # of a call whose usage is still to come
        self._later_inputs: list[ContextPart] = []  # came in after these
        self._dropped: list[ContextPart] = []  # came in after the last call before a compaction

    @property
    def next_start(self) -> tuple[Start, int | None]:
        """What happened to the context since the last call."""
        return self._start, self._rewound_to

    def add_part(self, part: ContextPart) -> None:
        if part.category == "reasoning" and not self._resends_reasoning:
            return
        if not part.is_output:
            # What the provider itself put in, it put in before the reply ended.
            is_later = self._outputs and part.is_recorded
            (self._later_inputs if is_later else self.inputs).append(part)
        elif self._usage_follows_reply:
            if self._later_inputs:  # the call before has no usage: it was cut off, or is a copy
                self.inputs += self._outputs + self._later_inputs
                self._outputs, self._later_inputs = [], []
            self._outputs.append(part)
        elif self._start in RESTARTED:  # written by an earlier call, and kept
            self.inputs.append(part)
        elif self.steps:
            self.steps[-1].outputs.append(part)

    def mark_summary(self, call: str) -> None:
        """Mark the call that wrote the summary of a compaction: it may have been sent no tools."""
        place = self._places.get(call)
        if place is not None and self.steps[place].start == "continued":
            self.steps[place].start = "summarised"

    def keep_parts(self, parts: Iterable[ContextPart]) -> None:
        """Enter what a compaction left in the context, whoever wrote it.

        The copy of a compaction in a fork has no event: what came in before it is gone too.
        """
        self.inputs, self._outputs, self._later_inputs = list(parts), [], []

    def keep_records(self, first: int) -> None:
        """Enter the parts of all records from the first on, which a compaction left."""
        kept: list[list[ContextPart]] = [self._dropped]
        for step in reversed(self.steps):
            kept[:0] = [step.inputs, step.outputs]
            if step.inputs and step.inputs[0].record < first:
                break
        self.keep_parts(part for parts in kept for part in parts if part.record >= first)

    def add_event(self, event: AnyEvent) -> None:
        match event:
            case Call() if event.model != SYNTHETIC:
                self._add_call(event)
            case Compacted() if not self._is_same(event):
                if event.summary_call is not None:
                    self._drop_call(event.summary_call)
                self._restart("compacted")
                self._compacted_at = event.at
            case Cleared():
                self._restart("cleared")
            case Rewound(to=to) if to is None or to in self._places:
                self._restart("rewound")
                self._rewound_to = None if to is None else self._places[to]
                if to is None and self.steps:  # what comes before any words of the user stays
                    self.inputs += takewhile(_is_not_typed, self.steps[0].inputs)
            case Trimmed():
                self._start = "trimmed" if self._start == "continued" else self._start
            case Edited(call=call):
                if (place := self._places.get(call)) is not None:
                    step = self.steps[place]
                    step.start = "trimmed" if step.start == "continued" else step.start
                elif self._start == "continued":
                    self._start = "trimmed"
            case _:
                pass

    def _add_call(self, call: Call) -> None:
        if not self._resends_reasoning:
            call = _without_reasoning(call)
        place = self._places.get(call.id)
        if place is not None:
            step = self.steps[place]
            if call.final or not step.call.final:
                step.call = call
            return
        self._places[call.id] = len(self.steps)
        self.steps.append(Step(call, self._start, self.inputs, self._outputs, self._rewound_to))
        self._start, self._rewound_to = "continued", None
        self.inputs, self._outputs, self._later_inputs = self._later_inputs, [], []

    def _is_same(self, event: Compacted) -> bool:
        """Whether a compaction is the one before, reported again."""
        return (
            self._start == "compacted" and event.at is not None and event.at == self._compacted_at
        )

    def _drop_call(self, id: str) -> None:
        """Forget the last call: it wrote the summary, and is no part of the context."""
        if self.steps and self.steps[-1].call.id == id:
            self.steps.pop()
            del self._places[id]

    def _restart(self, start: Start) -> None:
        self._start = start
        self._dropped = [*self.inputs, *self._outputs, *self._later_inputs]
        self.inputs, self._outputs, self._later_inputs = [], [], []


def _is_not_typed(part: ContextPart) -> bool:
    return part.category != "user words"


def _without_reasoning(call: Call) -> Call:
    usage = call.usage
    output = usage.output - (usage.reasoning or 0)
    usage = msgspec.structs.replace(usage, output=output, reasoning=0)
    return msgspec.structs.replace(call, usage=usage)
