"""Who may do what on a fleet's server."""

import time
from typing import Any

import pytest

from brimline.inbox import Message
from brimline.server.api.openapi import Endpoint
from brimline.server.fleet.organisations import FLEET_ENDPOINTS
from brimline.store.base import PutHandoff, PutSession, QueueMessage
from brimline.store.rows import HandoffRow, SessionRow

from .conftest import Fleet

SECRET = "of-acme-only"
SESSION, MESSAGE = f"session-{SECRET}", f"message-{SECRET}"


# These replies have figures only, or nothing of a session.
WITHOUT_NAMES = {"/v1/daemon", "/v1/sessions/{id}/formulas"}


def call_event(call: str) -> dict[str, Any]:
    """A body of `POST /v1/events`: one call of the session."""
    usage = {"input": 100, "cache_read": 0, "cache_write": 0, "output": 5}
    event = {"type": "Call", "id": call, "usage": usage, "model": f"model-{call}"}
    return {"events": [{"id": call, "session": SESSION, "agent": "claude", "event": event}]}


# Bodies with which requests would have an effect, by path.
BODIES: dict[str, Any] = {
    "/v1/events": call_event("call-of-globex"),
    "/v1/sessions/{id}/messages": {"text": "from globex"},
    "/v1/sessions/{id}/handoff": {"text": "from globex"},
}


@pytest.fixture(scope="module")
def acme(fleet: Fleet) -> str:
    """The token of an organisation that has a session with everything that a session can have."""
    token = fleet.token("acme", name=f"token-{SECRET}")
    assert fleet.ask("POST", "/v1/events", token, call_event(f"call-{SECRET}")).status == 200
    row = SessionRow(SESSION, "claude", time.time(), machine="m1", project=f"/project-{SECRET}")
    handoff = HandoffRow(
        f"handoff-{SECRET}", SESSION, 1.0, "h.md", "0", f"text-{SECRET}", "agent", 0, 1
    )
    message = Message(MESSAGE, SESSION, f"text-{SECRET}", time.time())
    writes = [PutSession(row), PutHandoff(handoff), QueueMessage(message)]
    assert all(fleet.run(fleet.database.store("acme").write(writes)))
    sent = fleet.ask("POST", f"/v1/sessions/{SESSION}/messages", token, {"text": f"x {SECRET}"})
    assert sent.status == 201
    return token


def path_of(endpoint: Endpoint) -> str:
    path = endpoint.path.replace("{id}", SESSION).replace("{message}", MESSAGE)
    return f"{path}?by=project" if path == "/v1/fleet" else path


def named(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


@pytest.mark.parametrize("endpoint", FLEET_ENDPOINTS, ids=named)
def test_token_of_another_organisation_sees_and_changes_nothing(
    fleet: Fleet, acme: str, endpoint: Endpoint
) -> None:
    before = contents(fleet, "acme")
    body = None if endpoint.method == "GET" else BODIES.get(endpoint.path, {})
    reply = fleet.ask(endpoint.method, path_of(endpoint), fleet.token("globex"), body)
    assert SECRET not in reply.body.decode().replace(SESSION, "").replace(MESSAGE, "")
    assert contents(fleet, "acme") == before


def test_own_token_sees_what_another_organisation_must_not(fleet: Fleet, acme: str) -> None:
    """Else the test above would compare nothing with nothing."""
    reads = [each for each in FLEET_ENDPOINTS if each.method == "GET"]
    shown = {
        each.path for each in reads if SECRET in fleet.ask("GET", path_of(each), acme).body.decode()
    }
    assert {each.path for each in reads} - shown <= WITHOUT_NAMES


def contents(fleet: Fleet, organisation: str) -> Any:
    """Everything that the database has of an organisation, without when its tokens were used."""
    store, audit = fleet.database.store(organisation), fleet.database.audit
    reads = [store.sessions(), store.threads(), store.calls(SESSION), store.messages(),
             store.handoffs(SESSION), store.signals(), store.changes(),
             audit.list(organisation)]  # fmt: skip
    return [fleet.run(each) for each in reads]
