"""Small programs that stand in for agents, and control of them while they run."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from .terminal import PATIENCE_S, User

SESSION = "5e551011-0000-4000-8000-000000000001"
MODEL = "claude-sonnet-4-5"
WINDOW_TOKENS = 200_000  # of MODEL in Claude Code

SUMMARY = r"Duration: \d+ms"


def packed(line: dict[str, Any]) -> str:
    """One line of a JSON stream."""
    return json.dumps(line, separators=(",", ":")) + "\n"


def init() -> str:
    """The first line of Claude Code's stream."""
    record = {"cwd": "/project", "session_id": SESSION, "model": MODEL}
    return packed({"type": "system", "subtype": "init", **record, "claude_code_version": "2.1.325"})


def call(id: str, sent: int, text: str = "Hm.") -> str:
    """A model reply whose prompt had this many tokens."""
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 0, "output_tokens": 1}
    content = [{"type": "text", "text": text}]
    message: dict[str, Any] = {"id": id, "model": MODEL, "role": "assistant", "content": content}
    message["usage"] = {**usage, "cache_read_input_tokens": sent - 4}
    return packed(
        {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": SESSION}
    )


def result(**fields: Any) -> str:
    """The last line of a turn."""
    record: dict[str, Any] = {"is_error": False, "num_turns": 2, "total_cost_usd": 0.5}
    record |= {"usage": {"input_tokens": 4, "cache_creation_input_tokens": 0,
                       "cache_read_input_tokens": 0, "output_tokens": 9}}  # fmt: skip
    return packed({"type": "result", "session_id": SESSION, "result": "Done.", **record, **fields})


def program(user: User, name: str, text: str) -> str:
    """Install a program in the user's folder: a Python script unless it has a shebang."""
    path = user.cwd / name
    head = "" if text.startswith("#!") else f"#!{sys.executable}\n"
    path.write_text(head + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def agent(user: User, *lines: str, then: str = "", name: str = "claude") -> str:
    """A program that prints a stream and then runs `then`."""
    printed = f"import os, signal, sys, time\nos.write(1, {''.join(lines).encode()!r})\n"
    return program(user, name, printed + then)


# An agent that prints plain text and writes a transcript.
WRITES = """
import json, os, sys, time
folder = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "projects", "-p")
os.makedirs(folder, exist_ok=True)
usage = {"input_tokens": 4, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 89996,
         "output_tokens": 7}
message = {"id": "m1", "model": "claude-sonnet-4-5", "role": "assistant", "usage": usage}
now = time.time()
at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
record = {"type": "assistant", "sessionId": "s1", "cwd": os.getcwd(), "version": "2.1.325",
          "isSidechain": False, "uuid": "u", "timestamp": at, "message": message}
with open(os.path.join(folder, "s1.jsonl"), "a") as file:
    file.write(json.dumps(record, separators=(",", ":")) + "\\n")
print("Hello.")
"""

# Lets a child wait for the next step.
WAIT = """
def wait(name):
    while not os.path.exists(name):
        time.sleep(0.01)
def call(id, sent):
    os.write(1, {call!r}.replace("SENT", str(sent - 4)).replace("ID", id).encode())
"""


def stepping(user: User, *steps: str) -> str:
    """An agent that runs one step after the other."""
    line = call("ID", 4).replace('"cache_read_input_tokens":0', '"cache_read_input_tokens":SENT')
    then = WAIT.replace("{call!r}", repr(line)) + "\n".join(steps)
    return agent(user, init(), then=then)


class Running:
    """A command that runs with its output in pipes; it ignores the signal `ignored`."""

    def __init__(self, user: User, *arguments: str, ignored: signal.Signals | None = None) -> None:
        def ignore() -> None:
            if ignored is not None:
                signal.signal(ignored, signal.SIG_IGN)

        self._process = subprocess.Popen(
            [sys.executable, "-m", "brimline", "run", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=user.cwd,
            env=user.env,
            start_new_session=True,
            preexec_fn=ignore,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), data)

    def read(self, size: int) -> bytes:
        """The next output, at most this many bytes, as soon as there is any."""
        assert self._process.stdout is not None
        return os.read(self._process.stdout.fileno(), size)

    def read_all(self, text: bytes) -> bytes:
        """The output until it contains a text."""
        out = b""
        while text not in out and (piece := self.read(65_536)):
            out += piece
        return out

    def send(self, number: int) -> None:
        """Send a signal to the command alone, not to its children."""
        self._process.send_signal(number)

    def close_output(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()

    def end(self) -> tuple[int, bytes, str]:
        """Wait for the exit; returns the exit code and the remaining output."""
        if self._process.stdout is not None and self._process.stdout.closed:
            self._process.stdout = None
        try:
            out, err = self._process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            raise
        return self._process.returncode, out or b"", err.decode()


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
