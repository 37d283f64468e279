"""How a session of the story is written down: what it does, one thing after the other."""

import random
from collections.abc import Iterator
from itertools import accumulate, chain

from brimline.demo.steps import Act, HandOver, Role, Say, Tell
from brimline.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Ended,
    SessionSeen,
    Trigger,
)
from brimline.observations import ObservationKind
from brimline.usage import Usage

MINUTE, HOUR = 60.0, 3_600.0

EMPTY = 14_000
"""What a context holds before anything is said."""

TURN = 6
"""After so many calls a turn ends, and the user says something."""

CACHED = frozenset({"claude", "anthropic-sdk"})
"""The agents whose provider bills what is written to its cache."""


class Script:
    """A session's acts. `at` is where the story is; chance is the same in every run."""

    def __init__(self, role: Role, at: float) -> None:
        self.role = role
        self.at = at
        self.model = role.model
        self.acts: list[Act] = []
        self._chance = random.Random(role.id)
        self._sent: dict[str, int] = {}
        self._calls = 0
        seen = SessionSeen(
            at=at,
            session=role.id,
            agent=role.agent,
            project=role.project,
            version=role.version,
            title=role.title,
            records_compactions=True,
        )
        self._tell("started" if role.hooked else "pushed", (seen,))

    def _tell(
        self, what: ObservationKind, events: tuple[AnyEvent, ...] = (), thread: str = MAIN
    ) -> None:
        self.acts.append(Tell(self.at, self.role, what, events, thread))

    def work(self, to: int, calls: int, until: float, thread: str = MAIN) -> None:
        """Make so many calls, evenly till a time, the last of which sends `to` tokens."""
        pace = (until - self.at) / calls
        for sent in list(self._growth(self._sent.get(thread, EMPTY), to, calls)):
            self._call(sent, pace, thread)

    def _growth(self, start: int, to: int, calls: int) -> Iterator[int]:
        """Uneven growth, as tool results make it."""
        steps = [self._chance.uniform(0.2, 1.0) ** 2 for _ in range(calls)]
        whole = sum(steps)
        return (start + round((to - start) * grown / whole) for grown in accumulate(steps))

    def _call(self, sent: int, pace: float, thread: str) -> None:
        usage = self._usage(sent, thread)
        self._calls += 1
        call = Call(at=self.at, id=f"msg_{self._calls:04}", usage=usage, model=self.model,
                    thread=thread)  # fmt: skip
        if self.at >= 0:  # what is seen live is seen to stream
            self._tell("pushed", (streaming(call),), thread)
        self.at += pace / 2
        self._tell(moment(self._calls) if self.role.hooked else "pushed", (call,), thread)
        self.at += pace / 2

    def _usage(self, sent: int, thread: str) -> Usage:
        cached = min(self._sent.get(thread, 0), sent)
        self._sent[thread] = sent
        output = self._chance.randint(90, 900)
        if self.role.agent in CACHED:
            return Usage(min(4, sent - cached), cached, max(0, sent - cached - 4), output)
        return Usage(sent - cached, cached, 0, output)

    def spawn(self, thread: str, model: str, to: int, calls: int, until: float) -> None:
        """Let a subagent work from now on, beside what comes next."""
        own, at, self.model = self.model, self.at, model
        self.work(to, calls, until, thread)
        self.at, self.model = at, own

    def finish(self, thread: str) -> None:
        """A subagent is done."""
        self._tell("pushed", (Ended(at=self.at, thread=thread),))

    def compact(self, lasts: float, left: int, trigger: Trigger = "auto") -> None:
        """The client compacts; after so many seconds so much is left, which a call would tell."""
        before = self._sent[MAIN]
        self.acts.append(Tell(self.at, self.role, "compacting", trigger=trigger))
        self.at += lasts
        made = Compacted(at=self.at, trigger=trigger, before=before, after=left)
        self._tell("compacted", (made,))
        self._sent[MAIN] = left

    def clear(self) -> None:
        """The user clears the conversation."""
        self._tell("cleared", (Cleared(at=self.at),))
        self._sent.pop(MAIN, None)

    def status(self, to: int) -> None:
        """The status line tells of a call that no file has yet."""
        told = Usage(4, self._sent[MAIN], to - self._sent[MAIN] - 4, 0)
        self.acts.append(Tell(self.at, self.role, "status", usage=told))

    def say(self, text: str, urgent: bool = False) -> None:
        """The user sends a message."""
        self.acts.append(Say(self.at, self.role, text, urgent))

    def hand_over(self, text: str, path: str, draft: bool = False) -> None:
        """The agent hands a document over, or we draft one."""
        self.acts.append(HandOver(self.at, self.role, text, path, draft))

    def at_once(self) -> list[Act]:
        """The same as it is told when it is long over: all that happened, and that it ended."""
        told = [act.events for act in self.acts if isinstance(act, Tell)]
        whole = Tell(self.at, self.role, "prompt", tuple(chain.from_iterable(told)))
        return [whole, Tell(self.at, self.role, "ended")]


def moment(number: int) -> ObservationKind:
    """What a hook tells after a call: results of a tool are to be read, or a turn begins."""
    return "prompt" if number % TURN == 0 else "tool"


def streaming(call: Call) -> Call:
    """A call while its reply still comes."""
    usage = call.usage
    begun = Usage(usage.input, usage.cache_read, usage.cache_write, usage.output // 8)
    return Call(at=call.at, id=call.id, usage=begun, model=call.model, thread=call.thread,
                final=False)  # fmt: skip
