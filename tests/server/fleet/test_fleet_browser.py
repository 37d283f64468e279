"""Browsers on a fleet's server: the sign-in form, its cookie, pages of other sites, proxies."""

from urllib.parse import urlencode

import pytest

from brimline.server.fleet.server import FleetApp
from brimline.settings import FleetSettings, Settings
from fleet_server import FleetReply

from .conftest import OWN_PAGE, Fleet

PROXY = "10.1.2.3"
SESSIONS = "/v1/sessions"
MESSAGES = "/v1/sessions/s/messages"


def sign_in(fleet: Fleet, token: str, app: FleetApp | None = None) -> FleetReply:
    body = urlencode({"token": f" {token} "}).encode()
    return fleet.ask("POST", "/sign-in", None, body, headers=OWN_PAGE, app=app or fleet.app)


def cookie_of(reply: FleetReply) -> dict[str, str]:
    other = 'settings={"a": [1, 2]}; =; bad name=x'  # cookies of other applications of the host
    return {"cookie": f"{other}; {reply.headers['set-cookie'].partition(';')[0]}"}


def test_sign_in_turns_a_token_into_a_cookie_until_sign_out(fleet: Fleet) -> None:
    page = fleet.ask("GET", "/")
    assert (page.status, b"/sign-in" in page.body) == (401, True)
    assert fleet.ask("GET", "/sign-in").status == 200
    token = fleet.token("default", "read", "ingest", name="Ada")
    reply = sign_in(fleet, token)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    name, _, attributes = reply.headers["set-cookie"].partition("=")
    assert name == "__Host-brimline"
    for attribute in ("HttpOnly", "SameSite=Strict", "Secure", "Path=/", "Max-Age=43200"):
        assert attribute in attributes
    cookie = cookie_of(reply)
    assert token not in cookie["cookie"]
    caller = fleet.ask("GET", "/v1/identity", headers=cookie).json
    assert (caller["actor"], caller["scopes"]) == ("Ada", ["read"])
    assert caller["can_sign_out"]
    assert not fleet.ask("GET", "/v1/identity", token).json["can_sign_out"]
    assert b"<script" in fleet.ask("GET", "/", headers=cookie).body
    out = fleet.ask("POST", "/sign-out", headers=cookie | OWN_PAGE)
    assert (out.status, "Max-Age=0" in out.headers["set-cookie"]) == (303, True)
    assert fleet.ask("GET", SESSIONS, headers=cookie).status == 401
    assert fleet.ask("GET", SESSIONS, token).status == 200


def test_cookie_on_this_machine_is_named_by_the_port_and_needs_no_tls(fleet: Fleet) -> None:
    app = fleet.create_app(Settings(), is_behind_proxy=False)
    cookie = sign_in(fleet, fleet.token(), app).headers["set-cookie"]
    assert cookie.startswith("brimline-443=")
    assert "Secure" not in cookie


def test_cookie_ends_with_the_token_that_was_entered(fleet: Fleet) -> None:
    token = fleet.token(name="stolen")
    cookie = cookie_of(sign_in(fleet, token))
    (row,) = [each for each in fleet.run(fleet.database.tokens.list("default"))
              if each.name == "stolen" and each.parent is None]  # fmt: skip
    fleet.run(fleet.database.tokens.revoke("default", row.id, row.created_at + 1))
    assert fleet.ask("GET", SESSIONS, headers=cookie).status == 401
    assert sign_in(fleet, token).status == 401


@pytest.mark.parametrize("token", ["", "x", "brim_" + "a" * 43])
def test_form_says_why_a_token_does_not_sign_in(fleet: Fleet, token: str) -> None:
    reply = sign_in(fleet, token)
    assert (reply.status, b"the token is unknown" in reply.body) == (401, True)
    assert "set-cookie" not in reply.headers


def test_token_signs_in_so_often_only(fleet: Fleet) -> None:
    """Each time adds a row to the database."""
    app, token = fleet.create_app(Settings()), fleet.token()
    statuses = [sign_in(fleet, token, app).status for _ in range(62)]
    assert (statuses[:60], statuses[-1]) == ([303] * 60, 429)
    assert sign_in(fleet, fleet.token(), app).status == 303


def test_token_that_only_reports_does_not_sign_in(fleet: Fleet) -> None:
    reply = sign_in(fleet, fleet.token("default", "ingest", name="<b>"))
    assert (reply.status, b"&lt;b&gt;" in reply.body) == (403, True)


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {},
    ],
)
def test_page_of_another_site_changes_nothing(fleet: Fleet, headers: dict[str, str]) -> None:
    token = fleet.token()
    cookie = cookie_of(sign_in(fleet, token))
    assert fleet.ask("POST", MESSAGES, None, {"text": "x"}, headers=cookie | headers).status == 403
    form = urlencode({"token": token}).encode()
    assert fleet.ask("POST", "/sign-in", None, form, headers=headers).status == 403
    assert fleet.ask("POST", "/sign-out", headers=cookie | headers).status == 403
    assert fleet.ask("GET", SESSIONS, headers=cookie).status == 200


@pytest.mark.parametrize("headers", [OWN_PAGE, {"origin": "https://fleet.example"}])
def test_own_page_may_change_something(fleet: Fleet, headers: dict[str, str]) -> None:
    cookie = cookie_of(sign_in(fleet, fleet.token()))
    reply = fleet.ask(
        "POST", f"{SESSIONS}/s/messages", None, {"text": "x"}, headers=cookie | headers
    )
    assert reply.status == 404


def test_page_of_another_site_may_link_to_the_page_but_not_load_data(fleet: Fleet) -> None:
    headers = cookie_of(sign_in(fleet, fleet.token())) | {"sec-fetch-site": "same-site"}
    assert fleet.ask("GET", "/", headers=headers).status == 200
    assert fleet.ask("GET", SESSIONS, headers=headers).status == 403


def ask_behind_proxy(
    fleet: Fleet,
    method: str,
    path: str,
    headers: dict[str, str],
    token: str | None = None,
    peer: str = PROXY,
) -> FleetReply:
    """Send a request from an address to a server that trusts the proxies of a network."""
    settings = FleetSettings("X-Forwarded-User", ("10.0.0.0/8", "::1"), "acme")
    app, body = fleet.create_app(Settings(fleet=settings)), {"text": "x"}
    return fleet.ask(method, path, token, body, headers=headers, peer=peer, app=app)


def test_trusted_proxy_names_the_user(fleet: Fleet) -> None:
    user = {"x-forwarded-user": "ada@example.org"}
    caller = ask_behind_proxy(fleet, "GET", "/v1/identity", user).json
    assert (caller["organisation"], caller["actor"]) == ("acme", "ada@example.org")
    assert (caller["scopes"], caller["can_sign_out"]) == (["act", "read"], False)
    mapped = ask_behind_proxy(fleet, "GET", "/v1/identity", user, peer=f"::ffff:{PROXY}")
    assert mapped.json == caller
    assert ask_behind_proxy(fleet, "POST", MESSAGES, user).status == 403
    assert ask_behind_proxy(fleet, "POST", MESSAGES, user | OWN_PAGE).status == 404
    assert ask_behind_proxy(fleet, "POST", "/v1/events", user | OWN_PAGE).status == 403


@pytest.mark.parametrize("peer", ["203.0.113.9", "::2", "", "proxy"])
def test_header_from_another_address_is_ignored(fleet: Fleet, peer: str) -> None:
    headers = {"x-forwarded-user": "ada@example.org", "x-forwarded-for": PROXY}
    assert ask_behind_proxy(fleet, "GET", SESSIONS, headers, peer=peer).status == 401


def test_header_is_ignored_if_no_proxy_is_trusted(fleet: Fleet) -> None:
    headers = {"x-forwarded-user": "ada@example.org"}
    assert fleet.ask("GET", SESSIONS, headers=headers, peer=PROXY).status == 401


@pytest.mark.parametrize("user", ["", " ", "a\x01b", "x" * 201, "a\udcff"])
def test_proxy_without_a_valid_user_name_opens_nothing(fleet: Fleet, user: str) -> None:
    reply = ask_behind_proxy(fleet, "GET", SESSIONS, {"x-forwarded-user": user})
    assert reply.status in (401, 403)


def test_second_header_with_a_user_is_refused(fleet: Fleet) -> None:
    headers = {"x-forwarded-user": "ada", "X-Forwarded-User": "root"}
    assert ask_behind_proxy(fleet, "GET", SESSIONS, headers).status == 403


@pytest.mark.parametrize(
    ("token", "status", "actor"),
    [(None, 200, "ada"), ("eyJhbGciOi", 200, "ada"), ("brim_x", 401, None), ("ours", 200, "Bob")],
)
def test_brimline_token_counts_before_the_header_of_a_proxy(
    fleet: Fleet, token: str | None, status: int, actor: str | None
) -> None:
    """A bearer token of the proxy's own does not."""
    shown = fleet.token(name="Bob") if token == "ours" else token
    reply = ask_behind_proxy(fleet, "GET", "/v1/identity", {"x-forwarded-user": "ada"}, shown)
    assert (reply.status, reply.json.get("actor")) == (status, actor)
