"""How many requests and bytes a token may send."""

import asyncio
from typing import Any, cast

import pytest

from brimline.api.request_limits import Allowance, RateLimit
from brimline.api.responses import RequestRefused
from brimline.settings import FleetSettings


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_allowance_is_refilled_up_to_that_of_a_minute() -> None:
    clock = Clock()
    allowance = Allowance(60, clock)
    allowance.spend("a", 60)
    assert (allowance.wait_s("a"), allowance.wait_s("b")) == (1.0, 0.0)
    clock.now += 1.0
    assert allowance.wait_s("a") == 0.0
    clock.now += 1e6
    allowance.spend("a", 60)
    assert allowance.wait_s("a") == 1.0


def test_body_that_is_longer_than_what_is_left_delays_the_next_request() -> None:
    clock = Clock()
    limit = RateLimit(FleetSettings(bytes_per_minute=600), clock)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 700}

    limit.count_request("a")
    asyncio.run(cast("Any", limit.count_body("a", cast("Any", receive))()))
    with pytest.raises(RequestRefused, match="too many requests or bytes") as refused:
        limit.count_request("a")
    assert (refused.value.status, refused.value.retry_after_s) == (429, 11)
    limit.count_request("b")
    clock.now += 10.2
    limit.count_request("a")
