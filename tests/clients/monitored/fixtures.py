"""The clients as fixtures, and a retry for tests that fail on a busy machine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest

from .base import TRIES, MonitoredClient

TestT = TypeVar("TestT", bound=Callable[..., None])


def client_fixture(*agents: type[MonitoredClient]) -> object:
    """A fixture: each client, installed, with its daemon, which is stopped afterwards."""

    @pytest.fixture(params=agents, ids=[one.agent for one in agents])
    def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MonitoredClient]:
        client: MonitoredClient = request.param(tmp_path)
        yield client
        client.daemon.close()

    return agent


def only_with(*agents: type[MonitoredClient]) -> pytest.MarkDecorator:
    """Run a test with these clients only."""
    names = [one.agent for one in agents]
    return pytest.mark.parametrize("agent", agents, indirect=True, ids=names)


def retry_slow_hooks(test: TestT) -> TestT:
    """Run a test again if it failed and a hook was not answered in time.

    Hooks wait for a tenth of a second, for which a busy machine can be too slow.
    """

    @functools.wraps(test)
    def run(agent: MonitoredClient, **more: object) -> None:
        for _ in range(TRIES - 1):
            try:
                return test(agent, **more)
            except (AssertionError, ValueError):
                if not agent.hook_timed_out.is_set():
                    raise
                agent.daemon.close()
                agent.start_over()
        return test(agent, **more)

    return cast("TestT", run)
