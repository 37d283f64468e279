"""Agents of other packages, which the user enables by the packages' names.

Such a package has an entry point of the group `brimline.agents`: an agent's name, and the import
path of a package with the modules that a folder of `brimline.agents` has. A package runs with the
user's rights, so that only the user's own settings enable one; hooks import none.
"""

import re
import sys
from collections.abc import Iterable

import msgspec

from brimline.agents import add_agent, agent_names
from brimline.agents.added_agent import AddedAgent, describe_failure
from brimline.agents.transcripts.source import Places

GROUP = "brimline.agents"
AGENT_NAME = re.compile(r"[a-z][a-z0-9-]{1,30}")


class AgentPackage(msgspec.Struct):
    """A package that the user enabled: the agents that it adds, and what is wrong with it."""

    name: str
    version: str | None = None
    agents: tuple[str, ...] = ()
    problems: list[str] = msgspec.field(default_factory=list[str])

    def report(self, problem: str) -> None:
        """Record a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)


_packages: dict[str, AgentPackage] = {}


def enabled_packages() -> tuple[AgentPackage, ...]:
    """Return the packages that were enabled in this process."""
    return tuple(_packages.values())


def package_problems() -> list[str]:
    """Return what is wrong with the enabled packages, each in a line."""
    return [
        f"agent package {package.name}: {problem}"
        for package in enabled_packages()
        for problem in package.problems
    ]


def add_packages(names: Iterable[str], places: Places) -> None:
    """Add the agents of these packages; what cannot be used is a problem of its package."""
    for name in names:
        if name not in _packages:
            _packages[name] = package = AgentPackage(name)
            _add_package(package, places)


def _add_package(package: AgentPackage, places: Places) -> None:
    # Imported here: it takes 20 ms, and few users have such packages.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution(package.name)
    except (PackageNotFoundError, ValueError):
        package.report(f"it is not installed in Brimline's Python, {sys.executable}")
        return
    package.version = installed.version
    entry_points = installed.entry_points.select(group=GROUP)
    if not entry_points:
        package.report(f"it has no entry point {GROUP!r}")
    for entry_point in entry_points:
        _add(AddedAgent(entry_point.name, entry_point.value, package.report), package, places)


def _add(agent: AddedAgent, package: AgentPackage, places: Places) -> None:
    if not AGENT_NAME.fullmatch(agent.name):
        package.report(f"expected an agent's name of a-z, 0-9 and -: got {agent.name!r}")
    elif agent.name in agent_names():
        package.report(f"there is an agent {agent.name!r} already")
    else:
        try:
            agent.check(places)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - other agents are not affected
            package.report(describe_failure(f"import {agent.package}", error))
            return
        add_agent(agent)
        package.agents += (agent.name,)
