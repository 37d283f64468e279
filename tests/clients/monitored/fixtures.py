"""The agents as a fixture, and tests that a busy machine may fail."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest

from .base import TRIES, Monitored

TestT = TypeVar("TestT", bound=Callable[..., None])


def running(*agents: type[Monitored]) -> object:
    """A fixture: each of the agents, set up, and its daemon, which is gone afterwards."""

    @pytest.fixture(params=agents, ids=[one.agent for one in agents])
    def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Monitored]:
        client: Monitored = request.param(tmp_path)
        yield client
        client.daemon.close()

    return agent


def only(*agents: type[Monitored]) -> pytest.MarkDecorator:
    """Run a test with these agents alone."""
    names = [one.agent for one in agents]
    return pytest.mark.parametrize("agent", agents, indirect=True, ids=names)


def in_time(test: TestT) -> TestT:
    """A test that is run again, anew, where it failed because hooks were not answered in time.

    They wait for a tenth of a second and no longer, for which a busy machine may be too slow.
    """

    @functools.wraps(test)
    def run(agent: Monitored, **more: object) -> None:
        for _ in range(TRIES - 1):
            try:
                return test(agent, **more)
            except (AssertionError, ValueError):
                if not agent.late.is_set():
                    raise
                agent.daemon.close()
                agent.begin()
        return test(agent, **more)

    return cast("TestT", run)
