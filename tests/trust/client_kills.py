"""The daemon is killed with -9 at every step of a session of each real client.

tests/clients/test_monitor.py does the same at the steps before and after the compaction.
"""

from pathlib import Path

import pytest

from clients.monitored import WITHOUT_DELAY, MonitoredClient
from clients.monitored.assertions import check_handoff_returns
from clients.monitored.fixtures import retry_slow_hooks

from .row import RowResult


@retry_slow_hooks
def kill_daemon(agent: MonitoredClient, step: int) -> None:
    """Kill and start the daemon between two steps: the result is the same as without."""
    check_handoff_returns(agent, agent.compact({step: "kill start"}))


def kill_at_every_step(folder: Path) -> RowResult:
    """Run each client to a compaction and beyond, once for each step."""
    runs = 0
    problems: list[str] = []
    for client in WITHOUT_DELAY:
        for step in range(client.compaction_steps):
            try:
                agent = client(folder / f"{client.agent}-{step}")
                try:
                    kill_daemon(agent, step=step)
                finally:
                    agent.daemon.close()
            except pytest.skip.Exception as reason:
                return RowResult(skipped=str(reason))
            except AssertionError as error:
                problems.append(f"{client.agent}, step {step}: {error}")
            runs += 1
    return RowResult({"kills": runs, "problems": len(problems)}, {"problems": 0}, problems)
