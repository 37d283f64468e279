"""The Claude Code plugin, installed and removed by the real client."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline._version import __version__
from brimline.testing.fake_model import Ramp, Scenario

from .claude import ENVIRONMENT
from .install import node, require
from .monitored import Claude
from .monitored.fixtures import retry_slow_hooks
from .monitored.script import brimline
from .run import ClientRun, Place, isolation_prefix
from .scenes import SESSION

pytestmark = [pytest.mark.clients, pytest.mark.slow]

PLUGIN = Path(__file__).parents[2] / "plugin"
NAME = "brimline@brimline"
NO_SERVER = "http://127.0.0.1:9"  # it asks the provider's own address for 18 s otherwise


class PluginClaude(Claude):
    """Claude Code with the plugin; `brimline setup` then writes the launcher and status line."""

    def set_up(self, *more: str) -> None:
        self.manage("marketplace", "add", str(PLUGIN))
        self.manage("install", NAME)
        super().set_up(*more)

    def manage(self, *words: str) -> str:
        """Run a `claude plugin` command."""
        place = Place(self.folder)
        place.make()
        env = {"HOME": str(place.home), "PATH": f"{node().binary.parent}:/usr/bin:/bin"}
        env |= ENVIRONMENT | {"ANTHROPIC_BASE_URL": NO_SERVER}
        done = subprocess.run(
            [*isolation_prefix(), require("claude"), "plugin", *words],
            env=env,
            cwd=place.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def doctor(self) -> str:
        """What doctor finds about the hooks."""
        home = str(Place(self.folder).home)
        checks = json.loads(self.daemon.command("doctor", "--json", HOME=home).stdout)
        return next(one["told"] for one in checks if one["about"] == "claude hooks")


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[PluginClaude]:
    client = PluginClaude(tmp_path)
    yield client
    client.daemon.close()


def ask_in_shell(agent: PluginClaude) -> ClientRun:
    """A turn in which the agent does what the skill says."""
    main = (agent.shell(brimline("here", "--json")), *agent.loop(1))
    return agent.run(Scenario(main=main, ramp=Ramp(start=60_000, step=5_000)))


def hooks_heard(agent: PluginClaude) -> int:
    """How many hooks a turn brings."""
    before = agent.daemon.get("/v1/daemon")["heard"]
    ask_in_shell(agent)
    return agent.daemon.get("/v1/daemon")["heard"] - before


@retry_slow_hooks
def test_plugin_alone_has_hooks_and_a_skill(agent: PluginClaude) -> None:
    """Setup adds no hooks beside it; the agent finds its session by the process."""
    settings = json.loads(agent.settings.read_text())
    assert ("hooks" in settings, "statusLine" in settings) == (False, True)
    run = ask_in_shell(agent)
    first = json.loads(run.stdout.splitlines()[0])
    assert agent.daemon.get(f"/v1/sessions/{SESSION}")["session"]["agent"] == "claude"
    assert f'\\"session\\": \\"{SESSION}\\"' in agent.conversation(run)[-1], first
    assert "brimline:context" in run.stdout
    assert agent.doctor().startswith(f"by the plugin {NAME}")


@retry_slow_hooks
def test_plugin_and_setup_together_do_not_fire_twice(agent: PluginClaude) -> None:
    alone = hooks_heard(agent)
    agent.manage("disable", NAME)
    Claude.set_up(agent)  # which now installs hooks
    assert "hooks" in json.loads(agent.settings.read_text())
    agent.manage("enable", NAME)
    assert agent.doctor().startswith("10 hooks installed")
    assert "plugin" in agent.doctor()
    assert hooks_heard(agent) == alone > 3


def test_plugin_is_removed_without_a_trace(agent: PluginClaude) -> None:
    agent.manage("uninstall", NAME)
    agent.manage("marketplace", "remove", "brimline")
    home = str(Place(agent.folder).home)
    assert agent.daemon.command("setup", "--remove", "claude", HOME=home).returncode == 0
    left = json.loads(agent.settings.read_text())
    assert [key for key, value in left.items() if value] == ["cleanupPeriodDays"]


def test_versions_and_events_are_those_of_setup() -> None:
    from brimline.agents.claude.hooks import INSTALLED_EVENTS

    hooks = json.loads((PLUGIN / "brimline/hooks/hooks.json").read_text())["hooks"]
    assert tuple(hooks) == INSTALLED_EVENTS
    for name in ("brimline", "brimline-mcp"):
        plugin = json.loads((PLUGIN / name / ".claude-plugin/plugin.json").read_text())
        assert plugin["version"] == __version__
