"""Replicas of a fleet's server as processes."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_server import FleetProcess, new_token

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def replica(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetProcess]:
    replica = FleetProcess(database_url, tmp_path_factory.mktemp("replica"))
    yield replica
    replica.close()


def test_second_replica_serves_the_same_sessions_and_ends_on_ctrl_c(
    replica: FleetProcess, database_url: str, tmp_path: Path
) -> None:
    token = new_token(database_url)
    call = {"type": "Call", "id": "c", "usage": {"input": 9, "cache_read": 0, "cache_write": 0,
                                                 "output": 5}}  # fmt: skip
    events = {"events": [{"id": "e", "session": "s", "agent": "claude", "event": call}]}
    assert replica.request("POST", "/v1/events", token, events).status == 200
    other = FleetProcess(database_url, tmp_path)
    try:
        views = other.request("GET", "/v1/sessions", token).json
        assert [view["session"]["id"] for view in views] == ["s"]
        assert other.request("GET", "/v1/sessions").status == 401
        assert other.request("GET", "/healthz").json == {"status": "ok"}
        assert other.stop(signal.SIGINT) == 0
    finally:
        other.close()
    assert list(tmp_path.iterdir()) == []  # it needs no folder of its own
