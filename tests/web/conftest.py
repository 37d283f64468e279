"""A browser, a daemon and a tab for a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from server.running import Running

from .chromium import FLAGS, require_chromium, require_page
from .screen import PATIENCE_MS, Screen
from .story import SETTINGS, Story

Scheme: TypeAlias = Literal["light", "dark"]


class Opener(Protocol):
    """Opens a tab on the daemon's page."""

    def __call__(self, width: int = 1280, scheme: Scheme = "light", calm: bool = False) -> Screen:
        """A tab of this width and colour scheme; `calm` asks for reduced motion."""
        ...


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """One for all browsers; its event loop must end before the tests of other folders."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    program = require_chromium()
    require_page()
    running = playwright.chromium.launch(executable_path=program, args=FLAGS)
    yield running
    running.close()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    """A daemon whose user has set the size of every window."""
    running = Running(tmp_path)
    settings = running.home / ".config" / "brimline" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    running.start()
    yield running
    running.close()


@pytest.fixture
def story(daemon: Running) -> Story:
    """The sessions that the test reports to the daemon."""
    return Story(daemon)


@pytest.fixture
def opened(browser: Browser, daemon: Running) -> Iterator[Opener]:
    """Opens tabs on the daemon's page; each is checked at the end."""
    screens: list[Screen] = []

    def open(width: int = 1280, scheme: Scheme = "light", calm: bool = False) -> Screen:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            reduced_motion="reduce" if calm else "no-preference",
        )
        screens.append(Screen(context, daemon.port, daemon.new_link()))
        return screens[-1]

    yield open
    for screen in screens:
        screen.check()
        screen.page.context.close()


@pytest.fixture
def screen(opened: Opener) -> Screen:
    return opened()
