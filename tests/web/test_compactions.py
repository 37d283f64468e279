"""What each compaction left, in the table of a session's page."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from server.running import Running
from sessions.machine import call, compaction, user_record

from .screen import Screen
from .test_explanation import open_tab

pytestmark = pytest.mark.slow

STATEMENT = "Please move all 47 shipping costs into the basket."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon with a session that was compacted, without a summary."""
    running = Running(tmp_path_factory.mktemp("compacted"))
    path = running.home / ".claude" / "projects" / "-p" / "packed.jsonl"
    path.parent.mkdir(parents=True)
    fields: dict[str, Any] = {"sessionId": "packed"}
    lines = [
        user_record(STATEMENT, **fields),
        call("m1", 150_000, **fields),
        compaction(**fields),
        user_record("go on", **fields),
        call("m2", 20_000, **fields),
    ]
    path.write_bytes(b"".join(lines))
    running.start()
    running.until("/v1/sessions", lambda views: len(views) == 1)
    yield running
    running.close()


@pytest.fixture(params=[1_280, 360])
def screen(browser: Browser, daemon: Running, request: pytest.FixtureRequest) -> Iterator[Screen]:
    yield from open_tab(browser, daemon, request.param)


def test_facts_that_are_kept_are_missing(screen: Screen) -> None:
    screen.open("#/session/packed")
    line = screen.find("compactions").locator('[data-cycle="0"]')
    expect(line.locator("td")).to_have_count(12)
    expect(line).to_contain_text("nothing0 of 10 of 1none yet")
    width = screen.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert width <= 0
