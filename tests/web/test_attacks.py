"""A web page of another site can do nothing through the user's browser.

The browser is signed in. The attacker knows the port and serves its own pages: under another
name, under the name `brimline`, which it points at this machine (DNS rebinding), and on another
port of the same address, to which the browser sends our cookie.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright

from server.running import Running
from server.test_daemon import SESSION, status_input

from .chromium import FLAGS, require_chromium, require_page

pytestmark = pytest.mark.slow

# Names that the attacker owns; both resolve to this machine.
EVIL, REBOUND = "evil.example", "brimline"

FETCH = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    return [answer.type, answer.status, await answer.text()];
  } catch (error) {
    return ["error", 0, String(error)];
  }
}"""
LISTEN = """url => new Promise((resolve) => {
  const source = new EventSource(url, { withCredentials: true });
  source.onopen = () => { source.close(); resolve("open"); };
  source.onerror = () => { source.close(); resolve("error"); };
})"""
IMAGE = """url => new Promise((resolve) => {
  const image = new Image();
  image.onload = () => resolve("loaded");
  image.onerror = () => resolve("error");
  image.src = url;
})"""
SCRIPT = """url => new Promise((resolve) => {
  const script = document.createElement("script");
  script.onload = () => resolve("loaded");
  script.onerror = () => resolve("error");
  script.src = url;
  document.head.append(script);
})"""
FORM = """([url, type, body]) => {
  const form = document.createElement("form");
  Object.assign(form, { action: url, method: "POST", enctype: type });
  const field = document.createElement("input");
  [field.name, field.value] = body.split("=", 2);
  form.append(field);
  document.body.append(form);
  form.submit();
}"""
MESSAGE = '{"text": "PWNED", "urgent": true, "x": "='


class _AttackerPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Serve a page that lets the test run scripts in its origin."""
        self.server.cookies.append(self.headers.get("cookie"))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><body>")

    def log_message(self, format: str, *args: Any) -> None: ...


class Attacker:
    """The attacker's web server."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _AttackerPage)
        self.cookies: list[str | None] = []
        self._server.cookies = self.cookies  # type: ignore[attr-defined]
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all attacks, which change nothing."""
    running = Running(tmp_path_factory.mktemp("daemon"))
    running.start()
    yield running
    running.close()


@pytest.fixture
def attacker() -> Iterator[Attacker]:
    server = Attacker()
    yield server
    server.close()


@pytest.fixture(scope="module")
def rebound_browser(playwright: Playwright) -> Iterator[Browser]:
    """A browser in which the attacker's names lead to this machine, as after DNS rebinding."""
    program = require_chromium()
    require_page()
    rules = f"--host-resolver-rules=MAP {EVIL} 127.0.0.1,MAP {REBOUND} 127.0.0.1"
    running = playwright.chromium.launch(executable_path=program, args=[*FLAGS, rules])
    yield running
    running.close()


@pytest.fixture
def context(rebound_browser: Browser, daemon: Running) -> Iterator[BrowserContext]:
    """The user's browser, signed in by a real link."""
    daemon.hook(status_input(90_000), "statusline")
    signed_in = rebound_browser.new_context()
    page = signed_in.new_page()
    page.goto(daemon.new_link())
    assert page.url == f"http://127.0.0.1:{daemon.port}/"
    page.close()
    yield signed_in
    signed_in.close()


def attack_page(context: BrowserContext, attacker: Attacker, host: str) -> Page:
    """A page of the attacker under a name."""
    page = context.new_page()
    page.goto(f"http://{host}:{attacker.port}/")
    return page


def check_untouched(daemon: Running) -> None:
    """No message was queued, and the daemon is running."""
    assert daemon.get("/v1/messages") == []
    assert daemon.get("/healthz") == {"status": "ok"}


HOSTS = [EVIL, "localhost", "127.0.0.1"]  # Another site, and the same site on another port.


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("mode", ["cors", "no-cors"])
def test_fetch_from_another_site_is_refused(
    context: BrowserContext, attacker: Attacker, daemon: Running, host: str, mode: str
) -> None:
    page = attack_page(context, attacker, host)
    place = f"http://127.0.0.1:{daemon.port}/v1/sessions"
    post = {"method": "POST", "body": MESSAGE + '"}', "credentials": "include", "mode": mode}
    for url, options in (
        (place, {"credentials": "include", "mode": mode}),
        (f"{place}/{SESSION}/messages", post),
    ):
        kind, _, text = page.evaluate(FETCH, [url, options])
        assert kind in ("error", "opaque")
        assert SESSION not in text
    check_untouched(daemon)


@pytest.mark.parametrize("host", HOSTS)
def test_form_of_another_site_is_refused(
    context: BrowserContext, attacker: Attacker, daemon: Running, host: str
) -> None:
    """It posts text that looks like JSON."""
    page = attack_page(context, attacker, host)
    url = f"http://127.0.0.1:{daemon.port}/v1/sessions/{SESSION}/messages"
    with page.expect_response(url) as response:
        page.evaluate(FORM, [url, "text/plain", MESSAGE + '"}'])
    assert response.value.status == 403
    check_untouched(daemon)


@pytest.mark.parametrize("host", HOSTS)
def test_event_source_of_another_site_is_refused(
    context: BrowserContext, attacker: Attacker, daemon: Running, host: str
) -> None:
    page = attack_page(context, attacker, host)
    assert page.evaluate(LISTEN, f"http://127.0.0.1:{daemon.port}/v1/stream") == "error"


@pytest.mark.parametrize("host", HOSTS)
def test_image_and_script_of_another_site_load_nothing(
    context: BrowserContext, attacker: Attacker, daemon: Running, host: str
) -> None:
    page = attack_page(context, attacker, host)
    address = f"http://127.0.0.1:{daemon.port}"
    assert page.evaluate(IMAGE, f"{address}/v1/sessions") == "error"
    assert page.evaluate(SCRIPT, f"{address}/v1/sessions") == "error"


@pytest.mark.parametrize("name", [EVIL, REBOUND])
def test_dns_rebinding_is_refused(context: BrowserContext, daemon: Running, name: str) -> None:
    page = context.new_page()
    answer = page.goto(f"http://{name}:{daemon.port}/")
    assert answer is not None
    assert answer.status == 403
    for path in ("/v1/sessions", f"/v1/sessions/{SESSION}"):
        kind, status, text = page.evaluate(FETCH, [path, {"credentials": "include"}])
        assert (kind, status, SESSION in text) == ("basic", 403, False)
    options = {"method": "POST", "body": '{"text": "PWNED"}'}
    place = f"/v1/sessions/{SESSION}/messages"
    assert page.evaluate(FETCH, [place, options])[1] == 403
    check_untouched(daemon)


def test_link_or_frame_of_another_site_shows_nothing(
    context: BrowserContext, attacker: Attacker, daemon: Running
) -> None:
    page = attack_page(context, attacker, EVIL)
    with page.expect_response(f"http://127.0.0.1:{daemon.port}/") as response:
        page.evaluate("url => { location.href = url }", f"http://127.0.0.1:{daemon.port}/")
    assert response.value.status == 403


def test_own_page_is_served(context: BrowserContext, daemon: Running) -> None:
    """Shows that the same browser can read and listen on our own page."""
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{daemon.port}/")
    page.locator('[data-connection="live"]').first.wait_for()
    assert page.evaluate(FETCH, ["/v1/sessions", {}])[1] == 200
    assert page.evaluate("document.cookie") == ""


def test_browser_without_a_cookie_gets_no_data(rebound_browser: Browser, daemon: Running) -> None:
    context = rebound_browser.new_context()
    page = context.new_page()
    answer = page.goto(f"http://127.0.0.1:{daemon.port}/")
    assert answer is not None
    assert answer.status == 401
    assert "brimline open" in page.inner_text("body")
    context.close()
