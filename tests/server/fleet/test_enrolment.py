"""Machines that make tokens of their own from their team's enrolment token."""

import asyncio
import time
from typing import Any

import pytest

from brimline.daemon.uplink.token_text import create_text, hash_token
from brimline.server.fleet.authentication import create_token
from brimline.settings import Settings
from brimline.store.postgres.tokens import MACHINE_LIFETIME_S, TOUCH_EVERY_S, TokenRow
from fleet_server import FleetReply, ask
from postgres_server import execute

from ..test_telemetry import attribute, logs
from .conftest import Fleet


class Team:
    """An enrolment token of an organisation, and machines that enrol with it."""

    def __init__(self, fleet: Fleet, organisation: str, max_machines: int = 2) -> None:
        self._fleet, self.organisation = fleet, organisation
        self.token, self.row = create_token(
            organisation, "core", ["enrol"], time.time(), team="core", max_machines=max_machines
        )
        assert fleet.run(fleet.database.tokens.insert(self.row))

    def enrol(self, machine: str, text: str, **more: str) -> FleetReply:
        return self._fleet.ask("POST", "/v1/enrol", self.token, enrolment(machine, text) | more)

    def report(self, machine: str, text: str, **more: Any) -> FleetReply:
        return self._fleet.ask("POST", "/v1/uplink", text, {"machine": machine, **more})

    def rows(self) -> list[TokenRow]:
        """The tokens of machines."""
        rows = self._fleet.run(self._fleet.database.tokens.list(self.organisation))
        return [row for row in rows if row.parent is not None]

    def revoke(self, id: str) -> None:
        tokens = self._fleet.database.tokens
        assert self._fleet.run(tokens.revoke(self.organisation, id, time.time()))
        self._fleet.app = self._fleet.create_app(Settings())  # it has looked up no token


def enrolment(machine: str, text: str) -> dict[str, str]:
    return {"machine": machine, "hash": hash_token(text), "host": f"{machine}-host"}


def test_machine_reports_as_itself_in_the_team_of_its_enrolment(fleet: Fleet) -> None:
    team, text = Team(fleet, "own"), create_text()
    enrolled = team.enrol("m1", text)
    assert (enrolled.status, enrolled.json["team"]) == (201, "core")
    session = {"id": "s", "agent": "claude", "seen_at": time.time()}
    assert team.report("m1", text, team="other", sessions=[session]).status == 200
    refused = team.report("m2", text)
    assert (refused.status, refused.json["error"]) == (403, "this token is another machine's")
    [row] = team.rows()
    assert (row.scopes, row.name, row.machine) == (("ingest",), "m1-host", "m1")
    reader = fleet.token("own", "read")
    [stored] = fleet.ask("GET", "/v1/sessions", reader).json
    assert stored["session"]["team"] == "core"
    [machine] = fleet.ask("GET", "/v1/machines", reader).json
    assert (machine["team"], machine["token"]) == ("core", row.id)
    assert machine["token_ends_at"] == pytest.approx(time.time() + MACHINE_LIFETIME_S, abs=60)
    [entry] = fleet.ask("GET", "/v1/audit", reader).json
    assert (entry["actor"], entry["action"], entry["subject"]) == (
        "core", "enrolment", "machine m1",
    )  # fmt: skip


def test_telemetry_and_events_are_in_the_team_of_their_token(fleet: Fleet) -> None:
    """They may name any session and host: a client's telemetry has no id of a machine."""
    team, text = Team(fleet, "telemetry"), create_text()
    assert team.enrol("m1", text).status == 201
    for token, session in ((text, "s1"), (fleet.token("telemetry", "ingest"), "s3")):
        telemetry = logs(session, request_id=session)
        [resource] = telemetry["resourceLogs"]
        resource["resource"]["attributes"] += [
            attribute("team.id", "other"), attribute("host.name", "h"),
        ]  # fmt: skip
        headers = {"content-type": "application/json"}
        sent = fleet.ask("POST", "/v1/logs", token, telemetry, headers=headers)
        assert sent.status == 200
    usage = {"input": 100, "cache_read": 0, "cache_write": 0, "output": 5}
    event = {"type": "Call", "id": "c", "usage": usage, "model": "gpt-5"}
    events = {"events": [{"id": "c", "session": "s2", "agent": "codex", "event": event}]}
    assert fleet.ask("POST", "/v1/events", text, events).status == 200
    listed = fleet.ask("GET", "/v1/sessions", fleet.token("telemetry", "read")).json
    stored = {each["session"]["id"]: each["session"] for each in listed}
    assert {id: each["team"] for id, each in stored.items()} == {
        "s1": "core", "s2": "core", "s3": "other",
    }  # fmt: skip
    assert stored["s1"]["host"] == "h"


def test_repeated_request_makes_no_second_token(fleet: Fleet) -> None:
    """A reply can be lost; a token of another machine cannot be taken over."""
    team, text = Team(fleet, "repeated"), create_text()
    assert [team.enrol("m1", text).status for _ in range(3)] == [201, 201, 201]
    assert len(team.rows()) == 1
    assert team.enrol("m2", text).json["error"] == "this token is another machine's"
    assert [row.machine for row in team.rows()] == ["m1"]


def test_limit_holds_when_many_machines_enrol_at_once(fleet: Fleet) -> None:
    team = Team(fleet, "many", max_machines=3)

    async def enrol_all() -> list[FleetReply]:
        bodies = [enrolment(f"m{number}", create_text()) for number in range(8)]
        asked = (ask(fleet.app, "POST", "/v1/enrol", team.token, body) for body in bodies)
        return await asyncio.gather(*asked)

    replies = fleet.run(enrol_all())
    assert sorted(reply.status for reply in replies) == [201] * 3 + [403] * 5
    assert len(team.rows()) == 3
    refused = next(reply for reply in replies if reply.status == 403)
    assert "--machines N" in refused.json["hint"]


def test_machine_has_one_token_of_a_team(fleet: Fleet) -> None:
    """It enrols again for another address of the server, or without its file."""
    team, texts = Team(fleet, "one", max_machines=2), [create_text() for _ in range(3)]
    assert [team.enrol(f"m{number}", text).status for number, text in enumerate(texts[:2])] == [
        201, 201,
    ]  # fmt: skip
    assert team.enrol("m1", texts[2]).status == 201
    assert sorted(row.machine or "" for row in team.rows()) == ["m0", "m1"]
    assert team.report("m1", texts[2]).status == 200
    assert team.report("m1", texts[1]).status == 401, "its earlier token"
    assert team.report("m0", texts[0]).status == 200
    # A daemon that has the earlier one still is not one whose token was revoked.
    assert team.enrol("m1", texts[1]).status == 201


def test_machine_of_another_enrolment_is_not_taken_over(fleet: Fleet) -> None:
    """Its id is no secret: whoever may read sees it. A revoked token keeps nobody out."""
    core, web, text = Team(fleet, "two teams"), Team(fleet, "two teams"), create_text()
    assert core.enrol("m1", text).status == 201
    refused = web.enrol("m1", create_text())
    assert (refused.status, refused.json["error"]) == (
        403, "this machine has a valid token of another enrolment",
    )  # fmt: skip
    assert "`brimline token revoke --machine m1`" in refused.json["hint"]
    assert [row.parent for row in core.rows()] == [core.row.id]
    assert core.report("m1", text).status == 200
    core.revoke(core.row.id)
    assert web.enrol("m1", create_text()).status == 201


def test_machine_that_shows_its_token_moves_to_another_enrolment(fleet: Fleet) -> None:
    """Its team's token is replaced before it ends, or it goes to another team."""
    core, web = Team(fleet, "moved", 1), Team(fleet, "moved")
    texts = [create_text() for _ in range(3)]
    assert core.enrol("m1", texts[0]).status == 201
    assert web.enrol("m2", texts[1], earlier=hash_token(texts[0])).status == 201
    assert core.row.id in [row.parent for row in core.rows()], "m2 is a copy of m1"
    assert web.enrol("m1", texts[2], earlier=hash_token(texts[0])).status == 201
    assert [(row.machine, row.parent) for row in web.rows()] == [
        ("m1", web.row.id), ("m2", web.row.id),
    ]  # fmt: skip
    assert web.report("m1", texts[0]).status == 401
    assert core.enrol("m3", create_text()).status == 201, "its place is free"


def test_token_that_was_revoked_stays_when_its_machine_moves(fleet: Fleet) -> None:
    core, web = Team(fleet, "ended"), Team(fleet, "ended")
    texts = [create_text() for _ in range(2)]
    assert core.enrol("m1", texts[0]).status == 201
    core.revoke(core.rows()[0].id)
    assert web.enrol("m1", texts[1], earlier=hash_token(texts[0])).status == 201
    assert core.enrol("m1", create_text()).json["error"] == "this machine's token was revoked"


def test_revoked_enrolment_ends_the_machines_that_it_made(fleet: Fleet) -> None:
    team, text = Team(fleet, "leaked"), create_text()
    assert team.enrol("m1", text).status == 201
    assert team.report("m1", text).status == 200
    team.revoke(team.row.id)
    assert team.report("m1", text).status == 401
    assert team.enrol("m2", create_text()).status == 401


def test_revoked_machine_does_not_enrol_again(fleet: Fleet) -> None:
    """Neither with its token nor with a new one; the others go on."""
    team, texts = Team(fleet, "stolen"), [create_text(), create_text()]
    assert [team.enrol(f"m{number}", text).status for number, text in enumerate(texts)] == [201] * 2
    team.revoke(next(row.id for row in team.rows() if row.machine == "m0"))
    assert team.report("m0", texts[0]).status == 401
    for text in (texts[0], create_text()):
        refused = team.enrol("m0", text)
        assert (refused.status, refused.json["error"]) == (403, "this machine's token was revoked")
    assert team.report("m1", texts[1]).status == 200


def test_token_of_a_machine_is_valid_from_its_last_use(fleet: Fleet) -> None:
    """One that ended is made valid again by the same machine, within the limit."""
    team, text = Team(fleet, "renewed", max_machines=1), create_text()
    assert team.enrol("m1", text).status == 201
    [row] = team.rows()
    assert row.expires_at is not None
    later = time.time() + TOUCH_EVERY_S
    fleet.run(fleet.database.tokens.touch("renewed", row.id, later))
    assert team.rows()[0].expires_at == later + MACHINE_LIFETIME_S
    execute(fleet.url, "UPDATE tokens SET expires_at = 1 WHERE organisation = 'renewed' "
            "AND machine IS NOT NULL")  # fmt: skip
    assert team.report("m1", text).status == 401
    assert team.enrol("m1", text).status == 201
    assert [each.id for each in team.rows()] == [row.id]


@pytest.mark.parametrize(
    "body",
    [{"machine": "", "hash": "0" * 64}, {"machine": "m\x00", "hash": "0" * 64},
     {"machine": "m", "hash": "no"}, {"machine": "m"}],
)  # fmt: skip
def test_invalid_enrolment_is_refused(fleet: Fleet, body: dict[str, str]) -> None:
    team = Team(fleet, f"invalid {body}")
    assert fleet.ask("POST", "/v1/enrol", team.token, body).status == 422
    assert team.rows() == []
