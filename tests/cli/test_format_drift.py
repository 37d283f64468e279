"""What the commands print about transcripts that are not understood."""

import re

import pytest

from brimline.agents import display_name
from drifted_homes import RECORDED, write_home

from .terminal import User


@pytest.fixture
def paths(user: User) -> dict[str, str]:
    """The transcript of each agent, in which the usage has another name."""
    del user.env["CLAUDE_CONFIG_DIR"], user.env["XDG_DATA_HOME"]
    return {agent: str(write_home(agent, user.home, "usage renamed")) for agent in RECORDED}


@pytest.mark.parametrize("command", ["status", "report"])
def test_each_agent_is_named_once_on_standard_error(
    user: User, paths: dict[str, str], command: str
) -> None:
    done = user.run(command)
    lines = done.err.splitlines()
    assert len(lines) == len(paths)
    for agent, path in paths.items():
        start = f"brimline: Brimline does not understand this version of {display_name(agent)}"
        (line,) = (line for line in lines if line.startswith(start))
        assert line.endswith(
            f": {path} cannot be read fully, and its figures may be missing. Update Brimline."
        )
    assert "does not understand" not in done.out


@pytest.mark.parametrize("agent", RECORDED)
def test_inspect_names_the_file_and_shows_no_call(
    user: User, paths: dict[str, str], agent: str
) -> None:
    done = user.run("inspect", paths[agent])
    assert done.err.count("Brimline does not understand this version of") == 1
    assert paths[agent] in done.err
    assert re.search("no (model )?call", done.out)
