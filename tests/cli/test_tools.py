"""`brimline tools`: what sessions carried, what of it they called, and what to do."""

from collections.abc import Sequence
from typing import Any

import pytest

from sessions.carried_session import carried_session

from .terminal import Json, User, cells, without_colour
from .test_baseline import USAGE, install

DAY_S = 86_400
ANSWER: dict[str, Any] = USAGE | {
    "mcpTools": [
        {"name": f"mcp__{server}__tool", "serverName": server, "tokens": 3_000, "isLoaded": True}
        for server in ("serena", "tides")
    ],
    "skills": {"skillFrontmatter": [{"name": "knots", "source": "projectSettings", "tokens": 9}]},
}


@pytest.fixture
def owner(user: User) -> User:
    """A user of two MCP servers, a skill and an agent, who called one of the servers alone."""
    (user.home / "project").mkdir()
    install(user, ANSWER)
    for number in range(6):
        carry(user, f"s{number}", age=3_600.0 * (number + 1), calls=["mcp__tides__high"])
    return user


def carry(user: User, name: str, age: float, calls: Sequence[str] = ()) -> None:
    path = user.projects / "-p" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(carried_session(name, user.now - age, str(user.home / "project"), calls))


def advice(user: User) -> list[str]:
    project = str(user.home / "project")
    parts: list[Json] = user.run("tools", project, "--json").json["parts"]
    return [part["advice"] for part in parts if part["advice"]]


def test_unused_server_gets_its_cost_and_the_way_to_disable_it(owner: User) -> None:
    """The agent is too small for a line; the server that was called gets none."""
    serena, knots = advice(owner)
    facts, _, remedy = serena.partition(": to disable it in this project, ")
    assert facts.startswith("serena: ")
    assert " in 6 sessions, never called, $" in facts
    assert facts.endswith(" in 30 days")
    assert remedy == "run `/mcp disable serena` in Claude Code."
    assert knots.endswith('set "skillOverrides": {"knots": "off"} in .claude/settings.local.json.')


def test_figures_of_a_part_are_those_of_its_sessions(owner: User) -> None:
    """A session of 31 days ago does not count; the cost is each call's, written then read."""
    carry(owner, "old", age=31 * DAY_S)
    report = owner.run("tools", "project", "--json").json
    assert (report["sessions"], report["project"]) == (6, str(owner.home / "project"))
    parts: dict[str, Json] = {part["name"]: part for part in report["parts"]}
    tides, serena = parts["tides"], parts["serena"]
    assert (tides["sessions"], tides["called_sessions"], tides["calls"]) == (6, 6, 6)
    assert (serena["sessions"], serena["called_sessions"], serena["calls"]) == (6, 0, 0)
    # Sonnet 4.5 takes $3.75 for a million tokens that it writes to the cache, $0.30 to read them.
    assert serena["cost"] == pytest.approx(6 * serena["tokens"] * (3.75 + 0.30) / 1e6, rel=0.01)
    assert {part["kind"] for part in report["parts"]} == {"MCP server", "skill", "agent"}


def test_no_advice_with_four_sessions(user: User) -> None:
    (user.home / "project").mkdir()
    install(user, ANSWER)
    for number in range(4):
        carry(user, f"s{number}", age=3_600.0 * (number + 1))
    assert advice(user) == []
    carry(user, "s4", age=60 * 60 * 5)
    assert len(advice(user)) == 3


def test_no_advice_on_what_is_used_in_every_fifth_session(owner: User) -> None:
    for number in range(2):
        carry(owner, f"used{number}", age=3_600, calls=["mcp__serena__high"])
    assert [each.partition(":")[0] for each in advice(owner)] == ["knots"]


def test_no_advice_on_what_a_new_session_has_no_longer(owner: User) -> None:
    """The client is asked: it has another server now, and no skill."""
    install(owner, {**ANSWER, "mcpTools": ANSWER["mcpTools"][1:], "skills": {}})
    assert advice(owner) == []


def test_no_advice_on_a_skill_that_comes_with_the_client(owner: User) -> None:
    """Only for skills of the user was it tried that the setting disables them."""
    skills = {"skillFrontmatter": [{"name": "knots", "source": "built-in", "tokens": 9}]}
    install(owner, {**ANSWER, "skills": skills})
    assert [each.partition(":")[0] for each in advice(owner)] == ["serena"]


def test_client_that_cannot_be_asked_is_named(owner: User) -> None:
    """What the transcripts show is reported all the same."""
    (owner.home / "bin" / "claude").unlink()
    owner.env["PATH"] = "/usr/bin:/bin"
    completed = owner.run("tools", "project")
    assert completed.code == 0
    assert completed.err == "brimline: Claude Code was not asked: Claude Code is not installed\n"
    assert "run `/mcp disable serena`" in " ".join(completed.out.split())


def test_copied_calls_cost_once(owner: User) -> None:
    """A fork copies the records of its original; its calls were paid there."""
    before = owner.run("tools", "project", "--json").json
    fork = (
        (owner.projects / "-p" / "s0.jsonl")
        .read_text()
        .replace('"sessionId":"s0"', '"sessionId":"f"')
    )
    (owner.projects / "-p" / "f.jsonl").write_text(fork)
    after = owner.run("tools", "project", "--json").json
    costs = [{part["name"]: part["cost"] for part in each["parts"]} for each in (before, after)]
    assert costs[0] == pytest.approx(costs[1])


@pytest.mark.parametrize("columns", [60, 100])
def test_table_fits_the_terminal(owner: User, columns: int) -> None:
    completed = owner.on_terminal("tools", "project", columns=columns)
    lines = without_colour(completed.out).splitlines()
    assert max(map(cells, lines[1:])) <= columns  # the path of the project is longer
    assert "What to do" in lines
    assert any(line.startswith("serena ") for line in lines)


def test_folder_without_sessions_names_the_projects(owner: User) -> None:
    completed = owner.run("tools")
    assert completed.code == 2
    assert f"expected a project with sessions: {owner.home / 'project'}" in completed.err


def test_session_without_a_record_is_divided_by_the_answer(user: User) -> None:
    """An older client records the total only; its answer says how to divide it."""
    (user.home / "project").mkdir()
    install(user, ANSWER)
    user.session("s", user.call("a", 20_000))
    parts = user.run("tools", "project", "--json").json["parts"]
    assert [(part["name"], part["is_estimated"]) for part in parts][:2] == [
        ("serena", True),
        ("tides", True),
    ]
    assert "~" in user.run("tools", "project").out
