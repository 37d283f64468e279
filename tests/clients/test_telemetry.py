"""The real clients with the telemetry settings of `brimline fleet snippet`: every call, once.

With OTLP only, to a fleet's server; and with our hooks and an uplink at once.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import managed_settings_for
from brimline.agents.telemetry import TOKEN_MARK
from brimline.files.socket_path import socket_path
from brimline.testing.fake_model import Billed, Ramp, Scenario
from fleet_server import FleetProcess, new_token
from postgres_server import new_schema
from server.running import MAX_WAIT_S, Running

from . import claude, codex, copilot, gemini, qwen, telemetry_sink
from .install import require
from .run import ClientRun, Place, run_client
from .scenes import loop, steps

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ENDPOINT = f"http://127.0.0.1:{telemetry_sink.PORT}"
DISABLED = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY")
# What a company may set for all programs of a user.
COMPANY = {
    "OTEL_SERVICE_NAME": "company-tools",
    "OTEL_RESOURCE_ATTRIBUTES": "user.email=ada@example.org,team.id=core",
}
JSON, PROTOBUF = "application/json", "application/x-protobuf"


class Started:
    """A client's place with the settings of its telemetry, and how it is started.

    `sink` comes before its command, `environment` is that of all programs and of its hooks.
    """

    def __init__(self, place: Place, media: str, local: Running | None, requests: Path) -> None:
        self.place, self.media, self._local = place, media, local
        target = socket_path(local.state, os.getuid(), "http") if local else ""
        self.sink = [sys.executable, telemetry_sink.__file__, str(requests), str(target)]
        self.environment: Mapping[str, str] = COMPANY

    def managed_texts(self, client: str) -> list[str]:
        """The files that `brimline fleet snippet` prints; here they are the user's own."""
        texts = [file.text for file in managed_settings_for(client, ENDPOINT).files]
        if self.media == PROTOBUF:
            texts = [each.replace("http/json", "http/protobuf") for each in texts]
            texts = [each.replace('protocol = "json"', 'protocol = "binary"') for each in texts]
        return texts

    def set_up_hooks(self, client: str) -> None:
        if self._local is not None:
            done = self._local.command("setup", client, HOME=str(self.place.home))
            assert done.returncode == 0, done.stdout + done.stderr
            state = str(self._local.state)
            hooks = {"BRIMLINE_STATE_DIR": state, "BRIMLINE_AUTOSTART": "0"}
            self.environment = {**COMPANY, **hooks}


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run_claude(start: Started) -> ClientRun:
    """With more than 2 s for the last export: a busy machine is slow."""
    environment = {
        name: value for name, value in claude.ENVIRONMENT.items() if name not in DISABLED
    }
    [settings] = start.managed_texts("claude")
    write_file(start.place.home / ".claude/settings.json", settings)
    start.set_up_hooks("claude")
    command = [*start.sink, require("claude"), "-p", "Go.", "--model", claude.MODEL]
    command += ["--allowedTools", "Bash"]
    environment |= start.environment
    environment["CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS"] = f"{MAX_WAIT_S * 1_000:.0f}"
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


def run_copilot(start: Started, scene: Scenario | None = None) -> ClientRun:
    [script] = start.managed_texts("copilot")
    variables = dict(re.findall(r'^export (\w+)="(.*)"$', script, re.MULTILINE))
    start.set_up_hooks("copilot")
    command = [*start.sink, require("copilot"), "-p", "Go.", "--allow-all-tools"]
    return run_client(
        "copilot",
        command,
        start.place,
        scene or loop(copilot.bash),
        environment={**copilot.ENVIRONMENT, **copilot.UNPACKED, **variables, **start.environment},
        transcripts="*",
    )


def run_qwen(start: Started) -> ClientRun:
    """With the settings of the guide: there is no snippet for it."""
    telemetry = {"enabled": True, "target": "local", "otlpProtocol": "http"}
    qwen.write_settings(start.place, {"telemetry": {**telemetry, "otlpEndpoint": ENDPOINT}})
    start.set_up_hooks("qwen")
    command = [*start.sink, require("qwen"), "--yolo", "--auth-type", "openai", "-p", "Go."]
    headers = {"OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer {TOKEN_MARK}"}
    return run_client(
        "qwen",
        command,
        start.place,
        loop(qwen.shell),
        environment={**qwen.ENVIRONMENT, **headers, **start.environment},
        transcripts="*",
    )


class Server:
    """A fleet's server in a process, with a token for everything."""

    def __init__(self, replica: FleetProcess, token: str) -> None:
        self.url, self.token, self._replica = replica.url, token, replica

    def get(self, path: str) -> Any:
        return self._replica.request("GET", path, self.token).json


class Machine(Running):
    """A daemon that reports to a server once `server` is set."""

    server: Server | None = None

    @property
    def environment(self) -> dict[str, str]:
        if self.server is None:
            return super().environment
        uplink = {
            "BRIMLINE_UPLINK_URL": self.server.url,
            "BRIMLINE_UPLINK_TOKEN": self.server.token,
        }
        return super().environment | uplink


@pytest.fixture(scope="module")
def server(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with new_schema(postgres) as url:
        replica = FleetProcess(url, tmp_path_factory.mktemp("server"))
        try:
            yield Server(replica, new_token(url))
        finally:
            replica.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Machine]:
    """The daemon of the client's hooks."""
    machine = Machine(tmp_path / "daemon")
    yield machine
    machine.close()


def counts(billed: Iterable[Billed]) -> list[list[int]]:
    usages = [each.usage for each in billed]
    return [[each.input, each.cache_read, each.cache_write, each.output] for each in usages]


def calls_of(place: Running | Server, session: str) -> list[list[int]]:
    """The main thread's calls as a daemon or a server knows them."""
    calls = place.get(f"/v1/sessions/{session}/timeline")["calls"]
    names = ("input", "cache_read", "cache_write", "output")
    return [[call[name] for name in names] for call in calls if call["thread"] == "main"]


def replay(requests: Path, url: str, token: str, media: str) -> None:
    """Send all requests again, as an exporter does that got no acknowledgement."""
    for line in requests.read_text().splitlines():
        exported = json.loads(line)
        assert exported["authorization"] == f"Bearer {TOKEN_MARK}"
        assert exported["media"] == media
        headers = {"Authorization": f"Bearer {token}", "content-type": media}
        body = base64.b64decode(exported["body"])
        request = urllib.request.Request(url + exported["path"], body, headers)
        with urllib.request.urlopen(request) as answer:
            assert answer.headers["content-type"] == media
            assert answer.read() == (b"{}" if media == JSON else b"")  # nothing was rejected


def view_of(place: Running | Server, session: str) -> Any:
    return place.get(f"/v1/sessions/{session}")


def check_telemetry_alone(server: Server, session: str, client: ClientRun) -> None:
    """Check that the server has what was billed, though only by telemetry."""
    billed = counts(each for each in client.billed if each.thread == "main")
    assert len(billed) == 3
    assert calls_of(server, session) == billed
    view = view_of(server, session)
    (main,) = view["threads"]
    assert (view["session"]["agent"], main["source"]) == (client.client, "telemetry")
    assert (view["session"]["user"], view["session"]["team"]) == ("ada@example.org", "core")
    assert main["sent"] == sum(billed[-1][:3])
    assert (main["window"], main["limit"]) == WINDOWS_AND_LIMITS[client.client]


def wait_for_uplink(server: Server, session: str, billed: list[list[int]]) -> None:
    """Wait until a machine has reported all calls of a session, which may take several batches."""
    end = time.monotonic() + MAX_WAIT_S
    while not is_reported(view := view_of(server, session)) or calls_of(server, session) != billed:
        assert time.monotonic() < end, view
        time.sleep(0.05)


def is_reported(view: Any) -> bool:
    """Whether a machine reports a session, which the server may not know at all yet."""
    if "session" not in view or view["session"]["machine"] is None:
        return False
    return [each["source"] for each in view["threads"][:1]] == ["transcript"]


@pytest.mark.parametrize(
    ("run", "media"),
    [
        (run_claude, PROTOBUF),
        (run_codex, PROTOBUF),
        (run_copilot, PROTOBUF),
        (run_qwen, JSON),
    ],
)
def test_every_call_of_the_telemetry_counts_once(
    run: Callable[[Started], ClientRun], media: str, server: Server, tmp_path: Path
) -> None:
    known = {each["session"]["id"] for each in server.get("/v1/sessions")}
    requests = tmp_path / "requests"
    client = run(Started(Place(tmp_path / "client"), media, None, requests))
    for _ in range(2):
        replay(requests, server.url, server.token, media)
    (session,) = {each["session"]["id"] for each in server.get("/v1/sessions")} - known
    check_telemetry_alone(server, session, client)


def test_compaction_of_copilot_is_known_by_its_spans(server: Server, tmp_path: Path) -> None:
    """It compacts at 134,400 tokens; the call that does so has no span."""
    scene = steps(copilot.bash, 8, Ramp(start=20_000, step=26_000, after_compaction=2_000))
    requests = tmp_path / "requests"
    client = run_copilot(Started(Place(tmp_path / "client"), JSON, None, requests), scene)
    assert "compaction" in {each.thread for each in client.billed}
    for _ in range(2):
        replay(requests, server.url, server.token, JSON)
    known = server.get("/v1/sessions")[0]["session"]  # the last seen
    timeline = server.get(f"/v1/sessions/{known['id']}/timeline")
    billed = counts(each for each in client.billed if each.thread == "main")
    assert (known["agent"], calls_of(server, known["id"])) == ("copilot", billed)
    assert False in {each["inferred"] for each in timeline["compactions"]}


@pytest.mark.parametrize(
    ("run", "uplink_first"),
    [
        (run_claude, True),
        (run_codex, False),
        (run_copilot, False),
        pytest.param(run_qwen, False, marks=pytest.mark.long),
        pytest.param(run_gemini, False, marks=pytest.mark.long),
    ],
)
def test_hooks_uplink_and_telemetry_at_once_count_every_call_once(
    run: Callable[[Started], ClientRun],
    uplink_first: bool,
    server: Server,
    local: Machine,
    tmp_path: Path,
) -> None:
    """The client has hooks, and sends its telemetry to the daemon of these and to the server."""
    local.server = server if uplink_first else None
    place = Place(tmp_path / "client")
    if run in (run_copilot, run_qwen):
        local.home = place.home  # to watch its files: they get the last call after the last hook
    local.start()
    requests = tmp_path / "requests"
    client = run(Started(place, JSON, local, requests))
    billed = counts(each for each in client.billed if each.thread == "main")
    (view,) = local.get("/v1/sessions")
    session = view["session"]["id"]
    local.until(f"/v1/sessions/{session}", lambda _: calls_of(local, session) == billed)
    assert view_of(local, session)["threads"][0]["source"] == "transcript"
    if uplink_first:
        wait_for_uplink(server, session, billed)
    else:
        replay(requests, server.url, server.token, JSON)
        check_telemetry_alone(server, session, client)
        local.stop()
        local.server = server
        local.start()
        wait_for_uplink(server, session, billed)
    for _ in range(2):
        replay(requests, server.url, server.token, JSON)
        replay(requests, f"http://127.0.0.1:{local.port}", local.secret, JSON)
    assert calls_of(local, session) == calls_of(server, session) == billed
    assert view_of(server, session)["threads"][0]["source"] == "transcript"


# By the client's rules; Copilot reports its window.
WINDOWS_AND_LIMITS = {
    "claude": (1_000_000, 967_000),
    "codex": (258_400, 244_800),
    "gemini": (1_048_576, 524_288),
    "copilot": (168_000, 134_400),
    "qwen": (1_000_000, 850_000),
}
