"""No surface shows a credential of a transcript, wherever it stands in that of any agent."""

import asyncio
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from random import Random

import msgspec
import pytest

from brimline.agents.transcripts.source import Places, Tally
from brimline.context.events import SessionSeen
from brimline.context.tracker import Session, fold
from brimline.daemon.telemetry_export.otlp_messages import build_gauges, build_records
from brimline.daemon.uplink.outbox import Outbox
from brimline.files.foreign_json import decode_json
from brimline.handoff import draft_handoff, iter_records
from brimline.sessions.files import find_session
from brimline.sessions.ledger.explain import explain
from brimline.sessions.ledger.session_ledger import read_ledgers
from brimline.settings import Settings, UplinkSettings
from brimline.store.sqlite import SqliteStore
from brimline.tui.files import TranscriptFiles
from brimline.tui.session_view import FillingLines
from preloaded import run_brimline, run_process
from redaction.canaries import Canary, canaries, leaked
from redaction.planted_homes import AGENTS, plant, write_session
from server.running import MAX_WAIT_S, Running
from server.test_daemon import status_input

FIXTURES = Path(__file__).parent.parent / "fixtures"
LANGUAGES = 28  # the last kinds of canaries
ALL = list(canaries(Random(1)))
SAMPLES = [*ALL[:-LANGUAGES:3][: 60 - LANGUAGES], *ALL[-LANGUAGES:]]


class PlantedHome:
    """A home with a session for each agent and credential."""

    def __init__(self, home: Path) -> None:
        self.home, self.places = home, Places(home, {})
        self.sessions: dict[str, tuple[str, Canary]] = {}
        for agent in AGENTS:
            for number, canary in enumerate(SAMPLES, 1):
                self.sessions[write_session(home, agent, number, canary)] = agent, canary

    @property
    def one_of_each_agent(self) -> dict[str, str]:
        return {agent: session for session, (agent, _) in self.sessions.items()}

    def run(self, *arguments: str, **env: str) -> str:
        """Return what a command prints."""
        known = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **env}
        completed = run_brimline(arguments, env=known, timeout=MAX_WAIT_S)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout.decode() + completed.stderr.decode()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedHome:
    """The home of a user without a daemon."""
    return PlantedHome(tmp_path_factory.mktemp("planted") / "home")


def kinds_in(*texts: str) -> list[str]:
    """The kinds of the credentials that are readable in texts."""
    return [each.kind for each in SAMPLES if any(leaked(each.secret, text) for text in texts)]


def test_samples_are_of_enough_different_kinds() -> None:
    assert len({each.kind for each in SAMPLES}) == len(SAMPLES) == 60


def test_title_by_the_client_is_redacted() -> None:
    for canary in ALL:
        session = fold(Session(), [SessionSeen(title=f"Use it: {canary.text}")])
        assert session.title is not None
        assert not leaked(canary.secret, session.title), canary.kind


def test_credential_at_the_end_of_what_is_read_of_a_title_is_not_cut() -> None:
    secret = "ghp_" + "a1B2" * 9
    for blanks in range(3_950, 4_001):
        session = fold(Session(), [SessionSeen(title=f"Go.{' ' * blanks}{secret}")])
        assert not leaked(secret, session.title or "")


def test_value_that_a_decoder_quotes_is_redacted() -> None:
    tally = Tally()
    record = b'{"type": "password=hunter2!x"}'
    tally.read(lambda: (decode_json(record, SessionSeen),), "record 1")
    assert tally.places == ["record 1: Invalid value 'password=***' - at `$.type`"]


@pytest.mark.slow
def test_no_explanation_or_draft_of_any_session_shows_a_credential(planted: PlantedHome) -> None:
    problems: list[tuple[str, str, str]] = []
    for session, (agent, canary) in planted.sessions.items():
        files = find_session(planted.places, session, [agent])
        explained = explain(read_ledgers(files, planted.places), series=True)
        shown = msgspec.json.encode(explained).decode()
        assert "Look at this." in shown
        assert "echo one" in shown
        records = iter_records(files.transcripts[0].path, session)
        draft = draft_handoff(records, agent)
        assert "Look at this." in draft
        problems += [
            (agent, canary.kind, name)
            for name, text in (("explanation", shown), ("draft", draft))
            if leaked(canary.secret, text)
        ]
    assert problems == []


def test_arguments_that_are_secrets_by_their_name_are_not_shown(tmp_path: Path) -> None:
    """A tool's first text names its call; its argument's name is not shown, and not searched."""
    session = write_session(tmp_path, "claude", 1, Canary("", "", ""))
    (path,) = tmp_path.rglob("*.jsonl")
    call = '"name": "Bash", "input": {"command": "echo one\\n"'
    text = path.read_text("utf-8")
    assert call in text
    named = '"name": "login", "input": {"password": "opensesame", "user": "me"'
    path.write_text(text.replace(call, named), "utf-8")
    files = find_session(Places(tmp_path, {}), session, ["claude"])
    shown = msgspec.json.encode(explain(read_ledgers(files, Places(tmp_path, {})))).decode()
    assert '"what":"login me"' in shown
    assert "opensesame" not in shown


@pytest.mark.slow
def test_no_command_shows_a_credential(planted: PlantedHome) -> None:
    status = planted.run("status", "--json", "--all")
    assert status.count("Look at this.") == len(planted.sessions)
    lists = [planted.run("status", "--all", COLUMNS="400")]
    for by in ("session", "project", "model"):
        lists += [planted.run("report", "--by", by, form) for form in ("--json", "--csv")]
    assert kinds_in(status, *lists) == []
    for session in planted.one_of_each_agent.values():
        texts = [
            planted.run(*words, session, COLUMNS="300")
            for words in (
                ("explain",),
                ("explain", "--json", "--series"),
                ("inspect", "--audit", "--series"),
                ("inspect", "--json"),
                ("handoff", "--draft"),
            )
        ]
        assert "echo one" in texts[0]
        assert kinds_in(*texts) == []


@pytest.mark.slow
def test_watch_shows_no_credential(planted: PlantedHome, tmp_path: Path) -> None:
    files = TranscriptFiles(planted.places, Settings(), tmp_path, AGENTS, include_old=True)
    views = files.read_views(time.time())
    assert len(views) == len(planted.sessions)
    lines = [
        "".join(span.text for span in line)
        for view in views
        for line in FillingLines(200, None).lines(files.read_explanation(view), "main")
    ]
    assert kinds_in(*lines, *(view.session.title or "" for view in views)) == []


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon that has read planted sessions; its notices go to a file."""
    running = Running(tmp_path_factory.mktemp("daemon"))
    config = running.home / ".config/brimline/config.toml"
    config.parent.mkdir(parents=True)
    command = json.dumps(["sh", "-c", f"cat >> {running.folder}/notices"])
    config.write_text(f"[notify]\nof = ['level']\ncommand = {command}\n")
    sessions = PlantedHome(running.home).sessions
    running.start()
    running.until("/v1/sessions", lambda views: len(views) >= len(sessions))
    yield running
    running.close()


@pytest.mark.slow
def test_no_answer_of_the_daemon_shows_a_credential(daemon: Running) -> None:
    views = daemon.get("/v1/sessions")
    texts = [json.dumps(views, ensure_ascii=False), daemon.get_text("/metrics")[1]]
    assert texts[0].count("Look at this.") == len(views)
    texts.append(daemon.get_text("/v1/history")[1])
    for view in views:
        path = f"/v1/sessions/{view['session']['id']}"
        paths = (path, f"{path}/timeline", f"{path}/explanation?series=1")
        texts += [daemon.get_text(each)[1] for each in paths]
    assert sum("echo one" in text for text in texts) >= len(views)
    assert kinds_in(*texts) == []


@pytest.mark.slow
def test_stream_shows_no_credential(daemon: Running) -> None:
    with closing(HTTPConnection("127.0.0.1", daemon.port, timeout=MAX_WAIT_S)) as connection:
        connection.request("GET", "/v1/stream", headers=daemon.authorization)
        answer = connection.getresponse()
        lines = [answer.readline().decode() for _ in range(200)]
    assert any("Look at this." in line for line in lines)
    assert kinds_in(*lines) == []


@pytest.mark.slow
def test_notices_log_uplink_and_export_show_no_credential(daemon: Running) -> None:
    session = next(view["session"] for view in daemon.get("/v1/sessions")
                   if view["session"]["agent"] == "claude")  # fmt: skip
    daemon.hook({**status_input(190_000), "session_id": session["id"]}, "statusline")
    notices = daemon.folder / "notices"
    end = time.monotonic() + MAX_WAIT_S
    while not (notices.exists() and session["id"] in notices.read_text()):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert daemon.process is not None
    assert daemon.process.stdout is not None
    daemon.process.terminate()
    log = daemon.process.stdout.read()

    async def sent_and_exported() -> tuple[str, str]:
        store = await SqliteStore.open(daemon.state / "brimline.db")
        try:
            outbox = Outbox(store, UplinkSettings(titles=True), "http://localhost")
            await outbox.begin_round()
            parts = await outbox.next_batch(100_000, now=time.time())
            rows = [row for part in parts if (row := await store.session(part.session.id))]
            pairs = [(row, each) for row in rows for each in await store.threads(row.id)]
            signals = [(each, row) for row in rows for each in await store.signals(row.id)]
            exported = (build_gauges(pairs, 0.0), build_records(signals, 0.0))
            batch = msgspec.json.encode([part.outgoing for part in parts])
            return batch.decode(), msgspec.json.encode(exported).decode()
        finally:
            await store.close()

    batch, exported = asyncio.run(sent_and_exported())
    assert "Look at this." in batch
    assert session["id"] in exported
    assert kinds_in(notices.read_text(), log, batch, exported) == []


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_run_shows_no_credential_but_in_what_it_passes_through(agent: str, tmp_path: Path) -> None:
    stream = (FIXTURES / agent / "tool-loop" / "stream-1.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in stream.splitlines()]
    planted = [plant(line, agent, each.text) for each in SAMPLES for line in lines]
    data = tmp_path / "stream"
    data.write_text("".join(json.dumps(line) + "\n" for line in planted), "utf-8")
    program = tmp_path / agent
    program.write_text(f"#!/bin/sh\nexec cat {data}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    events = tmp_path / "events"
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    texts: list[str] = []
    for words in (("--render", "pretty"), ("--json",)):
        command = ("run", *words, "--events", str(events), "--", str(program))
        completed = run_process(command, env=env, timeout=MAX_WAIT_S)
        assert completed.returncode == 0, completed.stderr
        texts += [completed.stdout.decode(), completed.stderr.decode()]
    assert "echo one" in texts[0]
    assert kinds_in(*texts, events.read_text("utf-8")) == []
