"""Daemons and a fleet's server as processes, on PostgreSQL."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.server.fleet.authentication import LOOKUP_LIFETIME_S
from fleet_server import FleetProcess, new_enrolment, new_token
from postgres_server import execute
from reserved_port import ReservedPort
from server.filled_session import write_filled_session
from server.otlp_collector import recording_collector
from server.running import Running

pytestmark = pytest.mark.slow

MAX_WAIT_S = 60.0
EVENTS, SESSIONS = 2_000, 4


class LinkedDaemon(Running):
    """A daemon whose user has set an uplink."""

    def __init__(self, folder: Path, url: str, token: str, receive: str = "all") -> None:
        super().__init__(folder)
        settings = self.home / ".config" / "brimline" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            f'[uplink]\nurl = "{url}"\ntoken = "{token}"\nteam = "web"\nreceive = "{receive}"\n'
        )

    def prompt(self, session: str) -> str:
        """Send a prompt's hook; return what the agent gets."""
        return self.hook({"session_id": session, "hook_event_name": "UserPromptSubmit",
                          "prompt": "Go on", "cwd": "/home/ada/shop"})  # fmt: skip

    def show_status(self, session: str, sent: int) -> None:
        """Send a status line after a call: a change, so that the next batch is sent at once."""
        usage = {"input_tokens": sent, "output_tokens": 5, "cache_creation_input_tokens": 0,
                 "cache_read_input_tokens": 0}  # fmt: skip
        window = {"context_window_size": 200_000, "current_usage": usage}
        model = {"id": "claude-sonnet-4-5"}
        line = {"session_id": session, "model": model, "context_window": window}
        self.hook(line, "statusline")


class TestFleet:
    """A server's process with a token for it; it can be stopped and started at its address."""

    __test__ = False

    def __init__(self, database: str, folder: Path) -> None:
        self.database, self._folder = database, folder
        self.token = new_token(database)
        self._port = ReservedPort()
        self.start()
        self.url = self.process.url

    def start(self) -> None:
        listen = f"127.0.0.1:{self._port.number}"
        self.process = FleetProcess(self.database, self._folder, listen=listen)

    def get(self, path: str) -> Any:
        return self.process.request("GET", path, self.token).json

    def post(self, path: str, body: Any) -> Any:
        return self.process.request("POST", path, self.token, body).json

    def until(self, path: str, fits: Callable[[Any], object]) -> Any:
        """Poll the API until the reply fits, and return it."""
        end = time.monotonic() + MAX_WAIT_S
        while not fits(reply := self.get(path)):
            assert time.monotonic() < end, reply
            time.sleep(0.05)
        return reply

    def calls(self, session: str) -> list[str]:
        timeline = self.get(f"/v1/sessions/{session}/timeline")
        return [call["call"] for call in timeline.get("calls", [])]


@pytest.fixture(scope="module")
def fleet(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    from postgres_server import new_schema

    with new_schema(postgres) as url:
        fleet = TestFleet(url, tmp_path_factory.mktemp("server"))
        yield fleet
        fleet.process.close()


@pytest.fixture(scope="module")
def daemons(
    fleet: TestFleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[LinkedDaemon]]:
    """Two machines."""
    started: list[LinkedDaemon] = []
    try:
        for name in ("one", "two"):
            daemon = LinkedDaemon(tmp_path_factory.mktemp(name), fleet.url, fleet.token)
            started.append(daemon)
            daemon.start()
        yield started
    finally:
        for daemon in started:
            daemon.close()


def figures(view: Any) -> Any:
    """Return the threads of a session's view without what stays on the machine."""
    own = {"window_why", "window_origin", "limit_why", "limit_origin", "title"}
    threads = view["threads"]
    return [{name: value for name, value in each.items() if name not in own} for each in threads]


def test_figures_at_the_server_are_those_of_the_machine(
    fleet: TestFleet, daemons: list[LinkedDaemon]
) -> None:
    daemon = daemons[0]
    write_filled_session(daemon.home, "filled", calls=8, packed_after=5)
    daemon.until("/v1/sessions", lambda reply: "filled" in str(reply))
    mine = daemon.until("/v1/sessions/filled/timeline", lambda reply: len(reply["calls"]) == 8)
    theirs = fleet.until(
        "/v1/sessions/filled/timeline", lambda reply: len(reply.get("calls", [])) == 8
    )
    assert theirs == mine
    mine, theirs = daemon.get("/v1/sessions/filled"), fleet.get("/v1/sessions/filled")
    assert figures(theirs) == figures(mine)
    assert (theirs["session"]["project"], theirs["session"]["title"]) == ("project", None)
    assert theirs["resume_command"] == "claude --resume filled"
    assert (theirs["session"]["team"], theirs["session"]["host"]) == ("web", socket.gethostname())


def test_message_of_the_server_reaches_its_agent_and_no_other(
    fleet: TestFleet, daemons: list[LinkedDaemon]
) -> None:
    for number, daemon in enumerate(daemons):
        daemon.prompt(f"agent-{number}")
    for number in range(2):
        fleet.until(f"/v1/sessions/agent-{number}", lambda reply: "session" in reply)
    sent = fleet.post("/v1/sessions/agent-1/messages", {"text": "Please stop"})
    daemons[1].show_status("agent-1", 20_000)
    replies = ""
    end = time.monotonic() + MAX_WAIT_S
    while "Please stop" not in replies:
        assert time.monotonic() < end
        replies = daemons[1].prompt("agent-1")
        assert "Please stop" not in daemons[0].prompt("agent-0")
        time.sleep(0.2)
    assert "[message from test via 127.0.0.1] Please stop" in replies
    daemons[1].show_status("agent-1", 30_000)
    (message,) = fleet.until(
        "/v1/sessions/agent-1/messages", lambda reply: reply[0]["state"] == "delivered"
    )
    assert message["id"] == sent["id"]
    assert daemons[1].get("/v1/sessions/agent-1/messages")[0]["id"] == f"fleet-{sent['id']}"


def test_document_of_the_server_is_injected_after_a_compaction(
    fleet: TestFleet, daemons: list[LinkedDaemon]
) -> None:
    session, daemon = "compacted-agent", daemons[1]
    daemon.prompt(session)
    fleet.until(f"/v1/sessions/{session}", lambda reply: "session" in reply)
    fleet.post(f"/v1/sessions/{session}/handoff", {"text": "Continue with the tests"})
    daemon.show_status(session, 20_000)
    daemon.until(f"/v1/sessions/{session}", lambda reply: reply["handoff"]["state"] == "fresh")
    for name, more in (
        ("PreCompact", {"trigger": "auto"}),
        ("SessionStart", {"source": "compact"}),
    ):
        reply = daemon.hook({"session_id": session, "hook_event_name": name, **more})
    assert "Continue with the tests" in reply
    assert "Written by test via 127.0.0.1" in reply
    assert "Received from 127.0.0.1: handoff.md" in reply
    fleet.until(
        f"/v1/sessions/{session}/handoff", lambda reply: reply["handoffs"][0]["used_at"] is not None
    )


def test_machine_makes_its_own_token_from_its_team_s(fleet: TestFleet, tmp_path: Path) -> None:
    """It keeps it over a restart, enrols again with a restored server, and can be ended."""
    enrolment = new_enrolment(fleet.database, team="core")
    daemon = LinkedDaemon(tmp_path, fleet.url, enrolment)
    daemon.start()
    try:
        daemon.prompt("enrolled")
        view = fleet.until("/v1/sessions/enrolled", lambda reply: "session" in reply)
        assert view["session"]["team"] == "core", "the machine's settings say web"
        file = daemon.state / "uplink-token"
        assert file.stat().st_mode & 0o777 == 0o600
        own = file.read_bytes()
        assert enrolment.encode() not in own
        daemon.stop()
        execute(fleet.database, "DELETE FROM tokens WHERE machine IS NOT NULL")
        daemon.start()
        daemon.prompt("restored")
        fleet.until("/v1/sessions/restored", lambda reply: "session" in reply)
        assert file.read_bytes() == own
        revoke = "UPDATE tokens SET revoked_at = 1 WHERE machine IS NOT NULL RETURNING name"
        assert execute(fleet.database, revoke) == [[socket.gethostname()]]
        time.sleep(LOOKUP_LIFETIME_S)
        daemon.prompt("revoked")
        reason = "does not enrol this machine: this machine's token was revoked"
        daemon.until("/v1/daemon", lambda reply: reason in str(reply["uplink"]["problem"]))
        assert reason in daemon.command("doctor").stdout
    finally:
        daemon.close()


def test_hooks_are_answered_while_the_server_hangs(tmp_path: Path) -> None:
    with recording_collector() as hanging:
        hanging.gate.clear()
        daemon = LinkedDaemon(tmp_path, hanging.address, "brim_x")
        daemon.start()
        try:
            daemon.prompt("s")
            hanging.until(lambda: hanging.waiting)
            daemon.post("/v1/sessions/s/messages", {"text": "Please stop"})
            assert "Please stop" in daemon.prompt("s")
            assert hanging.attempts == []
        finally:
            daemon.close()


def event(number: int, session: str) -> dict[str, Any]:
    usage = {"input": 100 + number, "cache_read": 0, "cache_write": 0, "output": 5}
    call = {"type": "Call", "id": f"c{number}", "usage": usage, "model": "claude-sonnet-4-5"}
    return {"id": f"e{number}", "session": session, "agent": "claude", "event": call}


def test_all_events_arrive_once_after_the_server_was_away_and_the_daemon_killed(
    fleet: TestFleet, daemons: list[LinkedDaemon]
) -> None:
    daemon = daemons[0]
    fleet.process.stop()
    sessions = [f"offline-{number}" for number in range(SESSIONS)]
    expected = [f"c{number}" for number in range(EVENTS // SESSIONS)]
    for session in sessions:
        events = [event(number, session) for number in range(len(expected))]
        assert daemon.post("/v1/events", {"events": events})["taken"] == len(expected)
    daemon.until(
        "/v1/daemon",
        lambda reply: reply["uplink"]["behind"] >= SESSIONS and reply["uplink"]["problem"],
    )
    metrics = daemon.get_text("/metrics")[1]
    assert "\nbrimline_uplink_up 0\n" in metrics
    assert "cannot be reached" in daemon.command("doctor").stdout
    assert "sessions behind for" in daemon.command("serve", "--status").stdout
    fleet.start()
    end = time.monotonic() + MAX_WAIT_S
    while not fleet.calls(sessions[0]):
        assert time.monotonic() < end
    daemon.kill()
    daemon.start()
    for session in sessions:
        fleet.until(
            f"/v1/sessions/{session}/timeline",
            lambda reply: len(reply.get("calls", [])) >= len(expected),
        )
        assert fleet.calls(session) == expected
    daemon.until("/v1/daemon", lambda reply: reply["uplink"]["behind"] == 0)
    assert "\nbrimline_uplink_up 1\n" in daemon.get_text("/metrics")[1]
    assert f"{fleet.url}: up to date" in daemon.command("doctor").stdout
