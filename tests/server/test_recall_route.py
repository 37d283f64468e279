"""`GET /v1/sessions/ID/recall`: the hits of a search, in bounds, for the user alone."""

from typing import Any

import pytest

from sessions.machine import call, compaction, user_record

from .running import Running

SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def searched(shared_daemon: Running) -> str:
    """The path of the route for a session that was compacted."""
    path = shared_daemon.home / ".claude" / "projects" / "-p" / "searched.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    fields: Any = {"sessionId": "searched"}
    lines = [
        user_record(f"an early gannet with {SECRET}", **fields),
        call("m1", **fields),
        compaction(**fields),
        *(user_record(f"late gannet {n}", **fields) for n in range(20)),
        call("m2", **fields),
    ]
    path.write_bytes(b"".join(lines))
    shared_daemon.until(
        "/v1/sessions", lambda views: any(one["session"]["id"] == "searched" for one in views)
    )
    return "/v1/sessions/searched/recall"


def test_hits_differ_from_those_of_the_command(shared_daemon: Running, searched: str) -> None:
    answer = shared_daemon.get(f"{searched}?q=gannet")
    assert len(answer["hits"]) == 10
    assert answer["more"]
    (early,) = shared_daemon.get(f"{searched}?q=gannet&before_compaction=1&rows=3")["hits"]
    assert (early["line"], early["role"], early["session"]) == (1, "user", "searched")


def test_secret_leaves_the_machine(shared_daemon: Running, searched: str) -> None:
    (early,) = shared_daemon.get(f"{searched}?q=early")["hits"]
    assert [line["text"] for line in early["lines"]] == ["an early gannet with ***"]


@pytest.mark.parametrize("query", ["", "?q=", "?q=%22%22", "?q=a&rows=0", "?q=a&rows=101",
                                   "?q=a&before_compaction=2"])  # fmt: skip
def test_wrong_query_is_no_clear_refusal(shared_daemon: Running, searched: str, query: str) -> None:
    assert shared_daemon.refused(searched + query)[0] == 422


def test_unknown_session_is_searched(shared_daemon: Running) -> None:
    assert shared_daemon.refused("/v1/sessions/unknown/recall?q=a")[0] == 404


def test_search_is_open_to_everyone(shared_daemon: Running, searched: str) -> None:
    assert shared_daemon.refused(f"{searched}?q=gannet", None, {"Authorization": "x"})[0] == 401
