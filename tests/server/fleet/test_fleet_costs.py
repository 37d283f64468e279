"""The costs that a server sums in the background for the fleet view."""

import time

import pytest

from .conftest import Fleet


def test_cost_of_calls_is_shown_after_it_was_summed(fleet: Fleet) -> None:
    token = fleet.token("costs")
    usage = {"input": 1_000_000, "cache_read": 0, "cache_write": 0, "output": 0}
    event = {"type": "Call", "id": "c", "usage": usage, "model": "claude-opus-4-5"}
    event |= {"at": time.time()}
    new = {"id": "e", "session": "s", "agent": "claude", "event": event}
    assert fleet.ask("POST", "/v1/events", token, {"events": [new]}).status == 200
    fleet.run(fleet.app.organisations.sum_costs())
    total = fleet.ask("GET", "/v1/fleet?by=model", token).json["total"]
    assert total["cost"] == pytest.approx(5.0)  # USD per million input tokens
    assert (total["sessions"], total["calls"], total["miss_cost"]) == (1, 1, 0.0)
