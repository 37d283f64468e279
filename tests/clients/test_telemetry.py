"""The real clients with nothing but the settings of `brimline fleet snippet`: every call, once."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brimline.agents import managed_settings
from brimline.agents.managed_settings import TOKEN_MARK
from server.running import Running

from . import claude, codex, gemini, telemetry_sink
from .install import require
from .run import ClientRun, Place, run_client
from .scenes import loop

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ENDPOINT = f"http://127.0.0.1:{telemetry_sink.PORT}"
DISABLED = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY")


def managed_texts(client: str) -> list[str]:
    """The files that `brimline fleet snippet` prints; here they are the user's own."""
    return [file.text for file in managed_settings(client, ENDPOINT).files]


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run_claude(place: Place, sink: list[str]) -> ClientRun:
    environment = {
        name: value for name, value in claude.ENVIRONMENT.items() if name not in DISABLED
    }
    [settings] = managed_texts("claude")
    write_file(place.home / ".claude/settings.json", settings)
    command = [*sink, require("claude"), "-p", "Go.", "--model", claude.MODEL]
    command += ["--allowedTools", "Bash"]
    return run_client(
        "claude", command, place, loop(claude.bash), environment=environment, transcripts="*"
    )


def run_codex(place: Place, sink: list[str]) -> ClientRun:
    [settings] = managed_texts("codex")
    write_file(place.home / ".codex/config.toml", settings)
    command = [*sink, require("codex"), "exec", "--skip-git-repo-check"]
    for setting in codex.SETTINGS:
        command += ["-c", setting]
    key = {"FAKE_KEY": "sk-dummy"}
    return run_client(
        "codex", [*command, "Go."], place, loop(codex.shell), environment=key, transcripts="*"
    )


def run_gemini(place: Place, sink: list[str]) -> ClientRun:
    settings, variables = managed_texts("gemini")
    file = gemini.write_settings(place, json.loads(settings))
    write_file(file.with_name(".env"), variables)
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
            assert exported["authorization"] == f"Bearer {TOKEN_MARK}"
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
