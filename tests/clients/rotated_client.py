"""A real client that `brimline run --rotate-at` leads through several context windows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from brimline.testing.fake_model import Reply, Scenario
from server.running import Running

from . import claude, codex
from .install import require
from .monitored.script import brimline
from .run import ClientRun, Place, run_client

RUN_TIMEOUT_S = 900.0  # ten windows on a busy machine
TASK = "Build the parser."
DELAY_S = 0.4  # a model's calls take longer; the transcript of Codex is read once per second


class RotatedClient:
    """A real client with our hooks, its daemon, and `brimline run` around it."""

    def __init__(self, agent: str, root: Path) -> None:
        self.agent, self.place = agent, Place(root / "client")
        self.place.make()
        for folder in (".claude", ".codex"):
            (self.place.home / folder).mkdir()
        self.daemon = Running(root / "daemon")
        self.daemon.start()
        done = self.daemon.command("setup", agent, HOME=str(self.place.home))
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def window(self) -> int:
        return {"claude": 200_000, "codex": 258_400}[self.agent]

    @property
    def full_share(self) -> float:
        """The share of the window that brings a session to about 80 % of its limit."""
        return {"claude": 0.55, "codex": 0.72}[self.agent]

    def shell(self, command: str, share: float) -> Reply:
        """A reply that runs a command, and whose call fills this share of the window."""
        reply = {"claude": claude.bash, "codex": codex.shell}[self.agent](command)
        return _filling(reply, int(share * self.window))

    def run(
        self,
        main: tuple[Reply, ...],
        *options: str,
        headers: dict[str, str] | None = None,
        **environment: str,
    ) -> ClientRun:
        words = [sys.executable, "-m", "brimline", "run", *options, "--", *self._command()]
        return run_client(
            self.agent,
            words,
            self.place,
            Scenario(main=main, headers=headers or {}),
            environment=self._environment()
            | {"BRIMLINE_STATE_DIR": str(self.daemon.state), "BRIMLINE_AUTOSTART": "0"}
            | environment,
            transcripts=claude.TRANSCRIPTS,
            timeout=RUN_TIMEOUT_S,
        )

    def _command(self) -> list[str]:
        if self.agent == "claude":
            words = ["-p", TASK, *claude.STREAM, "--model", "claude-sonnet-4-5"]
            return [str(require("claude")), *words, "--allowedTools", "Bash,Read"]
        settings = [word for setting in codex.SETTINGS for word in ("-c", setting)]
        words = ["exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust"]
        return [str(require("codex")), *words, *settings, TASK]

    def _environment(self) -> dict[str, str]:
        return claude.ENVIRONMENT if self.agent == "claude" else {"FAKE_KEY": "sk-dummy"}

    def requests(self, run: ClientRun) -> list[str]:
        """The requests of the main thread, in order, as text."""
        path = "/v1/messages" if self.agent == "claude" else "/v1/responses"
        lines = [json.loads(line) for line in run.requests.read_text().splitlines()]
        bodies = [line["body"] for line in lines if line["path"].partition("?")[0] == path]
        return [
            json.dumps(body)
            for body, bill in zip(bodies, run.billed, strict=True)
            if bill.thread == "main"
        ]


def _filling(reply: Reply, tokens: int) -> Reply:
    return msgspec.structs.replace(reply, added=tokens, delay=DELAY_S)


def hand_over_reply(client: RotatedClient, number: int, share: float) -> Reply:
    """A reply with which the agent does as it is asked, once it is."""
    command = f"echo {document(number)!r} > notes.md && {brimline('handoff', 'notes.md')}"
    return client.shell(command, share)


def document(number: int) -> str:
    return f"The parser is done up to part {number}."


def window_replies(client: RotatedClient, number: int, is_last: bool) -> tuple[Reply, ...]:
    """The replies of a window: work, at 80 % a handoff, and the end of the turn."""
    work = tuple(client.shell(f"echo {number} {step}", 0.1) for step in range(2))
    if is_last:
        return (*work, _filling(Reply(text="All done."), 1_000))
    share = client.full_share
    full = tuple(client.shell(f"echo {number} full {step}", share) for step in range(3))
    end = _filling(Reply(text="Handed over."), int(share * client.window))
    return (*work, *full, hand_over_reply(client, number, share), end)


def replies_of(client: RotatedClient, windows: int) -> tuple[Reply, ...]:
    parts = [window_replies(client, n, n == windows) for n in range(1, windows + 1)]
    return tuple(reply for part in parts for reply in part)


def is_first(body: str) -> bool:
    """Whether a request is the first of its session: nothing was run yet."""
    return "tool_result" not in body and "function_call_output" not in body
