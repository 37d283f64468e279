"""`brimline report`: what the sessions add up to."""

import csv
import io
import json
import os
import resource
import subprocess
import sys
from typing import Any

import pytest

from .terminal import PATIENCE, User, cells, without_colour

DAY = 86_400
LINE = ["key", "agents", "sessions", "calls", "peak_sent", "end_sent", "compactions", "usage",
        "cost", "unpriced"]  # fmt: skip


@pytest.fixture
def month(user: User) -> User:
    """A user with two sessions over two days."""
    user.now = 1_794_657_600  # 2026-11-14, 12:00 UTC
    user.session(
        "s1",
        user.call("m1", 100_000, DAY),
        user.call("m2", 160_000, DAY - 5),
        *user.compaction(DAY - 6),
        user.call("m3", 40_000, 60),
    )
    user.subagent("s1", "a1", user.call("x1", 190_000, DAY - 7))
    other: dict[str, Any] = {"sessionId": "s2", "cwd": "/srv/other", "model": "my-model"}
    user.session("s2", user.call("n1", 10_000, 60, **other))
    return user


BY_SESSION = """\
session  agents  sessions  calls  peak  end  compactions  input  cache read  output     cost
s1       claude         1      4  160K  40K            1     12        488K      40    $0.16
s2       claude         1      1   10K  10K            0      3        9.4K      10  unknown
total    claude         2      5  160K                 1     15        497K      50    $0.16
Not in the cost: 1 call on models without a known price.
"""


def test_table(month: User) -> None:
    """The whole table, as people see it."""
    assert month.run("report", "--by", "session", COLUMNS="100") == (0, BY_SESSION, "")


def test_by_day(month: User) -> None:
    """A line a day, and the total."""
    columns = [line.split() for line in month.run("report", COLUMNS="100").lines[1:4]]
    assert [row[:5] for row in columns] == [
        ["2026-11-13", "claude", "1", "3", "160K"],
        ["2026-11-14", "claude", "2", "2", "40K"],
        ["total", "claude", "2", "5", "160K"],
    ]


def test_end_of_a_day(month: User) -> None:
    """What a session held at its end is not what it held on an earlier day."""
    first = month.run("report", "--json").json["lines"][0]
    assert (first["key"], first["sessions"]) == ("2026-11-13", 1)
    assert first["end_sent"] != 40_000


@pytest.mark.parametrize("columns", [80, 200])
def test_fits(month: User, columns: int) -> None:
    """It fits 80 columns, and uses 200."""
    for by in ("day", "session", "project", "model"):
        lines = without_colour(month.on_terminal("report", "--by", by, columns=columns).out)
        assert max(map(cells, lines.splitlines())) <= columns
        assert ("cache write" in lines) == (columns == 200)


def test_json(month: User) -> None:
    """The same as JSON."""
    made = month.run("report", "--json").json
    assert list(made) == ["by", "lines", "total"]
    assert made["by"] == "day"
    assert all(list(line) == LINE for line in (*made["lines"], made["total"]))
    first = made["lines"][0]
    assert (first["key"], first["calls"], first["peak_sent"]) == ("2026-11-13", 3, 160_000)
    assert first["usage"]["cache_read"] == 99_400 + 159_400 + 189_400
    assert made["total"]["unpriced"] == 1


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("day", ["2026-11-13", "2026-11-14"]),
        ("session", ["s1", "s2"]),
        ("model", ["claude-sonnet-4-5", "my-model"]),
    ],
)
def test_by(month: User, by: str, keys: list[str]) -> None:
    """By day, session and model."""
    made = month.run("report", "--json", "--by", by).json
    assert [line["key"] for line in made["lines"]] == keys
    assert made["total"]["calls"] == 5


def test_by_project(month: User) -> None:
    """By project: the home folder is ~ for people, and a path for programs."""
    home = str(month.home / "project")
    made = month.run("report", "--json", "--by", "project").json
    assert sorted(line["key"] for line in made["lines"]) == sorted([home, "/srv/other"])
    assert "~/project" in month.run("report", "--by", "project").out


def test_csv(month: User) -> None:
    """As CSV: unknown is empty."""
    done = month.run("report", "--csv", "--by", "model")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["model"] for row in rows] == ["claude-sonnet-4-5", "my-model"]
    assert (rows[0]["calls"], rows[0]["peak_sent"], rows[0]["compactions"]) == ("4", "160000", "1")
    assert (rows[1]["cost"], rows[1]["end_sent"]) == ("", "")
    assert float(rows[0]["cost"]) > 0


def test_project(month: User) -> None:
    """Only projects whose path contains a text."""
    assert month.run("report", "--json", "--project", "srv/other").json["total"]["calls"] == 1
    assert month.run("report", "--project", "nothing").out == "No calls found.\n"


def test_since(user: User) -> None:
    """Only what was done since then."""
    user.session("s1", user.call("m1", 9_000, 9 * DAY), user.call("m2", 9_000, 60))
    assert user.run("report", "--json").json["total"]["calls"] == 2
    assert user.run("report", "--json", "--since", "3d").json["total"]["calls"] == 1
    assert user.run("report", "--json", "--since", "2w").json["total"]["calls"] == 2


def test_agent(month: User) -> None:
    """Only one agent's."""
    assert month.run("report", "--json", "--agent", "claude").json["total"]["calls"] == 5
    assert month.run("report", "--json", "--agent", "codex").json["total"]["calls"] == 0


def test_owner_deleted(user: User) -> None:
    """A forked session's calls count when the one that they came from is gone, in any report."""
    old = user.session("s1", user.call("m1", 9_000, 100))
    user.session("s2", user.call("m1", 9_000, 100), user.call("m2", 9_500, 90), folder="-q")
    user.session("s2", user.call("m1", 9_000, 90), user.call("m2", 9_500, 80))
    (user.projects / "-q" / "s2.jsonl").unlink()
    assert user.run("report", "--json").json["total"]["calls"] == 2
    old.unlink()
    assert user.run("report", "--json", "--agent", "claude").json["total"]["calls"] == 2
    assert user.run("report", "--json").json["total"]["calls"] == 2


# The same report again.


def append(user: User, name: str, *records: dict[str, object]) -> None:
    """Let a session's transcript grow."""
    with (user.projects / "-p" / f"{name}.jsonl").open("a") as file:
        for record in records:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def calls(user: User, *arguments: str, **env: Any) -> int:
    """How many calls a report counts."""
    made: int = user.run("report", "--json", *arguments, **env).json["total"]["calls"]
    return made


def test_again(month: User) -> None:
    """Asked again with nothing changed, the answer is the same to the letter."""
    for command in (
        ["report"],
        ["report", "--json"],
        ["report", "--csv"],
        ["report", "--by", "model"],
    ):
        first = month.run(*command)
        assert month.run(*command) == first == month.run(*command)


def test_again_on_a_terminal(month: User) -> None:
    """Also on a terminal, in colour; and a pipe does not get the colours."""
    shown = month.on_terminal("report")
    assert "\x1b[" in shown.out
    assert month.on_terminal("report") == shown
    assert "\x1b[" not in month.run("report").out
    assert len(month.on_terminal("report", columns=200).lines[0]) > len(shown.lines[0])


def test_again_after_growth(user: User) -> None:
    """What was added is seen at once."""
    user.session("s1", user.call("m1", 9_000))
    assert (calls(user), calls(user)) == (1, 1)
    append(user, "s1", user.call("m2", 9_100, 50))
    assert (calls(user), calls(user)) == (2, 2)


def test_again_after_a_new_file(user: User) -> None:
    """A new file is seen at once: in a folder that is there, in a new one, in a subagent's."""
    user.session("s1", user.call("m1", 9_000))
    assert (calls(user), calls(user)) == (1, 1)
    user.session("s2", user.call("m2", 9_000))
    assert (calls(user), calls(user)) == (2, 2)
    user.session("s3", user.call("m3", 9_000), folder="-q")
    assert (calls(user), calls(user)) == (3, 3)
    user.subagent("s1", "a1", user.call("m4", 9_000))
    assert (calls(user), calls(user)) == (4, 4)


def test_again_after_a_deletion(user: User) -> None:
    """A file that is gone no longer counts."""
    user.session("s1", user.call("m1", 9_000))
    path = user.session("s2", user.call("m2", 9_000))
    assert (calls(user), calls(user)) == (2, 2)
    path.unlink()
    assert (calls(user), calls(user)) == (1, 1)


def test_again_after_a_rewrite(user: User) -> None:
    """Other content of the same size in the same file is seen."""
    path = user.session("s1", user.call("m1", 9_000, 70))
    size = path.stat().st_size
    assert (calls(user), calls(user)) == (1, 1)
    user.session("s1", user.call("m2", 8_000, 80))
    assert path.stat().st_size == size
    assert user.run("report", "--json").json["total"]["peak_sent"] == 8_000


def test_again_after_a_link_came_to_life(user: User) -> None:
    """A link whose target was not there counts when it is."""
    user.session("s1", user.call("m1", 9_000))
    (user.projects / "-p" / "s2.jsonl").symlink_to(user.home / "elsewhere.jsonl")
    assert (calls(user), calls(user)) == (1, 1)
    user.write(user.home / "elsewhere.jsonl", [user.call("m2", 9_000)], 60)
    assert calls(user) == 2


def test_again_with_other_settings(month: User) -> None:
    """Other arguments, another time zone, another folder of Claude Code: another report."""
    assert (calls(month), calls(month)) == (5, 5)
    assert calls(month, "--project", "srv/other") == 1
    assert calls(month, CLAUDE_CONFIG_DIR=str(month.home)) == 0
    days = [line["key"] for line in month.run("report", "--json", TZ="UTC-9").json["lines"]]
    assert days == ["2026-11-13", "2026-11-14"]
    days = [line["key"] for line in month.run("report", "--json", TZ="UTC+13").json["lines"]]
    assert days == ["2026-11-12", "2026-11-13"]


def gemini_chat(user: User, call: str) -> None:
    """Write a chat of Gemini CLI with one call, in a folder that was not there."""
    chats = user.home / ".gemini" / "tmp" / "ab" / "chats"
    chats.mkdir(parents=True)
    time = "2026-11-14T11:00:00.000Z"
    counts = {"input": 5_000, "output": 5, "cached": 0, "thoughts": 0, "tool": 0, "total": 5_005}
    lines = [
        {"sessionId": "g1", "projectHash": "ab", "startTime": time, "kind": "main"},
        {"id": call, "timestamp": time, "type": "gemini", "model": "gemini-2.5-pro",
         "tokens": counts},
    ]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (chats / "session-2026-11-14T11-00-abcdef.jsonl").write_text(text)


def test_again_with_another_agent(user: User) -> None:
    """Another agent's first file is seen, though none of its folders was there."""
    user.session("s1", user.call("m1", 9_000))
    assert (calls(user), calls(user)) == (1, 1)
    gemini_chat(user, "another")
    assert calls(user) == 2


def test_same_id_in_two_agents(user: User) -> None:
    """Calls of two agents are two, though they have the same id."""
    user.session("s1", user.call("m1", 9_000))
    gemini_chat(user, "m1")
    assert calls(user) == 2


def test_session_by_its_own_id(user: User) -> None:
    """A session is known by the agent's own id, wherever that stands: in its name or inside."""
    gemini_chat(user, "m1")
    assert [row["session_id"] for row in user.run("status", "--all", "--json").json] == ["g1"]
    assert user.run("report", "--json", "--by", "session").json["lines"][0]["key"] == "g1"
    assert user.run("inspect", "g1", "--json").json["session_id"] == "g1"


def test_broken_caches(month: User) -> None:
    """Whatever is in the cache folder, the report is the same."""
    first = month.run("report")
    cache = month.home.parent / "cache"
    names = os.listdir(cache)
    assert names
    for name in names:
        whole = (cache / name).read_bytes()
        for broken in (b"", b"\n", whole[: len(whole) // 2], whole[:-1], b"\xff" * 100):
            (cache / name).write_bytes(broken)
            assert month.run("report") == first
    for name in os.listdir(cache):
        (cache / name).unlink()
    assert month.run("report") == first


def test_full_disk(month: User) -> None:
    """A disk that is full costs time, and leaves nothing half written."""
    done = subprocess.run(
        [sys.executable, "-m", "brimline", "report"],
        capture_output=True,
        text=True,
        cwd=month.cwd,
        env={k: v for k, v in month.env.items() if "COVERAGE" not in k},
        timeout=PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == month.run("report").out
    assert sorted(os.listdir(month.home.parent / "cache")) == ["state"]


def test_nothing(user: User) -> None:
    """A user without any agent's files is told so."""
    done = user.run("report")
    assert (done.code, done.err) == (0, "")
    assert done.out == "No transcripts found (Claude Code, Codex, Gemini CLI, opencode, Pi).\n"


@pytest.mark.slow
def test_progress_bar(user: User) -> None:
    """On a terminal, work that takes more than a second shows how far it is."""
    path = user.session("s1", user.call("m1", 9_000))
    line = json.dumps(user.call("m2", 9_000)).encode() + b"\n"
    with path.open("ab") as file:
        for number in range(250):
            file.write(
                b"".join(line.replace(b'"m2"', b'"m%d-%d"' % (number, i)) for i in range(600))
            )
    done = user.on_terminal("report", "--json")
    assert done.code == 0
    assert "█" in done.out
