"""A real client with our hooks and a real daemon: what is the same for all of them."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from brimline.testing.fake_model import Ramp, Reply, Scenario
from server.running import PATIENCE, Running

from ..run import ClientRun, Place
from .script import KNOCK, PAUSE, handing_over, knock

TRIES = 6
STEPS = 6
"""So many follow the handoff in the script of a compaction."""


class Monitored(ABC):
    """A client in a scratch folder, set up by ourselves, and the daemon that hears it.

    `late` is set where a hook was not answered in time: then it told the agent nothing.
    """

    agent: ClassVar[str]
    endpoint: ClassVar[str] = "/v1/messages"
    """Where its conversation is sent."""
    window: ClassVar[int] = 200_000
    session: ClassVar[str]
    """How its shell names its session."""
    key: ClassVar[str] = "session_id"
    """Where the first line of its stream has the session's id."""
    errand: ClassVar[tuple[tuple[Reply, ...], tuple[Reply, ...]]] = ((), ())
    """How the main thread asks a subagent for something, and what that does, where it has any."""
    filling: ClassVar[tuple[float, float, float]] = (0.35, 0.145, 0.53)
    """How it is filled until it compacts: `start`, `step`, `after` of a ramp."""
    last: ClassVar[int] = 3
    """The last step before the compaction."""
    kills: ClassVar[tuple[int, ...]] = tuple(range(STEPS))
    """The steps of a compaction's script at which the daemon is killed."""
    comes: ClassVar[tuple[int, ...]] = (1, 1, 1)
    """How often each request after the compaction holds the handoff."""
    levels: ClassVar[tuple[tuple[int, float], ...]] = ((0, 50.0), (0, 65.0), (1, 50.0), (1, 65.0))
    """The cycles and the levels that are reached on both sides of the compaction."""

    def __init__(self, root: Path) -> None:
        self._places = (root / str(number) for number in range(TRIES))
        self.begin()

    def begin(self) -> None:
        """Begin anew, with nothing of what was before."""
        place = next(self._places)
        self.folder, self.late, self.again = place / "client", threading.Event(), False
        self.settings = self.write_settings()
        self.own = self.files()
        self.daemon = Running(place / "daemon")
        self.daemon.start()
        self.set_up()

    def set_up(self, *more: str) -> None:
        """Set the client up by our own command, or take it out."""
        done = self.daemon.command("setup", self.agent, *more, HOME=str(Place(self.folder).home))
        assert done.returncode == 0, done.stdout + done.stderr

    def files(self) -> dict[str, str]:
        """The files that setup changes, and those beside them."""
        return {file.name: file.read_text() for file in self.settings.parent.iterdir()}

    @abstractmethod
    def write_settings(self) -> Path:
        """The file that setup changes, or puts ours beside, as the user had it."""

    @abstractmethod
    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run the client once, in a new session or `again` in the one that it had."""

    @staticmethod
    @abstractmethod
    def shell(command: str) -> Reply:
        """A reply that runs a command in the agent's shell."""

    def go(self, scenario: Scenario, *arguments: str, **environment: str) -> ClientRun:
        """One turn, in which the agent's own commands find the daemon, or start it."""
        again, self.again = self.again, True
        state = {"BRIMLINE_STATE_DIR": str(self.daemon.state), **environment}
        run = self.turn(scenario, *arguments, again=again, environment=state)
        assert run.exit_code == 0, run.stderr
        return run

    def run(self, scenario: Scenario, *arguments: str, **environment: str) -> ClientRun:
        """One turn, in which the agent's own commands may knock at the daemon, and start none."""
        with self._door():
            return self.go(scenario, *arguments, BRIMLINE_AUTOSTART="0", **environment)

    @contextmanager
    def _door(self) -> Generator[None]:
        """Do to the daemon what an agent knocks for, and see whether it keeps up."""
        over = threading.Event()
        watching = threading.Thread(target=self._watch, args=(over,))
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join(PATIENCE)

    def _watch(self, over: threading.Event) -> None:
        file = Place(self.folder).project / KNOCK
        deeds = {"kill": self.daemon.kill, "start": self.daemon.start}
        while not over.wait(PAUSE):
            if file.exists():
                for word in file.read_text().split():
                    deeds[word]()
                file.unlink()
            if (self.daemon.state / "spool").exists():
                self.late.set()

    def ramp(self, start: float, step: float = 0, after: float = 0) -> Ramp:
        """A ramp in shares of the window; what the client itself sends comes on top."""
        first, more, anew = (int(share * self.window) for share in (start, step, after))
        return Ramp(start=first, step=more, after_compaction=anew)

    def steps(self, count: int, ramp: Ramp, *before: Reply) -> Scenario:
        """So many tool calls on a ramp, then the end of the turn."""
        return Scenario(main=(*before, *self.loop(count)), ramp=ramp)

    def loop(self, count: int, deeds: Mapping[int, str] | None = None) -> tuple[Reply, ...]:
        """So many tool calls, at some of which the agent knocks, and the end of the turn."""
        knocks = {step: knock(*words.split()) for step, words in (deeds or {}).items()}
        calls = (self.shell(knocks.get(step, f"echo {step}")) for step in range(count))
        return (*calls, Reply(text="Done."))

    def compact(self, deeds: Mapping[int, str] | None = None) -> ClientRun:
        """The agent hands a document over, fills its context, and goes on after a compaction.

        At some steps it knocks.
        """
        main = (handing_over(self.shell), *self.loop(STEPS, deeds))
        return self.run(Scenario(main=main, ramp=self.ramp(*self.filling)))

    def asked(self, run: ClientRun) -> list[str]:
        """The requests of the conversation and of subagents, in order; a title is neither."""
        return [body for body, thread in self._threads(run) if thread != "title"]

    def of_main(self, run: ClientRun) -> list[str]:
        """The requests of the main thread alone."""
        return [body for body, thread in self._threads(run) if thread == "main"]

    def after_compaction(self, run: ClientRun) -> list[str]:
        """The requests after the one that asked for a summary."""
        threads = [thread for _, thread in self._threads(run)]
        (place,) = (n for n, thread in enumerate(threads) if thread == "compaction")
        return [body for body, _ in self._threads(run)[place + 1 :]]

    def _threads(self, run: ClientRun) -> list[tuple[str, str]]:
        return list(zip(self.sent(run), (one.thread for one in run.billed), strict=True))

    def sent(self, run: ClientRun) -> list[str]:
        """Every request of the conversation, as it was written."""
        lines = run.requests.read_text().splitlines()
        return [line for line in lines if _path(line).endswith(self.endpoint)]

    def users(self, body: str) -> list[str]:
        """What the user, or a hook, said in a request."""
        messages = [one for one in json.loads(body)["body"]["messages"] if one["role"] == "user"]
        parts = [part for one in messages for part in one["content"]]
        return [part["text"] for part in parts if part["type"] == "text"]

    def session_of(self, run: ClientRun) -> str:
        """The session's id, as the first line of the stream tells it."""
        return json.loads(run.stdout.splitlines()[0])[self.key]

    def timeline(self, run: ClientRun) -> Any:
        """What the daemon knows of the session."""
        return self.daemon.get(f"/v1/sessions/{self.session_of(run)}/timeline")


def _path(line: str) -> str:
    return json.loads(line)["path"].partition("?")[0]
