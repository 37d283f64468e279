"""A browser tab on the daemon's page that records everything that must never happen."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Locator, Request

PATIENCE_MS = 30_000.0  # generous: a busy machine is slow, not wrong

LISTEN = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
# Chromium's own console messages while the daemon is down.
UNREACHABLE = ("net::ERR_CONNECTION_", "net::ERR_EMPTY_RESPONSE", "net::ERR_INCOMPLETE_CHUNKED",
               "net::ERR_CONTENT_LENGTH")  # fmt: skip


class Screen:
    """The page in a tab."""

    def __init__(self, context: BrowserContext, port: int, link: str) -> None:
        context.set_default_timeout(PATIENCE_MS)
        assert context.request.get(link).ok  # the context keeps the cookie that this sets
        context.add_init_script(LISTEN)
        self.address = f"http://127.0.0.1:{port}"
        self.page = context.new_page()
        self.hosts: set[str] = set()
        self.bad: list[str] = []
        self.page.on("request", self._request)
        self.page.on("console", self._console)
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", lambda error: self.bad.append(str(error)))

    def _request(self, request: Request) -> None:
        if not request.url.startswith("data:"):
            self.hosts.add(urlsplit(request.url).netloc)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(
            word in message.text for word in UNREACHABLE
        ):
            self.bad.append(f"{message.text} ({message.location['url']})")

    def _dialog(self, dialog: Dialog) -> None:
        self.bad.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, hash: str = "#/") -> None:
        """Go to an address of the page, and wait until it is live."""
        self.page.goto(f"{self.address}/{hash}")
        self.find("connection", '[data-connection="live"]').wait_for()

    def go(self, hash: str) -> None:
        """Go to a hash without reloading the page."""
        self.page.evaluate("hash => { location.hash = hash }", hash)

    def find(self, testid: str, more: str = "") -> Locator:
        """Elements by their test id."""
        return self.page.locator(f'[data-testid="{testid}"]{more}')

    def row(self, session: str) -> Locator:
        """A session's row of the overview."""
        return self.page.locator(f'.row[data-session="{session}"]')

    def of(self, session: str, testid: str) -> Locator:
        """A part of a session's row."""
        return self.row(session).locator(f'[data-testid="{testid}"]')

    def order(self) -> list[str]:
        """The sessions of the overview from top to bottom."""
        return self.evaluate("[...document.querySelectorAll('.row')].map(r => r.dataset.session)")

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """The result of a script."""
        return self.page.evaluate(script, argument)

    def until(self, script: str, argument: Any = None) -> None:
        """Wait until a function returns true; the page's policy forbids evaluated strings."""
        self.page.wait_for_function(script, arg=argument)

    def check(self) -> None:
        """Nothing that must never happen has happened: errors, violations, other hosts."""
        assert not self.bad, self.bad
        violations = self.evaluate("window.violations")
        assert not violations, violations
        assert self.hosts <= {urlsplit(self.address).netloc}, self.hosts
