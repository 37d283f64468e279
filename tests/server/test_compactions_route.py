"""`GET /v1/sessions/ID/compactions`: what each compaction left, live."""

import json
from typing import Any

import pytest

from brimline.handoff.pins import INTRO
from sessions.machine import call, compaction, user_record

from .running import Running

INJECTED = f"{INTRO}\n- Never touch the README."
STATEMENT = "Please move the shipping costs into the basket."


@pytest.fixture
def compacted(shared_daemon: Running) -> str:
    """The path of the route for a session that was compacted twice."""
    path = shared_daemon.home / ".claude" / "projects" / "-p" / "packed.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    fields: Any = {"sessionId": "packed"}
    added = {"type": "hook_additional_context", "hookName": "SessionStart", "content": [INJECTED]}
    hook = {"type": "attachment", "attachment": added, "userType": "external", **fields}
    lines = [
        user_record(STATEMENT, **fields),
        call("m1", 100_000, **fields),
        compaction(**fields),
        json.dumps(hook).encode() + b"\n",
        call("m2", 20_000, **fields),
        compaction(**fields),
        call("m3", 30_000, **fields),
    ]
    path.write_bytes(b"".join(lines))
    shared_daemon.until(
        "/v1/sessions", lambda views: any(one["session"]["id"] == "packed" for one in views)
    )
    return "/v1/sessions/packed/compactions"


def test_effects_differ_from_those_of_the_command(shared_daemon: Running, compacted: str) -> None:
    answer = shared_daemon.get(compacted)
    assert answer["problem"] is None
    first, second = answer["compactions"]
    assert (first["cycle"], first["calls"], first["after"]) == (0, 1, 20_000)
    assert first["effect"]["injected_chars"] == len(INJECTED)
    assert second["effect"]["injected_chars"] == 0
    assert first["effect"]["facts"]["statements"]["total"] == 1
    assert shared_daemon.get(compacted) == answer


def test_growth_of_the_transcript_is_not_seen(shared_daemon: Running, compacted: str) -> None:
    before = shared_daemon.get(compacted)["compactions"]
    path = shared_daemon.home / ".claude" / "projects" / "-p" / "packed.jsonl"
    with path.open("ab") as file:
        fields: Any = {"sessionId": "packed"}
        file.write(compaction(**fields) + call("m4", 10_000, **fields))
    assert len(shared_daemon.get(compacted)["compactions"]) == len(before) + 1


def test_unknown_session_has_compactions(shared_daemon: Running) -> None:
    assert shared_daemon.refused("/v1/sessions/unknown/compactions")[0] == 404


def test_compactions_are_open_to_everyone(shared_daemon: Running, compacted: str) -> None:
    assert shared_daemon.refused(compacted, None, {"Authorization": "x"})[0] == 401
