"""Access to the daemon over TCP: the secret, the one-time link, the cookie of the page."""

import json
import os
import socket
import stat
import sys
import urllib.error
import urllib.request
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from brimline.api.access import LINK_LIFETIME_S, MAX_LINKS, AccessControl, PageLinks
from brimline.api.middleware import find_misdirection, is_own_host
from brimline.daemon.peer_credentials import TCP_ESTABLISHED, Peer, TcpPeers, is_trusted
from brimline.daemon.secret import NAME, derive_token, load_or_create_secret, read_secret
from brimline.daemon.sockets import read_port, write_port
from brimline.errors import StoreFailed

from .running import MAX_WAIT_S, Running
from .test_daemon import SESSION, hook_input, status_input

PORT = 8_420
NOBODY = 65_534
HOST = (b"host", b"127.0.0.1:8420")


# The secret.


def test_secret_is_created_once_long_and_private(tmp_path: Path) -> None:
    secret = load_or_create_secret(tmp_path)
    assert load_or_create_secret(tmp_path) == read_secret(tmp_path) == secret
    assert len(bytes.fromhex(secret)) == 32
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_mode_of_the_secret_does_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        load_or_create_secret(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_secret_that_others_could_read_is_replaced(tmp_path: Path, mode: int) -> None:
    secret = load_or_create_secret(tmp_path)
    (tmp_path / NAME).chmod(mode)
    assert read_secret(tmp_path) is None
    assert load_or_create_secret(tmp_path) != secret
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_truncated_secret_is_replaced(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("ab")
    (tmp_path / NAME).chmod(0o600)
    assert len(load_or_create_secret(tmp_path)) == 64


def test_secret_behind_a_symlink_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("a" * 64)
    (tmp_path / NAME).symlink_to("other")
    with pytest.raises(StoreFailed, match="secret"):
        load_or_create_secret(tmp_path)


def test_tokens_differ_by_purpose() -> None:
    """A token from a browser or a settings file opens nothing else."""
    tokens = {"secret", derive_token("secret", "page"), derive_token("secret", "hooks")}
    assert len(tokens) == 3


def test_last_port_is_remembered_and_an_invalid_one_ignored(tmp_path: Path) -> None:
    assert read_port(tmp_path) is None
    write_port(tmp_path, 8_421)
    assert read_port(tmp_path) == 8_421
    for text in ("", "x", "0", "70000", "-1"):
        (tmp_path / "port").write_text(text)
        assert read_port(tmp_path) is None


# Links and cookies.


def test_link_works_once() -> None:
    links = PageLinks()
    code = links.issue()
    assert links.redeem(code)
    assert not links.redeem(code)
    assert not links.redeem("")


def test_link_expires_after_an_hour() -> None:
    now = 100.0
    links = PageLinks(lambda: now)
    code = links.issue()
    now += LINK_LIFETIME_S
    assert not links.redeem(code)


def test_unused_links_are_limited_and_the_oldest_dropped() -> None:
    links = PageLinks()
    codes = [links.issue() for _ in range(MAX_LINKS + 1)]
    assert not links.redeem(codes[0])
    assert links.redeem(codes[1])


def test_cookie_is_http_only_same_site_and_of_one_port() -> None:
    access = AccessControl("a" * 64, PORT)
    parsed = SimpleCookie(access.cookie())
    (name,) = parsed
    assert (parsed[name]["httponly"], parsed[name]["samesite"]) == (True, "Strict")
    other_cookies = 'x=1; settings={"a": [1, 2]}; =; bad name=x'  # of programs on other ports
    header = f"{other_cookies}; {name}={parsed[name].value}".encode()
    assert access.has_cookie(header)
    assert not AccessControl("a" * 64, PORT + 1).has_cookie(header)
    assert not AccessControl("b" * 64, PORT).has_cookie(header)
    for other in (None, b"", b"\xff=;", name.encode(), header[:-1]):
        assert not access.has_cookie(other)


def test_only_the_secret_is_a_bearer_token() -> None:
    access = AccessControl("s" * 64, PORT)
    hooks = derive_token("s" * 64, "hooks").encode()
    assert access.has_secret(b"Bearer " + b"s" * 64)
    assert access.has_secret(b"bearer " + b"s" * 64)
    assert access.has_hook_token(b"Bearer " + hooks)
    for header in (None, b"", b"s" * 64, b"Basic " + b"s" * 64, b"Bearer ", b"Bearer " + hooks):
        assert not access.has_secret(header)


# Host, Origin, Sec-Fetch-Site.


@pytest.mark.parametrize("host", [b"127.0.0.1:8420", b"localhost:8420", b"[::1]:8420"])
def test_loopback_host_with_our_port_is_accepted(host: bytes) -> None:
    assert is_own_host(host, PORT)


@pytest.mark.parametrize(
    "host",
    [
        b"", b"brimline", b"brimline:8420", b"127.0.0.1", b"127.0.0.1:8421", b"localhost",
        b"localhost.evil.example:8420", b"evil.example:8420", b"192.168.1.5:8420",
        b"0.0.0.0:8420", b"127.0.0.1:8420:8420", b"[::1", b":8420", b"\xff:8420",
    ],
)  # fmt: skip
def test_other_host_or_port_is_rejected(host: bytes) -> None:
    assert not is_own_host(host, PORT)


@pytest.mark.parametrize(
    "headers",
    [
        [HOST, HOST],
        [HOST, (b"host", b"evil.example")],
        [HOST, (b"origin", b"http://127.0.0.1:8420"), (b"origin", b"http://evil.example")],
        [HOST, (b"origin", b"http://127.0.0.1:3000")],
        [HOST, (b"origin", b"null")],
        [HOST, (b"sec-fetch-site", b"cross-site")],
        [HOST, (b"sec-fetch-site", b"same-site")],
        [HOST, (b"sec-fetch-site", b"none"), (b"sec-fetch-site", b"cross-site")],
        [HOST, (b"authorization", b"a"), (b"authorization", b"b")],
        [],
    ],
)
def test_duplicate_headers_and_foreign_origins_are_rejected(
    headers: list[tuple[bytes, bytes]],
) -> None:
    assert find_misdirection(headers, PORT) is not None


@pytest.mark.parametrize(
    "more",
    [
        [],
        [(b"origin", b"http://127.0.0.1:8420"), (b"sec-fetch-site", b"same-origin")],
        [(b"sec-fetch-site", b"none")],
    ],
)
def test_requests_of_programs_our_page_and_typed_addresses_are_accepted(
    more: list[tuple[bytes, bytes]],
) -> None:
    assert find_misdirection([HOST, *more], PORT) is None


# The peer.


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the user of a TCP peer")
def test_closed_peer_is_not_trusted() -> None:
    """The kernel reports a closed socket as root's."""
    peers = TcpPeers.open()
    assert peers is not None
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        connection, _ = server.accept()
        with connection:
            assert peers.is_ours(connection)
            client.close()
            assert not is_trusted(peers.peer_of(connection), NOBODY)
    peers.close()


def test_only_our_user_and_connected_root_are_trusted_peers() -> None:
    closing = 5
    assert is_trusted(Peer(1_000, TCP_ESTABLISHED), 1_000)
    assert is_trusted(Peer(1_000, closing), 1_000)
    assert is_trusted(Peer(0, TCP_ESTABLISHED), 1_000)
    assert not is_trusted(Peer(0, closing), 1_000)
    assert not is_trusted(Peer(1_001, TCP_ESTABLISHED), 1_000)
    assert not is_trusted(None, 1_000)


# A running daemon.


def request(
    daemon: Running, path: str, body: bytes | None = None, method: str | None = None, **more: str
) -> tuple[int, Any, bytes]:
    """Return status, headers and body of a request with only the given headers."""
    address = f"http://127.0.0.1:{daemon.port}{path}"
    http_request = urllib.request.Request(address, body, headers=more, method=method)
    opener = urllib.request.build_opener(NoRedirect)
    try:
        with opener.open(http_request, timeout=MAX_WAIT_S) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Returns a redirect instead of following it."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Do not follow."""


@pytest.mark.slow
def test_every_route_without_the_secret_returns_401(daemon: Running) -> None:
    daemon.hook(status_input(90_000), "statusline")
    code, headers, document = request(
        daemon, "/openapi.json", Authorization=f"Bearer {daemon.secret}"
    )
    assert code == 200
    for path, operations in json.loads(document)["paths"].items():
        place = path.replace("{id}", SESSION).replace("{agent}", "claude").replace("{message}", "m")
        for method in operations:
            body = None if method == "get" else b"{}"
            code, headers, answer = request(daemon, place, body, method.upper())
            assert (code, headers["www-authenticate"]) == (401, "Bearer"), path
            assert SESSION.encode() not in answer
    for path in ("/openapi.json", "/assets/index.js", "/nothing"):
        assert request(daemon, path)[0] == 401


@pytest.mark.slow
def test_page_without_a_cookie_explains_how_to_open_it(daemon: Running) -> None:
    code, headers, body = request(daemon, "/")
    assert code == 401
    assert headers["content-type"].startswith("text/html")
    assert b"brimline open" in body


@pytest.mark.slow
def test_link_sets_a_cookie_once_and_redirects_to_a_clean_address(daemon: Running) -> None:
    path = daemon.link.partition(f":{daemon.port}")[2]
    code, headers, _ = request(daemon, path)
    assert (code, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"].partition(";")[0]
    assert request(daemon, "/", Cookie=cookie)[0] == 200
    assert request(daemon, "/v1/sessions", Cookie=cookie)[0] == 200
    code, _, body = request(daemon, path)
    assert (code, b"has been used" in body) == (401, True)
    assert request(daemon, path, Cookie=cookie)[0] == 303
    printed = daemon.command("open", "--print").stdout.split("\n")[1]
    assert request(daemon, printed.partition(f":{daemon.port}")[2])[0] == 303


@pytest.mark.slow
def test_head_does_not_use_a_link_up(daemon: Running) -> None:
    path = daemon.link.partition(f":{daemon.port}")[2]
    code, headers, _ = request(daemon, path, method="HEAD")
    assert (code, headers["set-cookie"]) == (303, None)
    assert request(daemon, path)[1]["set-cookie"]


@pytest.mark.slow
def test_cookie_is_valid_after_a_restart(daemon: Running) -> None:
    _, headers, _ = request(daemon, daemon.link.partition(f":{daemon.port}")[2])
    cookie = headers["set-cookie"].partition(";")[0]
    daemon.stop()
    daemon.start()
    assert request(daemon, "/v1/sessions", Cookie=cookie)[0] == 200


@pytest.mark.slow
def test_hook_token_can_post_hooks_but_read_nothing(daemon: Running) -> None:
    token = f"Bearer {derive_token(daemon.secret, 'hooks')}"
    daemon.hook(status_input(120_000), "statusline")
    body = json.dumps(hook_input("UserPromptSubmit")).encode()
    code, _, answer = request(daemon, "/hooks/claude?by=brimline", body, Authorization=token)
    assert (code, b"60%" in answer) == (200, True)
    for path in ("/v1/sessions", "/v1/messages", f"/v1/sessions/{SESSION}"):
        assert request(daemon, path, Authorization=token)[0] == 401
    sent = request(daemon, f"/v1/sessions/{SESSION}/messages", b"{}", Authorization=token)
    assert sent[0] == 401


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"/v1/sessions/{SESSION}/handoff"),
        ("POST", f"/v1/sessions/{SESSION}/clear"),
        ("DELETE", "/v1/daemon"),
        ("POST", "/v1/daemon/link"),
    ],
)
def test_files_panes_and_shutdown_are_refused_over_tcp(
    daemon: Running, method: str, path: str
) -> None:
    bearer = f"Bearer {daemon.secret}"
    code, _, body = request(
        daemon, path, b'{"path": "/etc/hostname"}', method, Authorization=bearer
    )
    assert (code, b"Unix socket" in body) == (403, True)
    assert daemon.get("/healthz") == {"status": "ok"}


@pytest.mark.slow
def test_log_of_a_background_daemon_has_no_link(daemon: Running) -> None:
    daemon.stop()
    assert daemon.command("serve", "--background").returncode == 0
    try:
        assert "code=" not in (daemon.state / "serve.log").read_text()
    finally:
        daemon.command("serve", "--stop")


@pytest.mark.slow
@pytest.mark.parametrize("is_open", [False, True])
def test_only_the_old_endpoints_can_be_opened_to_all_by_a_setting(
    tmp_path: Path, is_open: bool
) -> None:
    daemon = Running(tmp_path)
    settings = daemon.home / ".config" / "brimline" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[daemon]\ncontext_usage_without_secret = {str(is_open).lower()}\n")
    daemon.start()
    try:
        daemon.hook(status_input(90_000), "statusline")
        expected = 200 if is_open else 401
        posted = b'{"session_id": "%s", "used_percentage": 10}' % SESSION.encode()
        assert request(daemon, "/hooks/context-usage", posted)[0] == expected
        assert request(daemon, f"/sessions/{SESSION}")[0] == expected
        assert request(daemon, "/sessions")[0] == expected
        assert request(daemon, f"/v1/sessions/{SESSION}")[0] == 401
        assert request(daemon, "/hooks/claude", b"{}")[0] == 401
        assert request(daemon, f"/sessions/{SESSION}", Origin="http://evil.example")[0] == 403
    finally:
        daemon.close()


@pytest.mark.slow
def test_next_daemon_takes_the_same_port(daemon: Running) -> None:
    """HTTP hooks in settings files contain the port."""
    daemon.stop()
    assert daemon.command("serve", "--background").returncode == 0
    try:
        assert daemon.get("/v1/daemon")["address"].endswith(f":{daemon.port}")
    finally:
        daemon.command("serve", "--stop")
