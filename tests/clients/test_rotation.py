"""`brimline run --rotate-at` with the real clients: windows that continue each other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.handoff.user_messages import CONTINUED_TEXT
from brimline.testing.fake_model import Reply

from .rotated_client import TASK, RotatedClient, document, is_first, replies_of

pytestmark = [pytest.mark.clients, pytest.mark.slow]

WINDOWS = 3
PARK_S = 25  # a busy machine may take some of it to start the client


@pytest.fixture(params=["claude", "codex"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RotatedClient]:
    one = RotatedClient(request.param, tmp_path)
    yield one
    one.daemon.close()


def test_run_goes_through_windows_without_a_compaction(client: RotatedClient) -> None:
    """Each session starts from the document of the one before; the client never compacts."""
    run = client.run(replies_of(client, WINDOWS), "--rotate-at", "75", "--json")
    assert run.exit_code == 0, run.stderr
    result = json.loads(run.stdout)
    assert [window["handoff"] for window in result["windows"]] == ["agent", "agent", None]
    assert len({window["session_id"] for window in result["windows"]}) == WINDOWS
    assert [window["compactions"] for window in result["windows"]] == [0, 0, 0]
    assert not run.of("compaction")
    starts = [body for body in client.requests(run) if is_first(body)]
    assert len(starts) == WINDOWS
    for number, body in enumerate(starts[1:], 1):
        assert body.count(CONTINUED_TEXT) == 1
        assert document(number) in body
        assert TASK in body
        assert document(number - 1) not in body
    assert run.stderr.count("asked for a handoff") == WINDOWS - 1
    check_chain(client, [window["session_id"] for window in result["windows"]])


def test_parked_run_continues_when_the_quota_is_reset(tmp_path: Path) -> None:
    """Claude Code reports with its refusal that the five hours are used up, and when that ends."""
    client = RotatedClient("claude", tmp_path)
    resets_at = int(time.time()) + PARK_S
    limits = {"status": "rejected", "reset": str(resets_at), "representative-claim": "five_hour"}
    limits |= {"5h-status": "rejected", "5h-utilization": "1.0", "5h-reset": str(resets_at)}
    headers = {f"anthropic-ratelimit-unified-{name}": text for name, text in limits.items()}
    login = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"}
    main = (client.shell("echo part one", 0.1), Reply(error="rate_limited"), Reply(text="Done."))
    try:
        run = client.run(main, "--park", "--json", headers=headers, **login)
    finally:
        client.daemon.close()
    assert run.exit_code == 0, run.stderr
    assert time.time() >= resets_at
    assert "the five hours are used up: waiting until" in run.stderr
    windows = json.loads(run.stdout)["windows"]
    assert [window["handoff"] for window in windows] == ["draft", None]
    (start,) = [line for line in run.requests.read_text().splitlines() if CONTINUED_TEXT in line]
    assert "echo part one" in start


def check_chain(client: RotatedClient, ids: list[str]) -> None:
    """Check that each session continues as the next, with its title, and is one line of status."""
    rows = {view["session"]["id"]: view["session"] for view in client.daemon.get("/v1/sessions")}
    assert [rows[id]["became"] for id in ids] == [*ids[1:], None]
    titles = [rows[id]["title"] for id in ids]
    assert [title.startswith(f"{TASK} ({n})") for n, title in enumerate(titles[1:], 2)] == [
        True
    ] * 2
    shown = client.daemon.answered("status", HOME=str(client.place.home)).stdout
    assert shown.count(TASK) == 1
    assert f"{TASK} ({WINDOWS})" in shown
    done = client.daemon.command("report", "--rotations", "--json", HOME=str(client.place.home))
    (chain,) = json.loads(done.stdout)
    assert (chain["sessions"], chain["rotations"], chain["compactions"]) == (ids, len(ids) - 1, 0)
