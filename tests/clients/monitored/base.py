"""A real client with our hooks and a real daemon: what all clients share."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from brimline.testing.fake_model import Ramp, Reply, Scenario
from server.running import MAX_WAIT_S, Running

from ..run import ClientRun, Place
from .script import POLL_S, REQUEST_FILE, hand_over, request_daemon

TRIES = 6


class MonitoredClient(ABC):
    """A client in a scratch folder, installed by `brimline setup`, and its daemon.

    `hook_timed_out` is set if a hook was not answered in time: it then had no effect on the agent.
    """

    agent: ClassVar[str]
    starts_slowly: ClassVar[bool] = False
    """Whether a run takes 5 s and more: then most of its scenes are long ones."""
    is_fork: ClassVar[bool] = False
    """Whether it runs the extension of another client, which has the short scenes."""
    endpoint: ClassVar[str] = "/v1/messages"
    """The path of the requests of its conversation."""
    prompt: str = "Go."
    """What the user writes in each turn; Claude Code and Codex alone are given another one."""
    shares_home: ClassVar[bool] = False
    """Whether the daemon has its home, and so watches its files: it writes the last call to them
    after its last hook."""
    window: ClassVar[int] = 200_000
    own_prompt: ClassVar[float] = 0.0
    """The share of the window by which its own prompt is larger than that of others."""
    session_word: ClassVar[str]
    """The session id as its shell writes it."""
    session_key: ClassVar[str] = "session_id"
    """The key of the session id in the first line of its stream."""
    ends_in_headless_runs: ClassVar[bool] = True
    """Whether a hook reports the end of a headless run."""
    subagent_script: ClassVar[tuple[tuple[Reply, ...], tuple[Reply, ...]]] = ((), ())
    """The replies that start a subagent, and those of the subagent; empty if it has none."""
    compaction_ramp: ClassVar[tuple[float, float, float]] = (0.35, 0.145, 0.53)
    """The ramp that leads to a compaction: `start`, `step`, `after`."""
    last_step: ClassVar[int] = 3
    """The last step before the compaction."""
    compaction_steps: ClassVar[int] = 6
    """The number of tool calls after the handoff in the script of a compaction."""
    handoff_counts: ClassVar[tuple[int, ...]] = (1, 1, 1)
    """How often each request after the compaction contains the handoff."""
    level_scale: ClassVar[float] = 1.0
    """How far below 50 and 65 % of the window its limit moves the default levels."""
    levels: ClassVar[tuple[tuple[int, float], ...]] = ((0, 50.0), (0, 65.0), (1, 50.0), (1, 65.0))
    """The cycle and level of each signal before and after the compaction."""

    def __init__(self, root: Path) -> None:
        self._places = (root / str(number) for number in range(TRIES))
        self.start_over()

    def start_over(self) -> None:
        """Start with a new folder and a new daemon."""
        place = next(self._places)
        self.folder, self.hook_timed_out, self.again = place / "client", threading.Event(), False
        self.settings = self.write_settings()
        self.original_files = self.files()
        self.daemon = Running(place / "daemon")
        if self.shares_home:
            self.daemon.home = Place(self.folder).home
        self.daemon.start()
        self.set_up()

    def set_up(self, *more: str) -> None:
        """Run `brimline setup` for the client."""
        done = self.daemon.command("setup", self.agent, *more, HOME=str(Place(self.folder).home))
        assert done.returncode == 0, done.stdout + done.stderr

    def set_stop(self, settings: str) -> None:
        """Restart the daemon with settings of the table `stop`."""
        self.configure(f"[stop]\n{settings}\n")

    def configure(self, settings: str) -> None:
        """Restart the daemon with a file of settings."""
        self.daemon.stop()
        file = self.daemon.home / ".config/brimline/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(settings)
        self.daemon.start()

    def files(self) -> dict[str, str]:
        """The texts of the files in the folder that setup changes, by name."""
        return {file.name: file.read_text() for file in self.settings.parent.iterdir()}

    @abstractmethod
    def write_settings(self) -> Path:
        """Write the user's own file, which setup changes or adds a file next to."""

    @abstractmethod
    def turn(
        self, scenario: Scenario, *arguments: str, again: bool, environment: Mapping[str, str]
    ) -> ClientRun:
        """Run the client once, in a new session or `again` in the one that it had."""

    @staticmethod
    @abstractmethod
    def shell(command: str) -> Reply:
        """A reply that runs a command in the agent's shell."""

    def run_with_autostart(
        self, scenario: Scenario, *arguments: str, **environment: str
    ) -> ClientRun:
        """Run one turn; the agent's hooks and commands use the daemon or start it."""
        again, self.again = self.again, True
        state = {"BRIMLINE_STATE_DIR": str(self.daemon.state), **environment}
        run = self.turn(scenario, *arguments, again=again, environment=state)
        assert run.exit_code == 0, run.stderr
        return run

    def run(self, scenario: Scenario, *arguments: str, **environment: str) -> ClientRun:
        """Run one turn without autostart; the agent may request actions of the daemon."""
        with self._daemon_requests():
            return self.run_with_autostart(
                scenario, *arguments, BRIMLINE_AUTOSTART="0", **environment
            )

    @contextmanager
    def slow_daemon(self, stall_s: float, work_s: float) -> Generator[None]:
        """Suspend the daemon again and again, each time for `stall_s` after `work_s`."""
        over = threading.Event()
        assert self.daemon.process is not None
        pid = self.daemon.process.pid

        def stall() -> None:
            while not over.wait(work_s):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(stall_s)
                os.kill(pid, signal.SIGCONT)

        thread = threading.Thread(target=stall)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(MAX_WAIT_S)

    @contextmanager
    def _daemon_requests(self) -> Generator[None]:
        """Carry out what the agent requests, and watch whether the daemon answers in time."""
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(over,))
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join(MAX_WAIT_S)

    def _watch(self, over: threading.Event) -> None:
        file = Place(self.folder).project / REQUEST_FILE
        actions = {"kill": self.daemon.kill, "start": self.daemon.start}
        while not over.wait(POLL_S):
            if file.exists():
                for word in file.read_text().split():
                    actions[word]()
                file.unlink()
            if (self.daemon.state / "spool").exists():
                self.hook_timed_out.set()

    def ramp(self, start: float, step: float = 0, after: float = 0) -> Ramp:
        """A ramp in shares of the window; the client's own prompt comes on top."""
        start, after = (max(0, share - self.own_prompt) for share in (start, after))
        first, more, compacted = (int(share * self.window) for share in (start, step, after))
        return Ramp(start=first, step=more, after_compaction=compacted)

    def steps(self, count: int, ramp: Ramp, *before: Reply) -> Scenario:
        """`count` tool calls on a ramp, then the end of the turn."""
        return Scenario(main=(*before, *self.loop(count)), ramp=ramp)

    def loop(
        self, count: int, daemon_requests: Mapping[int, str] | None = None
    ) -> tuple[Reply, ...]:
        """`count` tool calls, some with a request for the daemon, and the end of the turn."""
        commands = {
            step: request_daemon(*words.split()) for step, words in (daemon_requests or {}).items()
        }
        calls = (self.shell(commands.get(step, f"echo {step}")) for step in range(count))
        return (*calls, Reply(text="Done."))

    def compact(self, daemon_requests: Mapping[int, str] | None = None) -> ClientRun:
        """The agent hands a document over, fills its context, and continues after a compaction.

        `daemon_requests` are actions of the daemon by step.
        """
        main = (hand_over(self.shell), *self.loop(self.compaction_steps, daemon_requests))
        return self.run(Scenario(main=main, ramp=self.ramp(*self.compaction_ramp)))

    def fork(self, of: ClientRun, scenario: Scenario) -> ClientRun:
        """Run one turn in a fork of a session; not every client can."""
        raise NotImplementedError

    def requests(self, run: ClientRun) -> list[str]:
        """The requests of the conversation and of subagents, in order; a title is neither."""
        return [body for body, thread in self._threads(run) if thread != "title"]

    def main_requests(self, run: ClientRun) -> list[str]:
        """The requests of the main thread alone."""
        return [body for body, thread in self._threads(run) if thread == "main"]

    def after_compaction(self, run: ClientRun) -> list[str]:
        """The requests after the last that asked for a summary: Pi summarises a turn in two."""
        threads = [thread for _, thread in self._threads(run)]
        place = max(n for n, thread in enumerate(threads) if thread == "compaction")
        return [body for body, _ in self._threads(run)[place + 1 :]]

    def _threads(self, run: ClientRun) -> list[tuple[str, str]]:
        return list(zip(self.conversation(run), (one.thread for one in run.billed), strict=True))

    def conversation(self, run: ClientRun) -> list[str]:
        """Every request of the conversation, as it was written."""
        lines = run.requests.read_text().splitlines()
        return [line for line in lines if _path(line).endswith(self.endpoint)]

    def user_texts(self, body: str) -> list[str]:
        """The texts of the user, or of a hook, in a request."""
        messages = [one for one in json.loads(body)["body"]["messages"] if one["role"] == "user"]
        parts = [part for one in messages for part in one["content"]]
        return [part["text"] for part in parts if part["type"] == "text"]

    def session_of(self, run: ClientRun) -> str:
        """The session id in the first line of the stream."""
        return json.loads(run.stdout.splitlines()[0])[self.session_key]

    def timeline(self, run: ClientRun) -> Any:
        """The daemon's timeline of the session."""
        return self.daemon.get(f"/v1/sessions/{self.session_of(run)}/timeline")


def _path(line: str) -> str:
    return json.loads(line)["path"].partition("?")[0]
