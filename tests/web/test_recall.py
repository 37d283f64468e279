"""The search in a session's transcripts, on its page."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from server.running import Running
from sessions.machine import call, compaction, user_record

from .screen import Screen
from .test_explanation import open_tab

pytestmark = pytest.mark.slow

EVIL = '<img src=x onerror=alert(1)> "gannet" 🐦 gannet'


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon with a session that was compacted."""
    running = Running(tmp_path_factory.mktemp("searched"))
    path = running.home / ".claude" / "projects" / "-p" / "searched.jsonl"
    path.parent.mkdir(parents=True)
    fields: dict[str, Any] = {"sessionId": "searched"}
    lines = [
        user_record(f"The gate is open.\n{EVIL}\nNever touch it.", **fields),
        call("m1", **fields),
        compaction(**fields),
        user_record("a late gannet", **fields),
        call("m2", **fields),
    ]
    path.write_bytes(b"".join(lines))
    running.start()
    running.until("/v1/sessions", lambda views: len(views) == 1)
    yield running
    running.close()


@pytest.fixture(params=[1_280, 360])
def screen(browser: Browser, daemon: Running, request: pytest.FixtureRequest) -> Iterator[Screen]:
    yield from open_tab(browser, daemon, request.param)


def test_hits_and_their_marks_are_missing(screen: Screen) -> None:
    """Also those before the compaction alone; markup in a transcript is text."""
    screen.open("#/session/searched")
    form, hits = screen.find("recall"), screen.find("recall-hits").locator("li")
    form.get_by_role("searchbox").fill("gannet")
    form.get_by_role("button").click()
    expect(hits).to_have_count(2)
    form.get_by_role("checkbox").check()
    form.get_by_role("button").click()
    expect(hits).to_have_count(1)
    expect(hits.first).to_contain_text(EVIL)
    expect(hits.first).to_contain_text("searched.jsonl:1")
    assert hits.first.locator("mark").all_inner_texts() == ["gannet", "gannet"]
    form.get_by_role("searchbox").fill("puffin")
    form.get_by_role("button").click()
    expect(screen.page.get_by_text("Nothing found.")).to_be_visible()
    width = screen.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert width <= 0
