"""Who may do what on a fleet's server."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from brimline.api.identity import AccessScope
from brimline.api.openapi import Endpoint, build_document
from brimline.api.responses import RequestRefused
from brimline.api.session_cache import RECENT_S, SessionCache
from brimline.api.views import Views
from brimline.context.inbox import Message
from brimline.daemon.uplink.token_text import PREFIX, hash_token
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.server.fleet.authentication import (
    LOOKUP_LIFETIME_S,
    Authenticator,
    TokenLookup,
)
from brimline.server.fleet.organisations import FLEET_ENDPOINTS, Organisations
from brimline.settings import FleetSettings, Settings
from brimline.store.base import PutHandoff, PutSession, PutThread, QueueMessage
from brimline.store.fleet import MachineReport
from brimline.store.rows import HandoffRow, SessionRow, ThreadRow
from brimline.store.sqlite import MemoryStore
from fleet_server import FleetReply, ask
from postgres_server import execute

from .conftest import OWN_PAGE, Fleet

PEER = "203.0.113.9"
UNKNOWN = f"{PREFIX}{'a' * 43}"
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
    "/v1/uplink": {
        "machine": "m1",
        "sessions": [{"id": SESSION, "agent": "claude", "seen_at": 1.0, "version": "of globex"}],
        "delivered": [MESSAGE],
        "refused": [MESSAGE],
        "is_first": True,
    },
}


@pytest.fixture(scope="module")
def acme(fleet: Fleet) -> str:
    """The token of an organisation that has a session with everything that a session can have."""
    token = fleet.token("acme", name=f"token-{SECRET}")
    assert fleet.ask("POST", "/v1/events", token, call_event(f"call-{SECRET}")).status == 200
    row = SessionRow(
        SESSION, "claude", time.time(), machine="m1", project=f"/project-{SECRET}", receive="all"
    )
    handoff = HandoffRow(
        f"handoff-{SECRET}", SESSION, 1.0, "h.md", "0", f"text-{SECRET}", "agent", 0, 1
    )
    message = Message(MESSAGE, SESSION, f"text-{SECRET}", time.time())
    writes = [PutSession(row), PutHandoff(handoff), QueueMessage(message)]
    assert all(fleet.run(fleet.database.store("acme").write(writes)))
    host = f"host-{SECRET}"
    report = MachineReport("m1", host, None, None, None, "all", 0, 0, None, time.time())
    fleet.run(fleet.database.machines("acme").report(report))
    fleet.run(fleet.database.session_sums("acme").update())
    sent = fleet.ask("POST", f"/v1/sessions/{SESSION}/messages", token, {"text": f"x {SECRET}"})
    assert sent.status == 201
    return token


def path_of(endpoint: Endpoint) -> str:
    path = endpoint.path.replace("{id}", SESSION).replace("{message}", MESSAGE)
    return f"{path}?by=project" if path.startswith("/v1/fleet") else path


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


@pytest.mark.parametrize("scope", get_args(AccessScope))
def test_each_scope_opens_its_own_routes_only(fleet: Fleet, acme: str, scope: AccessScope) -> None:
    token = fleet.token("acme", scope, name=f"only {scope}")
    refused: set[str] = set()
    for endpoint in FLEET_ENDPOINTS:
        path = endpoint.path.replace("{id}", "nosuch").replace("{message}", "nosuch")
        reply = fleet.ask(endpoint.method, path, token, None)
        if reply.status == 403:
            assert f"lacks the scope '{endpoint.needed_scope}'" in reply.json["error"]
            refused.add(named(endpoint))
    others = [each for each in FLEET_ENDPOINTS if each.needed_scope not in (scope, "any")]
    assert refused == {named(each) for each in others}


@pytest.mark.parametrize("scope", get_args(AccessScope))
def test_token_of_any_scope_may_ask_whose_it_is(fleet: Fleet, scope: AccessScope) -> None:
    reply = fleet.ask("GET", "/v1/identity", fleet.token("acme", scope, name=f"only {scope}"))
    assert reply.json == {
        "organisation": "acme",
        "actor": f"only {scope}",
        "scopes": [scope],
        "can_sign_out": False,
    }
    assert fleet.ask("GET", "/v1/identity").status == 401


def test_server_has_no_route_that_belongs_to_one_machine(fleet: Fleet, acme: str) -> None:
    assert not [named(each) for each in FLEET_ENDPOINTS if each.unix_only]
    for path in ("/v1/history", "/hooks/claude", "/sessions", f"/v1/sessions/{SESSION}/clear"):
        assert fleet.ask("POST", path, acme, {}).status in (404, 405)
    assert fleet.ask("GET", f"/v1/sessions/{SESSION}/explain", acme).status == 404
    served = fleet.ask("GET", "/openapi.json", acme).json
    assert served["paths"] == build_document(FLEET_ENDPOINTS)["paths"]
    assert set(served["components"]["securitySchemes"]) == {"token", "cookie"}


@pytest.mark.parametrize(
    "authorization",
    [
        "", "Bearer", "Bearer ", "Bearer x", "Basic eDp5", f"Bearer {PREFIX}", "Bearer brim_\xff",
        f"Bearer {PREFIX}{'a' * 43}", f"Bearer {PREFIX}{'a' * 42}'", "Bearer " + "a" * 60_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/sessions", "/nosuch", "/openapi.json", "/assets/x"])
def test_request_without_a_known_token_is_refused(
    fleet: Fleet, authorization: str, path: str
) -> None:
    reply = fleet.ask("GET", path, headers={"authorization": authorization})
    assert reply.status == 401
    assert set(reply.json) == {"error", "hint"}
    assert reply.headers["www-authenticate"] == "Bearer"


def test_expired_token_is_refused(fleet: Fleet) -> None:
    reply = fleet.ask("GET", "/v1/sessions", fleet.token(expires_at=time.time() - 1, name="old"))
    assert (reply.status, reply.json["error"]) == (401, "the token 'old' has expired")


def test_revoked_token_is_refused_as_soon_as_its_lookup_is_old(fleet: Fleet) -> None:
    text = fleet.token(name="lost laptop")
    now = time.time()
    lookup = TokenLookup(fleet.database.tokens, lambda: now)
    row = fleet.run(lookup.find(text, PEER))
    assert row is not None
    assert row.is_valid(now)
    fleet.run(fleet.database.tokens.revoke("default", row.id, now))
    now += LOOKUP_LIFETIME_S
    row = fleet.run(lookup.find(text, PEER))
    assert row is not None
    assert not row.is_valid(now)
    reply = fleet.ask("GET", "/v1/sessions", text)
    assert (reply.status, reply.json["error"]) == (401, "the token 'lost laptop' was revoked")
    assert fleet.ask("GET", "/", text).status == 401


def test_stream_ends_with_its_token(fleet: Fleet) -> None:
    """What changes after that is not sent; a revoked token is refused by the same check."""
    app, other = fleet.create_app(Settings(), is_stopping=False), fleet.token("streamed")
    token = fleet.token("streamed", expires_at=time.time() + 1.2)

    async def watch() -> FleetReply:
        stream = asyncio.create_task(ask(app, "GET", "/v1/stream", token))
        for number in range(100):
            await ask(app, "POST", "/v1/events", other, call_event(f"call-{number}"))
            if (await asyncio.wait([stream], timeout=0.1))[0]:
                break
        return await asyncio.wait_for(stream, 1.0)

    streamed = fleet.run(watch())
    assert (streamed.status, b"model-call-" in streamed.body) == (200, True)
    assert fleet.ask("GET", "/v1/stream", token, app=app).status == 401


def test_address_that_tries_unknown_tokens_has_to_wait_but_known_tokens_have_not(
    fleet: Fleet,
) -> None:
    now, known, new = 1e9, fleet.token(), fleet.token()
    lookup = TokenLookup(fleet.database.tokens, lambda: now, unknown_per_minute=2)
    assert fleet.run(lookup.find(known, PEER)) is not None
    for guess in "ab":
        assert fleet.run(lookup.find(f"{PREFIX}{guess * 43}", PEER)) is None
    with pytest.raises(RequestRefused, match="too many unknown tokens") as refused:
        fleet.run(lookup.find(new, PEER))
    assert (refused.value.status, refused.value.retry_after_s) == (429, 30)
    now += LOOKUP_LIFETIME_S
    assert fleet.run(lookup.find(known, PEER)) is not None
    assert fleet.run(lookup.find(new, "203.0.113.7")) is not None


@pytest.mark.parametrize("is_behind_proxy", [True, False])
def test_client_of_a_proxy_that_tries_unknown_tokens_does_not_lock_out_others(
    fleet: Fleet, is_behind_proxy: bool
) -> None:
    """All have the proxy's address; what it adds to the header comes last."""
    lookup = TokenLookup(fleet.database.tokens, unknown_per_minute=2)
    authenticator = Authenticator(lookup, FleetSettings(), "cookie", is_behind_proxy)

    def show(token: str, forwarded_for: str) -> bool:
        headers = [(b"x-forwarded-for", forwarded_for.encode())]
        scope = {"client": (PEER, 50_000), "headers": headers}
        return fleet.run(authenticator.find_token(token, scope)) is not None

    for _ in range(2):
        assert not show(UNKNOWN, "198.51.100.2, 198.51.100.1")
    with pytest.raises(RequestRefused, match="too many unknown tokens"):
        show(fleet.token(), "198.51.100.1")
    if is_behind_proxy:
        assert show(fleet.token(), "198.51.100.2")
    else:  # anyone can send the header
        with pytest.raises(RequestRefused, match="too many unknown tokens"):
            show(fleet.token(), "198.51.100.2")


def test_database_that_cannot_be_written_to_is_still_shown(fleet: Fleet) -> None:
    body = "BEGIN RAISE disk_full; END"
    refuse = f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS '{body}'"
    trigger = "CREATE TRIGGER refuse BEFORE UPDATE ON tokens EXECUTE FUNCTION refuse()"
    execute(fleet.url, refuse, trigger)
    try:
        assert fleet.ask("GET", "/v1/sessions", fleet.token()).status == 200
    finally:
        execute(fleet.url, "DROP FUNCTION refuse CASCADE")


def test_token_is_stored_as_its_hash_with_the_time_of_its_last_use(fleet: Fleet) -> None:
    text = fleet.token("hashed")
    assert fleet.ask("GET", "/v1/identity", text).status == 200
    (row,) = fleet.run(fleet.database.tokens.list("hashed"))
    assert text not in repr(row)
    assert row.hash == hash_token(text)
    assert row.last_used_at is not None


def test_second_authorization_header_is_refused(fleet: Fleet, acme: str) -> None:
    headers = {"authorization": f"Bearer {acme}", "Authorization": "Bearer x"}
    assert fleet.ask("GET", "/v1/sessions", headers=headers).status == 403


def test_message_is_from_whoever_sends_it_and_audited(fleet: Fleet, acme: str) -> None:
    token = fleet.token("acme", "act", "read", name="Ada")
    path = f"/v1/sessions/{SESSION}/messages"
    sent = fleet.ask("POST", path, token, {"text": "Stop", "sender": "the boss"})
    assert (sent.status, sent.json["typed"]) == (201, False)
    message = sent.json["id"]
    (stored,) = [each for each in fleet.ask("GET", path, acme).json if each["id"] == message]
    assert (stored["sender"], stored["state"]) == ("Ada", "queued")
    assert fleet.ask("DELETE", f"{path}/{message}", token).json == {"cancelled": True}
    handed = fleet.ask("POST", f"/v1/sessions/{SESSION}/handoff", token, {"text": "# Go on"})
    assert (handed.status, handed.json["author"], handed.json["path"]) == (201, "Ada", "handoff.md")
    entries = fleet.ask("GET", "/v1/audit?limit=3", token).json
    assert [
        (each["actor"], each["action"], each["session"], each["subject"]) for each in entries
    ] == [
        ("Ada", "handoff", SESSION, handed.json["sha256"]),
        ("Ada", "cancellation", SESSION, message),
        ("Ada", "message", SESSION, message),
    ]
    before = entries[0]["place"]
    assert fleet.ask("GET", f"/v1/audit?limit=2&before={before}", token).json == entries[1:]
    for limit in ("x", "0", "9" * 5_000):
        assert fleet.ask("GET", f"/v1/audit?limit={limit}", token).status == 422


def test_session_that_no_machine_reports_gets_no_messages(fleet: Fleet) -> None:
    """Only the telemetry of its client is known: a message would never arrive."""
    token = fleet.token("telemetry only")
    assert fleet.ask("POST", "/v1/events", token, call_event("c")).status == 200
    for path, body in (("messages", {"text": "hi"}), ("handoff", {"text": "hi"})):
        reply = fleet.ask("POST", f"/v1/sessions/{SESSION}/{path}", token, body)
        assert reply.status == 409
        assert "uplink" in reply.json["hint"]
    assert fleet.ask("GET", "/v1/audit", token).json == []


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "a\x1b[2Jb", "x" * (256 << 10) + "y"])
def test_handoff_that_no_agent_could_read_is_refused(fleet: Fleet, acme: str, text: str) -> None:
    reply = fleet.ask("POST", f"/v1/sessions/{SESSION}/handoff", acme, {"text": text})
    assert reply.status == 422
    assert "cannot use handoff.md as a handoff" in reply.json["error"]


def test_body_that_is_too_long_is_refused(fleet: Fleet, acme: str) -> None:
    body = b" " * ((1 << 20) + 1)
    assert fleet.ask("POST", f"/v1/sessions/{SESSION}/messages", acme, body).status == 413
    form = b"token=" + b" " * (4 << 10)  # anyone may send one
    assert fleet.ask("POST", "/sign-in", None, form, headers=OWN_PAGE).status == 413


def test_token_that_sends_too_much_waits_and_no_other(fleet: Fleet) -> None:
    app = fleet.create_app(Settings(fleet=FleetSettings(requests_per_minute=2)))
    eager, other = fleet.token(), fleet.token()
    statuses = [fleet.ask("GET", "/v1/identity", eager, app=app).status for _ in range(3)]
    assert statuses == [200, 200, 429]
    refused = fleet.ask("GET", "/v1/identity", eager, app=app)
    assert refused.headers["retry-after"] == "30"
    assert "Try again in 30 s" in refused.json["hint"]
    assert fleet.ask("GET", "/v1/identity", other, app=app).status == 200


def test_old_sessions_of_every_organisation_are_removed(fleet: Fleet) -> None:
    store = fleet.database.store("quiet")
    fleet.run(store.write([PutSession(SessionRow("old", "claude", 1.0))]))
    fleet.run(fleet.create_app(Settings()).organisations.forget_old())
    assert fleet.run(store.sessions()) == []


def test_replica_whose_clock_is_ahead_removes_nothing(fleet: Fleet) -> None:
    token = fleet.token("ahead")
    assert fleet.ask("POST", "/v1/events", token, call_event("c")).status == 200
    years_ahead = Organisations(
        fleet.database, fleet.app.organisations.get, lambda: time.time() + 3e8
    )
    fleet.run(years_ahead.forget_old())
    assert fleet.ask("GET", f"/v1/sessions/{SESSION}", token).status == 200


def test_server_lists_the_sessions_of_a_day(fleet: Fleet) -> None:
    """All of a month would not fit into the memory of a replica; each can be asked for."""
    token, now = fleet.token("month"), time.time()
    rows = [SessionRow(f"s{days}", "claude", now - days * 86_400 - 60) for days in (0, 2)]
    assert all(fleet.run(fleet.database.store("month").write([*map(PutSession, rows)])))
    for since in ("", "?since=24h"):
        views = fleet.ask("GET", f"/v1/sessions{since}", token).json
        assert [view["session"]["id"] for view in views] == ["s0"]
    assert fleet.ask("GET", "/v1/sessions/s2", token).status == 200
    for since in ("25h", "all"):
        reply = fleet.ask("GET", f"/v1/sessions?since={since}", token)
        assert (reply.status, "at most 24h" in reply.json["error"]) == (422, True)


def test_sessions_of_a_server_are_listed_in_pages(fleet: Fleet) -> None:
    """Each once, in the order of the whole list, also those that were seen at the same time."""
    token, now = fleet.token("pages"), time.time()
    ids = [f"s {n}, &\u00e9" for n in range(7)]
    rows = [SessionRow(id, "claude", now - 60 - n // 3) for n, id in enumerate(ids)]
    assert all(fleet.run(fleet.database.store("pages").write([*map(PutSession, rows)])))
    assert list(pages_of(fleet, token, "")) == [ids[:2], ids[2:4], ids[4:6], ids[6:]]
    reply = fleet.ask("GET", "/v1/sessions", token)
    assert ([view["session"]["id"] for view in reply.json], "link" in reply.headers) == (ids, False)
    for query in ("limit=0", "limit=x", "before=5", "before=x,s", "before=nan,s"):
        reply = fleet.ask("GET", f"/v1/sessions?{query}", token)
        assert (reply.status, "expected" in reply.json["error"]) == (422, True), query


def test_sessions_of_a_server_are_listed_by_need_in_pages(fleet: Fleet) -> None:
    """The most urgent first, however long ago they were seen; those that ended are the last."""
    token, now = fleet.token("need"), time.time()
    ended = SessionRow("ended", "claude", now, ended_at=now)
    rows = [SessionRow(f"s,{n}", "claude", now - 600 * n) for n in range(6)]
    fills = {f"s,{n}": 10.0 + n // 2 for n in range(6)}
    threads = [
        ThreadRow(id, "main", 0, 0, "transcript", "measured", at=now - 60, sent=1, window=2,
                  limit=2, percent=fill, percent_raw=fill, percent_of_limit=fill)
        for id, fill in fills.items()
    ]  # fmt: skip
    writes = [*map(PutSession, [ended, *rows]), *map(PutThread, threads)]
    assert all(fleet.run(fleet.database.store("need").write(writes)))
    assert list(pages_of(fleet, token, "&order=need")) == [
        ["s,4", "s,5"], ["s,2", "s,3"], ["s,0", "s,1"], ["ended"]
    ]  # fmt: skip
    views = fleet.ask("GET", "/v1/sessions?order=need&since=15m", token).json
    assert [view["session"]["id"] for view in views] == ["s,0", "s,1", "ended"]
    for query in ("order=cost", "order=need&before=1.0,s", "order=need&before=1,0,x,s"):
        reply = fleet.ask("GET", f"/v1/sessions?{query}", token)
        assert (reply.status, "expected" in reply.json["error"]) == (422, True), query


def pages_of(fleet: Fleet, token: str, query: str) -> Iterator[list[str]]:
    """The ids of each page of two sessions."""
    path = f"/v1/sessions?since=1h&limit=2{query}"
    while path:
        reply = fleet.ask("GET", path, token)
        yield [view["session"]["id"] for view in reply.json]
        link = reply.headers.get("link", "")
        assert link == "" or link.endswith('>; rel="next"')
        path = link.partition(">")[0].lstrip("<")


async def test_session_that_is_not_recent_leaves_the_cache_of_a_server() -> None:
    seen_at = {"old": 1e9 - RECENT_S - 1, "soon old": 1e9 - RECENT_S + 1, "new": 1e9}

    store, rules, now = MemoryStore(), Rules(), 1e9
    views = Views(store, Monitor(store, lambda: now, rules), rules)
    cache = SessionCache(store, views, lambda: now, recent_only=True)
    await store.write([PutSession(SessionRow(id, "claude", at)) for id, at in seen_at.items()])
    await cache.refresh()
    assert [id for id in seen_at if cache.get(id)] == ["soon old", "new"]
    now += 60
    await cache.refresh()
    assert [id for id in seen_at if cache.get(id)] == ["new"]


def test_machine_gets_what_people_send_to_its_session(fleet: Fleet) -> None:
    token = fleet.token("sent", name="Ada")
    report(fleet, token, "all")
    message = fleet.ask("POST", "/v1/sessions/s/messages", token, {"text": "Stop"}).json["id"]
    fleet.ask("POST", "/v1/sessions/s/handoff", token, {"text": "# Go on"})
    reply = fleet.ask("POST", "/v1/uplink", token, {"machine": "m1", "receive": "all"}).json
    sent = [(each["id"], each["sender"], each["text"]) for each in reply["messages"]]
    assert sent == [(message, "Ada", "Stop")]  # the machine labels it
    assert [(each["text"], each["author"]) for each in reply["documents"]] == [("# Go on", "Ada")]
    assert "documents" not in fleet.ask("POST", "/v1/uplink", token, {"machine": "m2"}).json


def report(fleet: Fleet, token: str, receive: str, is_first: bool = False) -> None:
    """Send a batch of a machine with a session."""
    session = {"id": "s", "agent": "claude", "seen_at": time.time()}
    batch = {"machine": "m1", "sessions": [session], "receive": receive, "is_first": is_first}
    assert fleet.ask("POST", "/v1/uplink", token, batch).status == 200


@pytest.mark.parametrize(
    ("receive", "statuses"),
    [("off", (409, 409)), ("handoffs", (409, 201)), ("all", (201, 201)), ("later", (409, 409))],
)
def test_what_a_machine_does_not_accept_is_refused_at_once(
    fleet: Fleet, receive: str, statuses: tuple[int, int]
) -> None:
    token = fleet.token(f"receive {receive}")
    report(fleet, token, receive)
    view = fleet.ask("GET", "/v1/sessions/s", token).json
    assert view["session"]["receive"] == receive  # by which the page offers a button
    replies = [
        fleet.ask("POST", f"/v1/sessions/s/{path}", token, {"text": "hi"})
        for path in ("messages", "handoff")
    ]
    assert tuple(reply.status for reply in replies) == statuses
    for reply, noun in zip(replies, ("messages", "handoffs"), strict=True):
        if reply.status == 409:
            assert reply.json["error"] == f"the machine of s accepts no {noun}"
            assert "receive" in reply.json["hint"]
    assert len(fleet.ask("GET", "/v1/audit", token).json) == statuses.count(201)


def test_machine_of_an_earlier_version_is_taken_to_accept_nothing(fleet: Fleet) -> None:
    token = fleet.token("earlier version")
    session = {"id": "s", "agent": "claude", "seen_at": time.time()}
    batch = {"machine": "m1", "sessions": [session]}
    assert fleet.ask("POST", "/v1/uplink", token, batch).status == 200
    assert fleet.ask("POST", "/v1/sessions/s/messages", token, {"text": "hi"}).status == 409


def test_setting_that_changes_with_a_restart_holds_for_all_sessions_on_all_replicas(
    fleet: Fleet,
) -> None:
    token, other = fleet.token("restarted"), fleet.create_app(Settings())
    report(fleet, token, "all")
    first = {"machine": "m1", "is_first": True}  # without the session, which has not changed
    assert fleet.ask("POST", "/v1/uplink", token, first).status == 200
    for app in (fleet.app, other):
        reply = fleet.ask("POST", "/v1/sessions/s/messages", token, {"text": "hi"}, app=app)
        assert reply.status == 409


def test_no_more_messages_are_queued_and_sent_than_a_machine_holds(fleet: Fleet) -> None:
    token = fleet.token("many")
    sessions = [{"id": f"s{n}", "agent": "claude", "seen_at": time.time()} for n in range(11)]
    batch = {"machine": "m1", "sessions": sessions, "receive": "all"}
    assert fleet.ask("POST", "/v1/uplink", token, batch).status == 200

    def send(session: int, text: str = "hi") -> FleetReply:
        return fleet.ask("POST", f"/v1/sessions/s{session}/messages", token, {"text": text})

    assert {send(0).status for _ in range(20)} == {201}
    refused = send(0)
    assert refused.status == 409
    assert "session s0 has 20 pending messages" in refused.json["error"]
    assert {send(number).status for number in range(1, 10) for _ in range(20)} == {201}
    refused = send(10)
    assert refused.status == 409
    assert "the machine of s10 has 200 pending messages" in refused.json["error"]
    poll = {"machine": "m1", "receive": "all"}
    replies = [fleet.ask("POST", "/v1/uplink", token, poll).json for _ in range(3)]
    assert [len(each.get("messages", [])) for each in replies] == [100, 100, 0]
    ids = [message["id"] for message in replies[0]["messages"]]
    assert fleet.ask("POST", "/v1/uplink", token, poll | {"refused": ids}).status == 200
    states = [each["state"] for each in fleet.ask("GET", "/v1/sessions/s0/messages", token).json]
    assert states == ["cancelled"] * 20
    assert send(0).status == 201
    assert send(1, "x" * 8_700).status == 413
    assert send(1, "\n.\n" * 2_000).status == 413  # each line is quoted


def test_handoffs_within_a_day_are_limited(fleet: Fleet) -> None:
    token = fleet.token("many documents")
    report(fleet, token, "handoffs")
    replies = [
        fleet.ask("POST", "/v1/sessions/s/handoff", token, {"text": f"# {number}"}).status
        for number in range(21)
    ]
    assert replies == [201] * 20 + [409]


def test_no_proxy_keeps_a_reply_for_others(fleet: Fleet, acme: str) -> None:
    for path, token in (("/v1/sessions", acme), ("/v1/sessions", None), ("/healthz", None)):
        assert fleet.ask("GET", path, token).headers["cache-control"] == "no-store"
    assert fleet.ask("GET", "/", acme).headers["cache-control"] == "no-cache"
