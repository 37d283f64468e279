"""Who may use the daemon over TCP: the secret, the link that works once, the page's cookie."""

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

from brimline.server.api.access import LINK_LIFETIME_S, MAX_LINKS, AccessControl, PageLinks
from brimline.server.api.middleware import find_misdirection, is_own_host
from brimline.server.port_file import read_port, write_port
from brimline.server.secret import NAME, derive_token, load_or_create_secret, read_secret
from brimline.server.tcp_peer import TCP_ESTABLISHED, Peer, TcpPeers, is_trusted
from brimline.store.failures import StoreFailed

from .running import PATIENCE, Running
from .test_daemon import SESSION, hook_input, status_input

PORT = 8_420
NOBODY = 65_534
HOST = (b"host", b"127.0.0.1:8420")


# The secret.


def test_secret_is_kept_and_private(tmp_path: Path) -> None:
    """A secret is made once, is long, and can be read by its user alone."""
    secret = load_or_create_secret(tmp_path)
    assert load_or_create_secret(tmp_path) == read_secret(tmp_path) == secret
    assert len(bytes.fromhex(secret)) == 32
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_secret_under_any_umask(tmp_path: Path, umask: int) -> None:
    """The mode of the file does not depend on the umask."""
    before = os.umask(umask)
    try:
        load_or_create_secret(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_secret_that_others_could_read_is_replaced(tmp_path: Path, mode: int) -> None:
    """A secret that somebody else may know is none."""
    secret = load_or_create_secret(tmp_path)
    (tmp_path / NAME).chmod(mode)
    assert read_secret(tmp_path) is None
    assert load_or_create_secret(tmp_path) != secret
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_half_a_secret_is_replaced(tmp_path: Path) -> None:
    """A file that a full disk cut off is not taken for a secret."""
    (tmp_path / NAME).write_text("ab")
    (tmp_path / NAME).chmod(0o600)
    assert len(load_or_create_secret(tmp_path)) == 64


def test_secret_behind_a_link_is_refused(tmp_path: Path) -> None:
    """A link in the place of the secret is not followed."""
    (tmp_path / "other").write_text("a" * 64)
    (tmp_path / NAME).symlink_to("other")
    with pytest.raises(StoreFailed, match="secret"):
        load_or_create_secret(tmp_path)


def test_tokens_differ_by_purpose() -> None:
    """What a browser or a settings file holds opens nothing else."""
    tokens = {"secret", derive_token("secret", "page"), derive_token("secret", "hooks")}
    assert len(tokens) == 3


def test_port_is_remembered(tmp_path: Path) -> None:
    """The port of the last daemon; what is no port is none."""
    assert read_port(tmp_path) is None
    write_port(tmp_path, 8_421)
    assert read_port(tmp_path) == 8_421
    for text in ("", "x", "0", "70000", "-1"):
        (tmp_path / "port").write_text(text)
        assert read_port(tmp_path) is None


# Links and cookies.


def test_link_works_once() -> None:
    """A code that was redeemed is gone; one that was never issued is none."""
    links = PageLinks()
    code = links.issue()
    assert links.redeem(code)
    assert not links.redeem(code)
    assert not links.redeem("")


def test_link_expires() -> None:
    """A code that nobody used within an hour is worth nothing."""
    now = 100.0
    links = PageLinks(lambda: now)
    code = links.issue()
    now += LINK_LIFETIME_S
    assert not links.redeem(code)


def test_links_are_bounded() -> None:
    """Links that nobody uses do not fill the memory: the oldest go."""
    links = PageLinks()
    codes = [links.issue() for _ in range(MAX_LINKS + 1)]
    assert not links.redeem(codes[0])
    assert links.redeem(codes[1])


def test_cookie_is_strict_and_of_one_port() -> None:
    """Scripts cannot read the cookie, no other site can use it, no other daemon takes it."""
    access = AccessControl("a" * 64, PORT)
    parsed = SimpleCookie(access.cookie())
    (name,) = parsed
    assert (parsed[name]["httponly"], parsed[name]["samesite"]) == (True, "Strict")
    header = f"x=1; {name}={parsed[name].value}".encode()
    assert access.has_cookie(header)
    assert not AccessControl("a" * 64, PORT + 1).has_cookie(header)
    assert not AccessControl("b" * 64, PORT).has_cookie(header)
    for other in (None, b"", b"\xff=;", name.encode(), header[:-1]):
        assert not access.has_cookie(other)


def test_bearer() -> None:
    """The secret is taken as a bearer token alone, and the token of hooks is not the secret."""
    access = AccessControl("s" * 64, PORT)
    hooks = derive_token("s" * 64, "hooks").encode()
    assert access.has_secret(b"Bearer " + b"s" * 64)
    assert access.has_secret(b"bearer " + b"s" * 64)
    assert access.has_hook_token(b"Bearer " + hooks)
    for header in (None, b"", b"s" * 64, b"Basic " + b"s" * 64, b"Bearer ", b"Bearer " + hooks):
        assert not access.has_secret(header)


# Host, Origin, Sec-Fetch-Site.


@pytest.mark.parametrize("host", [b"127.0.0.1:8420", b"localhost:8420", b"[::1]:8420"])
def test_own_hosts(host: bytes) -> None:
    """A loopback address or `localhost`, with our own port."""
    assert is_own_host(host, PORT)


@pytest.mark.parametrize(
    "host",
    [
        b"", b"brimline", b"brimline:8420", b"127.0.0.1", b"127.0.0.1:8421", b"localhost",
        b"localhost.evil.example:8420", b"evil.example:8420", b"192.168.1.5:8420",
        b"0.0.0.0:8420", b"127.0.0.1:8420:8420", b"[::1", b":8420", b"\xff:8420",
    ],
)  # fmt: skip
def test_other_hosts(host: bytes) -> None:
    """A name that a web page can point at this machine, and another port, are refused."""
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
def test_misdirected(headers: list[tuple[bytes, bytes]]) -> None:
    """Two headers of which each reader takes another, another origin, another site."""
    assert find_misdirection(headers, PORT) is not None


@pytest.mark.parametrize(
    "more",
    [
        [],
        [(b"origin", b"http://127.0.0.1:8420"), (b"sec-fetch-site", b"same-origin")],
        [(b"sec-fetch-site", b"none")],
    ],
)
def test_own_requests(more: list[tuple[bytes, bytes]]) -> None:
    """A program, our own page, and an address that the user typed."""
    assert find_misdirection([HOST, *more], PORT) is None


# The peer.


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a TCP peer's user")
def test_peer_that_closed_is_not_ours() -> None:
    """The kernel gives a closed socket to root; who closed one behind a request is not let in."""
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


def test_trusted_peers() -> None:
    """Our own user in any state, root while it is connected, nobody else, and no unknown one."""
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
    """The status, headers and body of an answer, with no header but those that are named."""
    address = f"http://127.0.0.1:{daemon.port}{path}"
    asked = urllib.request.Request(address, body, headers=more, method=method)
    opener = urllib.request.build_opener(NoRedirect)
    try:
        with opener.open(asked, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Shows a redirect instead of following it."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none."""


@pytest.mark.slow
def test_every_route_needs_the_secret(daemon: Running) -> None:
    """Whatever is asked over TCP without the secret is answered with 401, and tells nothing."""
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
def test_page_explains_how_to_open_it(daemon: Running) -> None:
    """A browser without the cookie is told what to do."""
    code, headers, body = request(daemon, "/")
    assert code == 401
    assert headers["content-type"].startswith("text/html")
    assert b"brimline open" in body


@pytest.mark.slow
def test_link_opens_the_page_once(daemon: Running) -> None:
    """The printed link sets a cookie and leads to a clean address; another browser is too late."""
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
def test_cookie_outlives_the_daemon(daemon: Running) -> None:
    """A page that is open stays signed in when the daemon is started anew."""
    _, headers, _ = request(daemon, daemon.link.partition(f":{daemon.port}")[2])
    cookie = headers["set-cookie"].partition(";")[0]
    daemon.stop()
    daemon.start()
    assert request(daemon, "/v1/sessions", Cookie=cookie)[0] == 200


@pytest.mark.slow
def test_hook_token_opens_hooks_alone(daemon: Running) -> None:
    """What stands in an agent's settings posts hooks, and reads nothing else."""
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
def test_unix_socket_only(daemon: Running, method: str, path: str) -> None:
    """What reads a file, types into a pane or ends the daemon is refused over TCP."""
    bearer = f"Bearer {daemon.secret}"
    code, _, body = request(
        daemon, path, b'{"path": "/etc/hostname"}', method, Authorization=bearer
    )
    assert (code, b"Unix socket" in body) == (403, True)
    assert daemon.get("/healthz") == {"status": "ok"}


@pytest.mark.slow
def test_log_has_no_link(daemon: Running) -> None:
    """A daemon in the background writes no link into its log, which people show to others."""
    daemon.stop()
    assert daemon.command("serve", "--background").returncode == 0
    try:
        assert "code=" not in (daemon.state / "serve.log").read_text()
    finally:
        daemon.command("serve", "--stop")


@pytest.mark.slow
@pytest.mark.parametrize("is_open", [False, True])
def test_context_usage_without_secret(tmp_path: Path, is_open: bool) -> None:
    """The interface of the first design is open to all by a setting alone, and nothing else is."""
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
        assert request(daemon, f"/v1/sessions/{SESSION}")[0] == 401
        assert request(daemon, "/hooks/claude", b"{}")[0] == 401
        assert request(daemon, f"/sessions/{SESSION}", Origin="http://evil.example")[0] == 403
    finally:
        daemon.close()


@pytest.mark.slow
def test_next_daemon_takes_the_same_port(daemon: Running) -> None:
    """HTTP hooks go to the port that a user's daemon had: the next one takes it again."""
    daemon.stop()
    assert daemon.command("serve", "--background").returncode == 0
    try:
        assert daemon.get("/v1/daemon")["address"].endswith(f":{daemon.port}")
    finally:
        daemon.command("serve", "--stop")
