"""A real daemon in a scratch folder, and the hook client that talks to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from brimline.agents.hook_adapter import HookRequest, RequestKind
from brimline.daemon.hook_requests.hook_socket import ACK
from brimline.files.socket_path import socket_path
from brimline.hooks.client import client
from brimline.testing.hook_frames import encode_request, parse_reply
from preloaded import run_brimline
from reserved_port import ReservedPort

MAX_TRIES = 5
MAX_WAIT_S = 60.0  # generous: a busy machine is slow, not wrong


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the daemon's Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("brimline", timeout=MAX_WAIT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(MAX_WAIT_S)
        self.sock.connect(str(self._path))


class Running:
    """A daemon that can be stopped, killed and started again on the same state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self._reserved_port = ReservedPort()
        self.port = self._reserved_port.number
        self.process: subprocess.Popen[str] | None = None
        self.link = ""
        self.boot_log = ""

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the daemon and of the commands that ask it."""
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "BRIMLINE_STATE_DIR": str(self.state),
            "LANG": "C.UTF-8",
        }

    @property
    def socket(self) -> Path:
        return socket_path(self.state, os.getuid())

    def start(self, folder: Path | None = None) -> None:
        """Start the daemon in a folder and wait until it serves."""
        words = [sys.executable, "-m", "brimline", "serve", "--port", str(self.port)]
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            self._read_boot_log(self.process)
        except BaseException:  # also a timeout of the test
            self.close()
            raise

    def read_log_until(self, text: str) -> str:
        """Return what the daemon prints up to the line with a text."""
        assert self.process is not None
        assert self.process.stdout is not None
        log = ""
        while text not in log:
            line = self.process.stdout.readline()
            assert line, log
            log += line
        return log

    def _read_boot_log(self, process: subprocess.Popen[str]) -> None:
        self.boot_log = self.read_log_until("is running at")
        assert process.stdout is not None
        process.stdout.readline()  # how to open the link
        self.link = process.stdout.readline().strip()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self._wait()

    def wait_for_exit(self) -> int:
        """Wait until the daemon ends by itself; return its exit code."""
        return self._wait()

    def stop(self) -> int:
        """Send SIGTERM, as a service manager does; return the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        assert self.process is not None
        code = self.process.wait(MAX_WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code

    def close(self) -> None:
        """Kill the daemon if it still runs."""
        if self.process is not None:
            self.kill()

    def hook_command(self, kind: str, agent: str = "claude") -> list[str]:
        script = str(Path(client.__file__))
        return [sys.executable, "-I", "-S", script, kind, agent, str(self.socket),
                str(self.state / "spool")]  # fmt: skip

    def hook(self, hook_input: dict[str, Any], kind: RequestKind = "hook", **env: str) -> str:
        """Send a hook's input without a time limit, acknowledge the reply and return it."""
        return self.ask(json.dumps(hook_input).encode(), kind, env=env)

    def ask(
        self,
        body: bytes,
        kind: RequestKind = "hook",
        passed_on: bool = True,
        env: dict[str, str] | None = None,
        agent: str = "claude",
        pid: int = 1,
    ) -> str:
        """Send any body as a hook; without `passed_on` the hook dies before it acknowledges."""
        id = f"{time.time_ns()}-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(MAX_WAIT_S)
            connection.connect(str(self.socket))
            connection.sendall(encode_request(HookRequest(kind, agent, id, pid, env or {}, body)))
            data = b""
            while (text := parse_reply(data)) is None:
                got = connection.recv(65_536)
                assert got, "the daemon hung up"
                data += got
            if passed_on:
                with suppress(OSError):  # the daemon hangs up where that does not matter
                    connection.sendall(ACK)
                    connection.recv(1)
        return text.decode()

    def client(self, hook_input: dict[str, Any], kind: RequestKind = "hook", **env: str) -> str:
        """Return what the real hook client prints."""
        result = subprocess.run(
            self.hook_command(kind),
            input=json.dumps(hook_input),
            env={"PATH": os.environ["PATH"], **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=MAX_WAIT_S,
        )
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    def ask_here(self, template: str) -> str:
        """Return what the real hook client prints of the session that this process belongs to."""
        command = self.hook_command("here", template)
        # Its deadline is for agents; on a busy machine the daemon may be later.
        answers = (subprocess.check_output(command, env={}) for _ in range(MAX_TRIES))
        return next(filter(None, answers), b"").decode()

    def command(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a brimline command that asks this daemon."""
        done = run_brimline(words, env=self.environment | env, timeout=MAX_WAIT_S)
        output, errors = done.stdout.decode(), done.stderr.decode()
        return subprocess.CompletedProcess(done.args, done.returncode, output, errors)

    def answered(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command until this daemon answers it in time; on a busy machine it may be late."""
        end = time.monotonic() + MAX_WAIT_S
        while "figures are from files alone" in (done := self.command(*words, **env)).stderr:
            assert time.monotonic() < end, done.stderr
        return done

    @property
    def secret(self) -> str:
        """The secret that programs send."""
        return (self.state / "secret").read_text().strip()

    @property
    def authorization(self) -> dict[str, str]:
        """The header that admits a program."""
        return {"Authorization": f"Bearer {self.secret}"}

    def _request(
        self,
        path: str,
        body: bytes | None = None,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> urllib.request.Request:
        """Build a request with the secret."""
        address = f"http://127.0.0.1:{self.port}{path}"
        sent = {**self.authorization, **(headers or {})}
        return urllib.request.Request(address, body, headers=sent, method=method)

    def get(self, path: str, **headers: str) -> Any:
        """Return the decoded reply of the API."""
        request = self._request(path, headers=headers)
        with urllib.request.urlopen(request, timeout=MAX_WAIT_S) as answer:
            return json.load(answer)

    def get_text(self, path: str) -> tuple[str, str]:
        """Return the content type and the text of a reply."""
        with urllib.request.urlopen(self._request(path), timeout=MAX_WAIT_S) as answer:
            return answer.headers["content-type"], answer.read().decode()

    def refused(
        self, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Return the status and body of a request that must fail."""
        request = self._request(path, body, headers=headers)
        try:
            urllib.request.urlopen(request, timeout=MAX_WAIT_S).close()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        raise AssertionError(f"{path} was not refused")

    def post(self, path: str, body: Any) -> Any:
        headers = {"content-type": "application/json"}
        request = self._request(path, json.dumps(body).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=MAX_WAIT_S) as answer:
            return json.load(answer)

    def delete(self, path: str) -> Any:
        with urllib.request.urlopen(
            self._request(path, method="DELETE"), timeout=MAX_WAIT_S
        ) as answer:
            return json.load(answer)

    def over_unix(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and body of a request over the Unix socket, as the commands send it."""
        connection = UnixConnection(socket_path(self.state, os.getuid(), "http"))
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, json.load(answer)
        finally:
            connection.close()

    def hand_over(self, session: str, path: Path, author: str = "agent") -> None:
        """Hand over a document, which is possible only over the Unix socket."""
        body = {"path": str(path), "author": author}
        status, reply = self.over_unix(
            "POST", f"/v1/sessions/{quote(session, safe='')}/handoff", body
        )
        assert status == 201, reply

    def new_link(self) -> str:
        """Return a link that opens the page once."""
        return self.over_unix("POST", "/v1/daemon/link")[1]["url"]

    def until(self, path: str, fits: Callable[[Any], object]) -> Any:
        """Poll the API until the reply fits, and return it."""
        end = time.monotonic() + MAX_WAIT_S
        while not fits(answer := self.get(path)):
            assert time.monotonic() < end, answer
            time.sleep(0.05)
        return answer
