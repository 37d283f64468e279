"""What the tests of a real client with our hooks and a real daemon have in common."""

from __future__ import annotations

import functools
import json
import re
import shlex
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from brimline.testing.fake_model import Billed, Ramp, Reply, Scenario
from server.running import PATIENCE, Running

from .run import ClientRun, Place

TEXT = re.compile(r"\[brimline\] Your context is at ([0-9.]+)%")
PAUSE = 0.01
TRIES = 6
KNOCK = "knock"
"""The file by which an agent asks for something to be done to the daemon; then it waits."""


class Monitored(ABC):
    """A client in a scratch folder, set up by ourselves, and the daemon that hears it.

    `late` is set where a hook was not answered in time: then it told the agent nothing.
    """

    agent: ClassVar[str]
    endpoint: ClassVar[str]
    """Where its conversation is sent."""

    def __init__(self, root: Path) -> None:
        self._places = (root / str(number) for number in range(TRIES))
        self.begin()

    def begin(self) -> None:
        """Begin anew, with nothing of what was before."""
        place = next(self._places)
        self.folder, self.late = place / "client", threading.Event()
        self.settings = self.write_settings()
        self.own = self.settings.read_text()
        self.daemon = Running(place / "daemon")
        self.daemon.start()
        self.set_up()

    def set_up(self, *more: str) -> None:
        """Set the client up by our own command, or take it out."""
        done = self.daemon.command("setup", self.agent, *more, HOME=str(Place(self.folder).home))
        assert done.returncode == 0, done.stdout + done.stderr

    @abstractmethod
    def write_settings(self) -> Path:
        """The file that setup changes, as the user had it."""

    @abstractmethod
    def go(self, scenario: Scenario, *arguments: str, environment: dict[str, str]) -> ClientRun:
        """Run the client."""

    def run(self, scenario: Scenario, *arguments: str) -> ClientRun:
        """One turn, in which the agent's own commands find the daemon, and may knock at it."""
        state = {"BRIMLINE_STATE_DIR": str(self.daemon.state), "BRIMLINE_AUTOSTART": "0"}
        with self._door():
            run = self.go(scenario, *arguments, environment=state)
        assert run.exit_code == 0, run.stderr
        return run

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

    def asked(self, run: ClientRun) -> list[str]:
        """The requests of the conversation and of subagents, as they were written, in order."""
        lines = run.requests.read_text().splitlines()
        return [line for line in lines if _path(line).endswith(self.endpoint)]

    def timeline(self, run: ClientRun) -> Any:
        """What the daemon knows of the session."""
        return self.daemon.get(f"/v1/sessions/{session_of(run)}/timeline")


def session_of(run: ClientRun) -> str:
    """The session's id, as the first line of the stream tells it."""
    first = json.loads(run.stdout.splitlines()[0])
    return first.get("session_id") or first["thread_id"]


def _path(line: str) -> str:
    return json.loads(line)["path"].partition("?")[0]


TestT = TypeVar("TestT", bound=Callable[..., None])


def in_time(test: TestT) -> TestT:
    """A test that is run again, anew, where it failed because hooks were not answered in time.

    They wait for a tenth of a second and no longer, for which a busy machine may be too slow.
    """

    @functools.wraps(test)
    def run(agent: Monitored, **more: object) -> None:
        for _ in range(TRIES - 1):
            try:
                return test(agent, **more)
            except (AssertionError, ValueError):
                if not agent.late.is_set():
                    raise
                agent.daemon.close()
                agent.begin()
        return test(agent, **more)

    return cast("TestT", run)


def check_removed(client: Monitored, scenario: Scenario) -> None:
    """Taken out again, the file is what it was, and nothing is told any more."""
    assert client.settings.read_text() != client.own
    client.set_up("--remove")
    assert client.settings.read_text() == client.own
    run = client.run(scenario)
    assert told(client.asked(run)[-1]) == []
    assert client.daemon.get("/v1/sessions") == []


def check_no_daemon(client: Monitored, scenario: Scenario) -> None:
    """Nothing is told without the daemon; when it is back it knows what happened."""
    client.daemon.stop()
    run = client.run(scenario)
    assert told(client.asked(run)[-1]) == []
    client.daemon.start()
    client.daemon.until("/v1/sessions", bool)
    assert kinds(client.timeline(run)) == [("level", 0, 65.0)]


def told(body: str) -> list[float]:
    """The levels that Brimline told the agent, as a request holds them, in per cent."""
    return [float(percent) for percent in TEXT.findall(body)]


def kinds(timeline: Any) -> list[tuple[str, int, float]]:
    """What was said of a session, in order: what, in which cycle, at which level."""
    return [(one["kind"], one["cycle"], one["level"]) for one in timeline["signals"]]


def sent(one: Billed) -> int:
    """What a call was billed for."""
    return one.usage.input + one.usage.cache_read + one.usage.cache_write


def steps(shell: Callable[[str], Reply], count: int, ramp: Ramp, *before: Reply) -> Scenario:
    """So many tool calls on a ramp, then the end of the turn."""
    loop = (shell(f"echo {n}") for n in range(count))
    return Scenario(main=(*before, *loop, Reply(text="Done.")), ramp=ramp)


DOCUMENT = "The parser is half done."
BEGIN = " begins -----"
"""What a handoff says, and how the place is headed where it comes back."""


def handing_over(shell: Callable[[str], Reply], *more: str) -> Reply:
    """A step at which the agent writes a handoff and hands it over."""
    return shell(f"echo {DOCUMENT!r} > notes.md && {brimline('handoff', 'notes.md', *more)}")


def brimline(*words: str) -> str:
    """One of our commands, as an agent's shell runs it."""
    return shlex.join([sys.executable, "-m", "brimline", *words])


def knock(*deeds: str) -> str:
    """A command at which the daemon is killed with -9, started, or both, before it ends."""
    return f"echo {' '.join(deeds)} > {KNOCK}.new; mv {KNOCK}.new {KNOCK}; {WAITING}"


WAITING = f"while test -e {KNOCK}; do sleep {PAUSE}; done"
