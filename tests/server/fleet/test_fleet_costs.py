"""The figures that machines report, and the costs that a server sums from them."""

import time
from typing import Any

import pytest

from brimline.store.base import PutCall
from brimline.store.rows import CallRow
from fleet_server import FleetReply

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


def uplink_call(call: str, **fields: Any) -> dict[str, Any]:
    usage = {"input": 1, "cache_read": 0, "cache_write": 0, "output": 1}
    place = {"session": "s", "thread": "main", "seq": 1, "cycle": 0}
    return {**place, **usage, "call": call, "at": time.time(), "cost": 1.0, **fields}


def report(fleet: Fleet, token: str, *calls: dict[str, Any], **session: Any) -> FleetReply:
    row = {"id": "s", "agent": "claude", "seen_at": time.time(), "calls": calls, **session}
    return fleet.ask("POST", "/v1/uplink", token, {"machine": "m1", "sessions": [row]})


def test_calls_after_the_correction_of_a_clock_are_summed(fleet: Fleet) -> None:
    token = fleet.token("ahead")
    assert report(fleet, token, uplink_call("c1", at=time.time() + 5 * 3_600)).status == 200
    fleet.run(fleet.app.organisations.sum_costs())
    assert report(fleet, token, uplink_call("c2")).status == 200
    fleet.run(fleet.app.organisations.sum_costs())
    assert fleet.ask("GET", "/v1/fleet", token).json["total"]["calls"] == 2


def test_organisation_whose_costs_cannot_be_summed_does_not_stop_others(fleet: Fleet) -> None:
    broken, token = fleet.token("broken"), fleet.token("works")
    assert report(fleet, broken).status == 200
    call = CallRow("s", "main", "c", 1, 0, 1, 0, 0, 1, at=1e300)  # no request can have it
    assert all(fleet.run(fleet.database.store("broken").write([PutCall(call)])))
    assert report(fleet, token, uplink_call("c")).status == 200
    fleet.run(fleet.app.organisations.sum_costs())
    assert fleet.ask("GET", "/v1/fleet", token).json["total"]["calls"] == 1


@pytest.mark.parametrize(
    "fields",
    [{"input": -1}, {"output": 1 << 62}, {"at": 1e300}, {"at": -1.0}, {"cost": 1e308}],
    ids=str,
)
def test_call_with_impossible_figures_is_refused(fleet: Fleet, fields: dict[str, Any]) -> None:
    """Stored, it would make the requests fail that show or sum it."""
    token = fleet.token("impossible")
    reply = report(fleet, token, uplink_call("c", **fields))
    assert (reply.status, next(iter(fields)) in reply.json["error"]) == (422, True)
    assert fleet.ask("GET", "/v1/sessions/s", token).status == 404


def test_session_of_the_far_future_is_as_old_as_its_report(fleet: Fleet) -> None:
    token = fleet.token("future")
    call = uplink_call("c", cache_write_1h=5)  # more than all cache writes
    assert report(fleet, token, call, seen_at=1e300).status == 200
    view = fleet.ask("GET", "/v1/sessions/s", token).json
    assert view["session"]["seen_at"] == pytest.approx(time.time(), abs=60)
    assert fleet.ask("GET", "/v1/sessions/s/timeline", token).status == 200
