"""All that is written into the agents' settings is removed to the last byte, in any order."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from brimline.agents import Agent, agent_names, all_agents
from brimline.agents.transcripts.source import Places
from brimline.context.window import ResolveContext
from preloaded import run_brimline

# A model of each agent whose window is known; BRIMLINE_WINDOWS has those of the others.
MODELS = {
    "claude": "claude-sonnet-4-5",
    "codex": "gpt-5.5",
    "gemini": "gemini-2.5-pro",
    "opencode": "anthropic/claude-sonnet-4-5",
    "pi": "anthropic/claude-sonnet-4-5",
}
OTHER_MODEL = "some-model"
JSON = '{\n\t"theme": "dark",   "hooks" : { },\r\n  "mine": [1,\n2 ]}'
TOML = '# mine\nmodel = "gpt-5.5"\n\n[tui]\nnotifications=true'
SETUP, COMPACT_AT, MCP = ("setup",), ("compact-at",), ("setup", "--mcp")


def agents_with_setup() -> list[Agent]:
    return [agent for agent in all_agents() if agent.has_hooks]


class EveryAgent:
    """A home in which all agents were used."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": str(root / "state"),
            "BRIMLINE_WINDOWS": f"{OTHER_MODEL}=1000000",
        }
        self.places = Places(self.home, {})
        for agent in all_agents():
            (self.home / agent.capabilities.home_folders[0]).mkdir(parents=True)

    def write_settings(self) -> None:
        """Write the files that setup and compact-at will change, as a person might."""
        for agent in agents_with_setup():
            spec = agent.install_spec
            setting = agent.compaction_setting(self.places, None, ResolveContext(model="m"))
            own = None if spec.is_extension else spec.user_file(self.places)
            for file in (own, setting and setting.file):
                if file is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes((TOML if file.suffix == ".toml" else JSON).encode())

    def content(self) -> dict[str, bytes | None]:
        """All files below the home with their bytes, and all folders."""
        paths = sorted(self.home.rglob("*"))
        return {str(path): path.read_bytes() if path.is_file() else None for path in paths}

    def run(self, *words: str) -> str:
        result = run_brimline(words, env=self.env, cwd=self.home, timeout=60)
        assert result.returncode == 0, (result.stdout + result.stderr).decode()
        return result.stdout.decode()

    def install(self, command: Sequence[str]) -> None:
        """Run a command that writes into the settings of all agents."""
        if command != COMPACT_AT:
            self.run(*command)
            return
        for agent in all_agents():
            model = MODELS.get(agent.name, OTHER_MODEL)
            if agent.compaction_setting(self.places, None, ResolveContext(model=model)):
                self.run("compact-at", "60%", agent.name, "--model", model)


@pytest.fixture(params=[False, True], ids=["no-settings", "own-settings"])
def every_agent(request: pytest.FixtureRequest, tmp_path: Path) -> EveryAgent:
    made = EveryAgent(tmp_path)
    if request.param:
        made.write_settings()
    return made


@pytest.mark.parametrize(
    ("installed", "removed"),
    [
        ([SETUP], [SETUP]),
        ([COMPACT_AT], [COMPACT_AT]),
        ([SETUP, COMPACT_AT], [COMPACT_AT, SETUP]),
        ([SETUP, COMPACT_AT], [SETUP]),
        ([COMPACT_AT, SETUP], [COMPACT_AT, SETUP]),
        ([COMPACT_AT, SETUP], [SETUP]),
        ([COMPACT_AT, SETUP, MCP], [MCP, SETUP]),
        ([MCP, COMPACT_AT], [SETUP]),
    ],
    ids=lambda commands: "+".join("".join(each) for each in commands),
)
def test_removal_leaves_a_byte_of_ours(
    installed: list[Sequence[str]], removed: list[Sequence[str]], every_agent: EveryAgent
) -> None:
    before = every_agent.content()
    for command in installed:
        every_agent.install(command)
        assert every_agent.content() != before
    for command in removed:
        every_agent.run(*command, "--remove")
    assert every_agent.content() == before


def test_command_changes_no_file_of_an_agent(tmp_path: Path) -> None:
    """Those without a setting for their compaction say so."""
    home = EveryAgent(tmp_path)
    home.install(SETUP)
    for agent in agents_with_setup():
        assert agent.install_spec.user_file(home.places).exists()
    home.install(COMPACT_AT)
    shown = home.run("compact-at", "--show", "--json")
    without = {
        agent.name
        for agent in all_agents()
        if agent.compaction_setting(home.places, None, ResolveContext(model="m")) is None
    }
    assert {name for name in agent_names() if f'"agent": "{name}"' in shown} == {
        *agent_names()
    } - without
