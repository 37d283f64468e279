"""The real clients with nothing but the settings of `brimline fleet snippet`: every call, once.

In runs with JSON the client also has our hooks, and sends its telemetry to their daemon.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import agent_names, managed_settings
from brimline.agents.managed_settings import TOKEN_MARK
from brimline.settings import socket_path
from brimline.testing.fake_model import Billed
from server.running import Running

from . import claude, codex, copilot, gemini, telemetry_sink
from .install import require
from .run import ClientRun, Place, run_client
from .scenes import loop

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ENDPOINT = f"http://127.0.0.1:{telemetry_sink.PORT}"
DISABLED = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY")
JSON, PROTOBUF = "application/json", "application/x-protobuf"


class Started:
    """A client's place with the settings of its telemetry, and how it is started.

    `sink` comes before its command, `environment` is that of its hooks.
    """

    def __init__(self, place: Place, media: str, local: Running | None, requests: Path) -> None:
        self.place, self.media, self._local = place, media, local
        target = socket_path(local.state, os.getuid(), "http") if local else ""
        self.sink = [sys.executable, telemetry_sink.__file__, str(requests), str(target)]
        self.environment: Mapping[str, str] = {}

    def managed_texts(self, client: str) -> list[str]:
        """The files that `brimline fleet snippet` prints; here they are the user's own."""
        texts = [file.text for file in managed_settings(client, ENDPOINT).files]
        if self.media == PROTOBUF:
            texts = [each.replace("http/json", "http/protobuf") for each in texts]
            texts = [each.replace('protocol = "json"', 'protocol = "binary"') for each in texts]
        return texts

    def set_up_hooks(self, client: str) -> None:
        if self._local is not None:
            done = self._local.command("setup", client, HOME=str(self.place.home))
            assert done.returncode == 0, done.stdout + done.stderr
            state = str(self._local.state)
            self.environment = {"BRIMLINE_STATE_DIR": state, "BRIMLINE_AUTOSTART": "0"}


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run_claude(start: Started) -> ClientRun:
    environment = {
        name: value for name, value in claude.ENVIRONMENT.items() if name not in DISABLED
    }
    [settings] = start.managed_texts("claude")
    write_file(start.place.home / ".claude/settings.json", settings)
    start.set_up_hooks("claude")
    command = [*start.sink, require("claude"), "-p", "Go.", "--model", claude.MODEL]
    command += ["--allowedTools", "Bash"]
    environment |= start.environment
    return run_client(
        "claude", command, start.place, loop(claude.bash), environment=environment, transcripts="*"
    )


def run_codex(start: Started) -> ClientRun:
    [settings] = start.managed_texts("codex")
    write_file(start.place.home / ".codex/config.toml", settings)
    start.set_up_hooks("codex")
    command = [*start.sink, require("codex"), "exec", "--skip-git-repo-check"]
    command += ["--dangerously-bypass-hook-trust"]
    for setting in codex.SETTINGS:
        command += ["-c", setting]
    environment = {"FAKE_KEY": "sk-dummy", **start.environment}
    scene = loop(codex.shell)
    return run_client(
        "codex", [*command, "Go."], start.place, scene, environment=environment, transcripts="*"
    )


def run_gemini(start: Started) -> ClientRun:
    settings, variables = start.managed_texts("gemini")
    file = gemini.write_settings(start.place, json.loads(settings))
    write_file(file.with_name(".env"), variables)
    start.set_up_hooks("gemini")
    environment = {**gemini.ENVIRONMENT, **start.environment}
    del environment["GEMINI_TELEMETRY_ENABLED"]
    command = [*start.sink, require("gemini"), "-p", "Go.", "--yolo"]
    return run_client(
        "gemini", command, start.place, loop(gemini.shell), environment=environment, transcripts="*"
    )


def run_copilot(start: Started) -> ClientRun:
    [script] = start.managed_texts("copilot")
    variables = dict(re.findall(r'^export (\w+)="(.*)"$', script, re.MULTILINE))
    command = [*start.sink, require("copilot"), "-p", "Go.", "--allow-all-tools"]
    return run_client(
        "copilot",
        command,
        start.place,
        loop(copilot.bash),
        environment=copilot.ENVIRONMENT | variables,
        transcripts="*",
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon without the clients' files and hooks: it has only their telemetry."""
    running = Running(tmp_path_factory.mktemp("server"))
    running.start()
    yield running
    running.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Running]:
    """The daemon of the client's hooks."""
    running = Running(tmp_path / "daemon")
    yield running
    running.close()


def counts(billed: tuple[Billed, ...]) -> list[list[int]]:
    usages = [each.usage for each in billed]
    return [[each.input, each.cache_read, each.cache_write, each.output] for each in usages]


def calls_of(daemon: Running, session: str) -> list[list[int]]:
    """The main thread's calls as the daemon knows them."""
    calls = daemon.get(f"/v1/sessions/{session}/timeline")["calls"]
    names = ("input", "cache_read", "cache_write", "output")
    return [[call[name] for name in names] for call in calls if call["thread"] == "main"]


def replay(requests: Path, daemon: Running, media: str) -> None:
    """Send all requests again, as an exporter does that got no acknowledgement."""
    for line in requests.read_text().splitlines():
        exported = json.loads(line)
        assert exported["authorization"] == f"Bearer {TOKEN_MARK}"
        assert exported["media"] == media
        address = f"http://127.0.0.1:{daemon.port}{exported['path']}"
        headers = {**daemon.authorization, "content-type": media}
        body = base64.b64decode(exported["body"])
        with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as answer:
            assert answer.headers["content-type"] == media
            assert answer.read() == (b"{}" if media == JSON else b"")  # nothing was rejected


def session_of(daemon: Running, known: set[str]) -> Any:
    """The view of the one session that is not known yet."""
    (view,) = (each for each in daemon.get("/v1/sessions") if each["session"]["id"] not in known)
    return view


@pytest.mark.parametrize(
    ("run", "media"),
    [
        (run_claude, JSON),
        (run_claude, PROTOBUF),
        (run_codex, JSON),
        (run_codex, PROTOBUF),
        (run_gemini, JSON),
        (run_copilot, JSON),
        (run_copilot, PROTOBUF),
    ],
)
def test_every_call_of_the_telemetry_counts_once(
    run: Callable[[Started], ClientRun],
    media: str,
    server: Running,
    local: Running,
    tmp_path: Path,
) -> None:
    known = {each["session"]["id"] for each in server.get("/v1/sessions")}
    requests = tmp_path / "requests"
    if media == JSON:
        local.start()
    start = Started(Place(tmp_path / "client"), media, local if media == JSON else None, requests)
    client = run(start)
    billed = tuple(each for each in client.billed if each.thread == "main")
    assert len(billed) == 3
    for _ in range(2):
        replay(requests, server, media)
    view = session_of(server, known)
    session = view["session"]["id"]
    assert view["session"]["agent"] == client.client
    assert calls_of(server, session) == counts(billed)
    (main,) = view["threads"]
    assert main["sent"] == sum(counts(billed)[-1][:3])
    assert main["source"] == "telemetry"
    assert (main["window"], main["limit"]) == WINDOWS_AND_LIMITS[client.client]
    if media == JSON:
        replay(requests, local, media)
        assert session_of(local, set())["session"]["id"] == session
        assert calls_of(local, session) == counts(billed)
        source = session_of(local, set())["threads"][0]["source"]
        assert (source == "telemetry") == (client.client not in agent_names())


# By the client's rules; Copilot reports its window.
WINDOWS_AND_LIMITS = {
    "claude": (1_000_000, 967_000),
    "codex": (258_400, 244_800),
    "gemini": (1_048_576, 524_288),
    "copilot": (168_000, 134_400),
}
