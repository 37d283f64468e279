"""The real clients with nothing set up but their own OpenTelemetry: every call, once."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from server.running import Running

from . import claude, codex, gemini, telemetry_sink
from .install import require
from .run import ClientRun, Place, run_client
from .scenes import loop

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ENDPOINT = f"http://127.0.0.1:{telemetry_sink.PORT}"
DISABLED = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY")


def run_claude(place: Place, sink: list[str]) -> ClientRun:
    environment = {
        name: value for name, value in claude.ENVIRONMENT.items() if name not in DISABLED
    }
    environment |= {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT,
    }
    command = [*sink, require("claude"), "-p", "Go.", "--model", claude.MODEL]
    command += ["--allowedTools", "Bash"]
    return run_client(
        "claude", command, place, loop(claude.bash), environment=environment, transcripts="*"
    )


def run_codex(place: Place, sink: list[str]) -> ClientRun:
    exporter = f'otel.exporter={{otlp-http={{endpoint="{ENDPOINT}/v1/logs",protocol="json"}}}}'
    command = [*sink, require("codex"), "exec", "--skip-git-repo-check"]
    for setting in (*codex.SETTINGS, exporter):
        command += ["-c", setting]
    key = {"FAKE_KEY": "sk-dummy"}
    return run_client(
        "codex", [*command, "Go."], place, loop(codex.shell), environment=key, transcripts="*"
    )


def run_gemini(place: Place, sink: list[str]) -> ClientRun:
    telemetry = {"enabled": True, "target": "local", "otlpEndpoint": ENDPOINT}
    gemini.write_settings(place, {"telemetry": {**telemetry, "otlpProtocol": "http"}})
    environment = dict(gemini.ENVIRONMENT)
    del environment["GEMINI_TELEMETRY_ENABLED"]
    command = [*sink, require("gemini"), "-p", "Go.", "--yolo"]
    return run_client(
        "gemini", command, place, loop(gemini.shell), environment=environment, transcripts="*"
    )


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path / "daemon")
    running.start()
    yield running
    running.close()


@pytest.mark.parametrize("run", [run_claude, run_codex, run_gemini])
def test_every_call_of_the_telemetry_counts_once(
    run: Callable[[Place, list[str]], ClientRun], daemon: Running, tmp_path: Path
) -> None:
    requests = tmp_path / "requests"
    sink = [sys.executable, telemetry_sink.__file__, str(requests)]
    client = run(Place(tmp_path / "client"), sink)
    billed = [each.usage for each in client.billed if each.thread == "main"]
    assert len(billed) == 3
    for _ in range(2):  # an exporter sends again what was not acknowledged
        for line in requests.read_text().splitlines():
            exported = json.loads(line)
            if exported["path"] in ("/v1/logs", "/v1/metrics"):
                body = json.loads(base64.b64decode(exported["body"]))
                assert daemon.post(exported["path"], body) == {}
    (view,) = daemon.get("/v1/sessions")
    assert view["session"]["agent"] == client.client
    timeline = daemon.get(f"/v1/sessions/{view['session']['id']}/timeline")
    read = [[call[name] for name in billed[0].__struct_fields__[:4]] for call in timeline["calls"]]
    assert read == [[each.input, each.cache_read, each.cache_write, each.output] for each in billed]
    (main,) = view["threads"]
    assert main["sent"] == billed[-1].input + billed[-1].cache_read + billed[-1].cache_write
