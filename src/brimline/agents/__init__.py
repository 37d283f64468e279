"""Everything that is particular to one agent, in a folder each, and the registry of them.

What all agents have in common belongs elsewhere: no other code names one. A part of an agent is
imported when it is first used, so that a command pays only for what it reads. Other packages add
agents with the same parts (`packages.py`).
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from brimline.errors import UnknownAgent
from brimline.files.foreign_json import PADDING

if TYPE_CHECKING:
    from brimline.agents.capabilities import Capabilities
    from brimline.agents.compaction_setting import CompactionSetting
    from brimline.agents.content import ContentReader
    from brimline.agents.hook_adapter import HookAdapter, StatusLineAdapter
    from brimline.agents.install_spec import InstallSpec
    from brimline.agents.telemetry import ManagedSettings, TelemetryReader
    from brimline.agents.transcripts.source import Form, Lookalike, Places, Source, Transcript
    from brimline.context.window import ResolveContext


class Agent:
    """One agent; its parts are imported from its package when they are first used."""

    def __init__(self, name: str, package: str | None = None) -> None:
        self.name = name
        self.package = package or f"{__name__}.{name}"

    def _part(self, module: str) -> Any:
        return import_module(f"{self.package}.{module}")

    @property
    def folder(self) -> str:
        """The folder of its package."""
        path = import_module(self.package).__file__
        assert path is not None  # it has an `__init__.py`, with its capabilities
        return os.path.dirname(path)

    def transcripts(self, places: "Places") -> Iterable["Transcript"]:
        """List its transcripts without importing their reader; skips unreadable folders."""
        return self._part("paths").transcripts(places)

    @cached_property
    def source(self) -> "Source":
        """The events in its transcripts and streams."""
        return self._part("transcript_source").SOURCE

    def continued_file(self, path: str) -> str | None:
        """The file that a transcript continues without repeating its records; None if none."""
        find = getattr(self._part("paths"), "find_earlier", None)
        earlier = None if find is None else find(path)
        return None if earlier is None else earlier.path

    def recognise(self, head: bytes) -> "Form | Lookalike | None":
        """Return what a file or stream that begins like this is; None if not this agent's."""
        return self.source.recognise(head.lstrip(PADDING))

    def memory_files(self, places: "Places", project: str | None) -> list[str]:
        """The memory files that its client puts into every prompt without recording them."""
        find = getattr(self._part("paths"), "memory_files", None)
        return [] if find is None else find(places, project)

    def subagent_title(self, path: str) -> str | None:
        """What its client calls a subagent, by its transcript; None if it has no words for it."""
        read = getattr(self._part("paths"), "subagent_title", None)
        return None if read is None else read(path)

    @cached_property
    def has_hooks(self) -> bool:
        """Whether setup can install hooks for its client; else its files alone are read."""
        return os.path.exists(os.path.join(self.folder, "hooks.py"))

    @cached_property
    def hooks(self) -> "HookAdapter":
        """Its hooks' requests to observations, and replies to its answers.

        Raises UnknownAgent if it has none.
        """
        if not self.has_hooks:
            raise UnknownAgent(self.name, agents_with_hooks(agent_names()))
        return self._part("hooks").HOOKS

    @cached_property
    def status_line(self) -> "StatusLineAdapter":
        """Its status line's requests to observations; raises UnknownAgent if it has none."""
        adapter = getattr(self._part("hooks"), "STATUS_LINE", None) if self.has_hooks else None
        if adapter is None:
            hooked = [one for one in all_agents() if one.has_hooks]
            able = [one.name for one in hooked if hasattr(one._part("hooks"), "STATUS_LINE")]
            raise UnknownAgent(self.name, able)
        return adapter

    @cached_property
    def telemetry(self) -> "TelemetryReader":
        """Its OpenTelemetry records to events; not every agent has this part."""
        return self._part("telemetry").TELEMETRY

    @cached_property
    def managed_settings(self) -> "Callable[[str], ManagedSettings] | None":
        """Its settings that point its telemetry at a server, by the URL; None if it has none."""
        return getattr(self._part("telemetry"), "managed_settings", None)

    @cached_property
    def install_spec(self) -> "InstallSpec":
        """What setup writes into its settings, and where they are."""
        return self._part("hooks").INSTALL_SPEC

    def compaction_setting(
        self, places: "Places", project: str | None, known: "ResolveContext"
    ) -> "CompactionSetting | None":
        """Its own setting that moves the compaction of a model; None if it has none."""
        find = getattr(self._part("hooks"), "compaction_setting", None) if self.has_hooks else None
        return None if find is None else find(places, project, known)

    @cached_property
    def capabilities(self) -> "Capabilities":
        """What its client can do, and its environment variables."""
        return import_module(self.package).CAPABILITIES

    def content_reader(self, is_subagent: bool = False) -> "ContentReader":
        """Return a new reader for the content of one thread of a transcript, or of a run.

        Only an agent whose records differ in a subagent's thread has another reader for these.
        """
        part = self._part("content")
        own = part.CONTENT_READER
        return (getattr(part, "SUBAGENT_CONTENT_READER", own) if is_subagent else own)()


_added: dict[str, Agent] = {}  # the agents of other packages that the user enabled


def add_agent(agent: Agent) -> None:
    """Add an agent of another package, for this process."""
    _added[agent.name] = agent


def agent_names() -> tuple[str, ...]:
    """The names of all agents: the folders of this package with transcripts, then added agents."""
    return (*_own_names(), *_added)


@cache
def _own_names() -> tuple[str, ...]:
    return _folders_with("paths.py")


def _folders_with(module: str) -> tuple[str, ...]:
    folder = os.path.dirname(__file__)  # pkgutil finds the same, and takes 1 ms to import
    names = sorted(os.listdir(folder))
    return tuple(name for name in names if os.path.exists(os.path.join(folder, name, module)))


def get_agent(name: str) -> Agent:
    """Return an agent by its name; raises UnknownAgent."""
    return _added.get(name) or _own_agent(name)


@cache
def _own_agent(name: str) -> Agent:
    if name not in _own_names():
        raise UnknownAgent(name, agent_names())
    return Agent(name)


def all_agents() -> list[Agent]:
    """Return every agent, those of other packages last."""
    return [get_agent(name) for name in agent_names()]


@cache
def telemetry_readers() -> "tuple[tuple[str, TelemetryReader], ...]":
    """The readers of OpenTelemetry, by the names of their agents.

    Of some of these nothing else is read: they are no agents of this registry.
    """
    return tuple((name, Agent(name).telemetry) for name in _folders_with("telemetry.py"))


@cache
def managed_clients() -> tuple[str, ...]:
    """The clients whose telemetry an administrator can point at a server; not all are agents."""
    return tuple(name for name in _folders_with("telemetry.py") if Agent(name).managed_settings)


def managed_settings_for(client: str, url: str) -> "ManagedSettings":
    """Return the settings that point a client's telemetry at a server; raises UnknownAgent."""
    settings = Agent(client).managed_settings if client in managed_clients() else None
    if settings is None:
        raise UnknownAgent(client, managed_clients())
    return settings(url)


def agents_with_hooks(names: Iterable[str]) -> list[str]:
    """Return those agents for whose clients setup can install hooks."""
    return [name for name in names if get_agent(name).has_hooks]


def source(agent: str) -> "Source":
    """Return the source of an agent by its name; raises UnknownAgent."""
    return get_agent(agent).source


def display_name(agent: str) -> str:
    """Return the name that a client has for itself; an unknown agent's name stays as it is."""
    return get_agent(agent).capabilities.display_name if agent in agent_names() else agent


def capabilities_of(agent: str | None) -> "Capabilities":
    """Return what an agent can do; the defaults if the agent is unknown."""
    if agent in agent_names():
        return get_agent(agent).capabilities
    from brimline.agents.capabilities import Capabilities

    return Capabilities(display_name=agent or "unknown agent")


def is_hook_of_another_client(agent: str, env: Mapping[str, str]) -> bool:
    """Return whether a client runs a hook that is installed for another agent."""
    others = (other.capabilities.hook_marker for other in all_agents() if other.name != agent)
    return any(marker in env for marker in others if marker)


def agents_present(places: "Places") -> list[str]:
    """Return the agents that may have files here: their variable is set, or their folder exists."""
    return [
        agent.name
        for agent in all_agents()
        if any(places.env.get(name) for name in agent.capabilities.location_variables)
        or any((places.home / folder).exists() for folder in agent.capabilities.home_folders)
    ]
