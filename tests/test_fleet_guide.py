"""The guide to fleets, walked through: a server, two machines with daemons, one with telemetry."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from doc_examples import BLOCK, commands_of, pattern_of
from fleet_server import MAX_WAIT_S, SHOWN_LINE, FleetReply
from postgres_server import new_schema
from server.test_telemetry import logs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs/guides/fleet/README.md").read_text("utf-8")
FIXTURES = ROOT / "tests" / "fixtures"
GUIDE_DATABASE = "postgresql://brimline@localhost/brimline"
GUIDE_URL = "https://fleet.example.com"
SERVE = "brimline serve --listen 127.0.0.1:8420"


def sections() -> dict[str, str]:
    """The numbered sections by their number."""
    parts = re.split(r"^## (\d)\. .*$", GUIDE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def blocks(section: str, kind: str) -> list[str]:
    return [block[2] for block in BLOCK.finditer(sections()[section]) if block[1] == kind]


class Host:
    """A scratch home, and the shell of someone who types the guide's commands there."""

    def __init__(self, home: Path, replaced: dict[str, str]) -> None:
        self.home, self._replaced = home, replaced
        home.mkdir()
        self._environment = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
        }

    def set(self, variables: dict[str, str]) -> None:
        self._environment |= variables

    def prepend_path(self, folder: Path) -> None:
        self._environment["PATH"] = f"{folder}:{self._environment['PATH']}"

    def replace_names(self, text: str) -> str:
        """Replace the names of the guide by those of this test."""
        for name, value in self._replaced.items():
            text = text.replace(name, value)
        return text

    def follow(self, section: str) -> str:
        """Type every command of a section; return what the last one printed."""
        printed = ""
        for block in blocks(section, "console"):
            for command, output in commands_of(block):
                if command.startswith("export "):
                    self.export(command)
                    continue
                printed = self.run(self.replace_names(command))
                assert pattern_of(output).fullmatch(printed), f"{command} printed:\n{printed}"
        return printed

    def export(self, command: str) -> None:
        name, _, value = self.replace_names(command).removeprefix("export ").partition("=")
        self._environment[name] = self.run(f'printf %s "{value}"')

    def run(self, command: str) -> str:
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self.home,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        ).stdout

    def start(self, command: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            cwd=self.home,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def request(
    url: str, method: str, path: str, headers: dict[str, str], body: str | None = None
) -> FleetReply:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=MAX_WAIT_S)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return FleetReply(response.status, found, response.read())
    finally:
        connection.close()


def wait_for(read: Callable[[], Any], fits: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + MAX_WAIT_S
    while not fits(value := read()):
        assert time.monotonic() < deadline, value
        time.sleep(0.1)
    return value


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    with new_schema(postgres) as url:
        yield url


@pytest.fixture
def serving(database: str, tmp_path: Path) -> Iterator[tuple[Host, str]]:
    """The server of section 1, on a free port, and its address."""
    host = Host(tmp_path / "server", {GUIDE_DATABASE: database})
    export, serve = commands_of(blocks("1", "console")[0])
    host.export(export[0])
    assert serve[0].startswith(SERVE)
    process = host.start(serve[0].replace(":8420", ":0"))
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert pattern_of(serve[1].replace("8420", "...")).fullmatch(line), line
        yield host, line.partition(SHOWN_LINE)[2].split()[0]
    finally:
        process.terminate()
        process.wait(MAX_WAIT_S)
        process.stdout.close()


def copy_sessions(scene: str, home: Path) -> None:
    """Put recorded sessions of a real client into a home, as if they were of now.

    Recorded sessions have numbers as their ids: these get ids that no other client has.
    """
    recorded, own = "00000001-0000", f"{scene.encode().hex()[:8]}-0000"
    for source in (FIXTURES / scene / "home").rglob("*.jsonl"):
        path = home / str(source.relative_to(FIXTURES / scene / "home")).replace(recorded, own)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.read_text().replace(recorded, own))


def test_guide_leads_from_nothing_to_a_page_with_two_machines(
    serving: tuple[Host, str], tmp_path: Path
) -> None:
    server, url = serving
    server.follow("2")
    ada = Host(tmp_path / "ada", {GUIDE_URL: url, "/home/ada": str(tmp_path / "ada")})
    ben = Host(tmp_path / "ben", {GUIDE_URL: url})
    copy_sessions("claude/auto-compact", ada.home)
    copy_sessions("codex/tool-loop", ben.home)
    try:
        [settings] = blocks("3", "toml")
        config = ada.home / ".config/brimline/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(ada.replace_names(settings))
        shutil.copy(server.home / "core.token", config.with_name("fleet.token"))
        ada.follow("3")
        shutil.copy(server.home / "core.token", ben.home)
        ben.follow("4")
        shown = {"authorization": f"Bearer {(server.home / 'ada.token').read_text().strip()}"}
        views = wait_for(
            lambda: request(url, "GET", "/v1/sessions", shown).json,
            lambda views: len({view["session"]["machine"] for view in views}) == 2,
        )
        agents = {view["session"]["agent"]: view["session"] for view in views}
        assert [agents[name]["team"] for name in ("claude", "codex")] == ["core", "core"]
        assert agents["claude"]["machine"] != agents["codex"]["machine"]
        assert [agents[name]["receive"] for name in ("claude", "codex")] == ["all", "off"]
        assert '(uplink.receive = "all")' in ada.run("brimline serve --status")
        assert agents.keys() == {"claude", "codex"}
        assert all("/" not in session["project"] for session in agents.values())
    finally:
        for machine in (ada, ben):
            machine.run("brimline serve --stop")
    send_telemetry(server, url)
    views = request(url, "GET", "/v1/sessions", shown).json
    assert {view["session"]["id"] for view in views if not view["session"]["machine"]} == {"built"}
    host = Host(tmp_path / "reader", {GUIDE_URL: url})
    shutil.copy(server.home / "ada.token", host.home)
    fleet = json.loads(host.follow("6"))
    assert {group["key"] for group in fleet["groups"]} == {"core", None}
    assert open_page(url, (server.home / "ada.token").read_text().strip())


def send_telemetry(server: Host, url: str) -> None:
    """Send a call as a client does with the settings of section 5."""
    host = Host(server.home / "builder", {GUIDE_URL: url})
    printed = host.follow("5")
    token = (server.home / "build-hosts.token").read_text().strip()
    variables = json.loads(printed[printed.index("{") :].replace("TOKEN", token))["env"]
    name, _, value = variables["OTEL_EXPORTER_OTLP_HEADERS"].partition("=")
    headers = {name: value, "content-type": "application/json"}
    assert variables["OTEL_EXPORTER_OTLP_ENDPOINT"] == url
    assert request(url, "POST", "/v1/logs", headers, json.dumps(logs("built"))).status == 200


def open_page(url: str, token: str) -> bool:
    """Sign in with the form, and return whether the page is shown."""
    form = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    assert "Sign in" in request(url, "GET", "/", {}).body.decode()
    answer = request(url, "POST", "/sign-in", form, urlencode({"token": token}))
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return b"<title>Brimline" in request(url, "GET", "/", {"cookie": cookie}).body
