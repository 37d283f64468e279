"""The clients as fixtures, and a retry for tests that fail on a busy machine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest
from _pytest.mark import ParameterSet

from .base import TRIES, MonitoredClient

TestT = TypeVar("TestT", bound=Callable[..., None])


def client_fixture(*agents: type[MonitoredClient]) -> object:
    """A fixture: each client, installed, with its daemon, which is stopped afterwards."""

    @pytest.fixture(params=[client_param(one) for one in agents])
    def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MonitoredClient]:
        client: MonitoredClient = request.param(tmp_path)
        yield client
        client.daemon.close()

    return agent


def client_param(agent: type[MonitoredClient], *, is_short: bool = False) -> ParameterSet:
    """A client; a scene of one that starts slowly is a long one, unless `is_short`."""
    is_long = agent.is_fork or (agent.starts_slowly and not is_short)
    marks = [pytest.mark.long] if is_long else []
    return pytest.param(agent, id=agent.agent, marks=marks)


def only_with(*agents: type[MonitoredClient], is_short: bool = False) -> pytest.MarkDecorator:
    """Run a test with these clients only; `make test` runs a short scene with each of them."""
    params = [client_param(one, is_short=is_short) for one in agents]
    return pytest.mark.parametrize("agent", params, indirect=True)


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
