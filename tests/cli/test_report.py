"""`brimline report`: totals over sessions."""

import csv
import io
import json
import os
import re
import resource
import subprocess
import sys
from typing import Any

import pytest

from brimline.agents import agent_names, display_name

from .terminal import PATIENCE_S, User, cells, without_colour

DAY_S = 86_400
LINE = ["key", "agents", "sessions", "calls", "peak_sent", "end_sent", "compactions", "usage",
        "cost", "unpriced", "client_cost", "misses", "miss_causes", "models",
        "session"]  # fmt: skip


@pytest.fixture
def month(user: User) -> User:
    """A user with two sessions over two days."""
    user.now = 1_794_657_600  # 2026-11-14, 12:00 UTC
    user.session(
        "s1",
        user.record("user", DAY_S, message={"role": "user", "content": "Mend the parser"}),
        user.call("m1", 100_000, DAY_S),
        user.call("m2", 160_000, DAY_S - 5),
        *user.compaction(DAY_S - 6),
        user.call("m3", 40_000, 60),
    )
    user.subagent("s1", "a1", user.call("x1", 190_000, DAY_S - 7))
    second: dict[str, Any] = {"sessionId": "s2", "cwd": "/srv/other", "model": "my-model"}
    user.session("s2", user.call("n1", 10_000, 60, **second))
    return user


BY_SESSION = """\
session  title            project  start        lasted  calls  peak  compactions  cache  output     cost
s1       Mend the parser  project  11-13 12:00     24h      4  160K            1   490K      40    $0.16
s2       other            other    11-14 11:59      0s      1   10K            0    10K      10  unknown
total    2 sessions                                         5  160K            1   500K      50    $0.16
Not in the cost: 1 call on models without a known price.
"""  # noqa: E501


def test_table_is_complete(month: User) -> None:
    """A session without a title is named by its project."""
    assert month.run("report", "--by", "session", COLUMNS="104") == (0, BY_SESSION, "")


def test_json_says_what_a_session_is(month: User) -> None:
    """Its times do not depend on the days that the report selects."""
    for options in ([], ["--since", "2026-11-14"]):
        output = month.run("report", "--json", "--by", "session", *options).json
        assert output["lines"][0]["session"] == {
            "short_id": "s1", "title": "Mend the parser", "project": str(month.home / "project"),
            "model": "claude-sonnet-4-5", "first": month.now - DAY_S, "last": month.now - 60,
        }  # fmt: skip
        assert output["total"]["session"] is None


def test_inspect_takes_the_short_id_of_a_session(user: User) -> None:
    """Both ids begin alike; the report is about one of them."""
    for number, project in (("1", "/srv/one"), ("2", "/srv/two")):
        id = f"019d6d29-8cf7-{number}fe3"
        user.session(id, user.call(f"m{number}", 9_000, sessionId=id, cwd=project))
    short_id, *_ = user.run("report", "--by", "session", "--project", "two").lines[1].split()
    assert short_id == "019d6d29-8cf7-2"
    assert user.run("inspect", short_id, "--json").json["project"] == "/srv/two"


def test_by_day_has_a_row_per_day_and_the_total(month: User) -> None:
    columns = [line.split() for line in month.run("report", COLUMNS="100").lines[1:4]]
    assert [row[:5] for row in columns] == [
        ["2026-11-13", "claude", "1", "3", "160K"],
        ["2026-11-14", "claude", "2", "2", "40K"],
        ["total", "claude", "2", "5", "160K"],
    ]


def test_end_context_of_an_earlier_day_is_not_that_of_the_last(month: User) -> None:
    first = month.run("report", "--json").json["lines"][0]
    assert (first["key"], first["sessions"]) == ("2026-11-13", 1)
    assert first["end_sent"] != 40_000


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_table_fits_80_columns_and_uses_200(month: User, columns: int) -> None:
    """At 80 columns cache reads and writes are one column; the cost stays at any width."""
    for by in ("day", "session", "project", "branch", "model"):
        lines = without_colour(month.on_terminal("report", "--by", by, columns=columns).out)
        table = [line for line in lines.splitlines() if not line.startswith("Not in the cost")]
        assert max(map(cells, table)) <= columns
        assert table[0].endswith("cost")
        assert ("cache" in table[0]) or columns < 80
        assert ("cache write" in table[0]) == (columns == 200)


@pytest.mark.parametrize("columns", ["40", "80", "120"])
@pytest.mark.parametrize("by", ["project", "branch"])
def test_two_folders_of_one_name_are_told_apart(user: User, by: str, columns: str) -> None:
    for name in ("left", "right"):
        project = f"/srv/a-long-way-down/{name}/packages/app"
        record = user.call(name, 9_000, sessionId=name, cwd=project, gitBranch="x")
        user.session(name, record)
    _, first, second, _ = user.run("report", "--by", by, COLUMNS=columns).lines
    assert "/left/packages/app" in first
    assert "/right/packages/app" in second
    assert first.endswith("$0.00")


MODELS = """\
day                  agents  sessions  calls  peak  compactions  input  cache  output     cost
2026-11-13           claude         1      3  160K            1      9   450K      30    $0.14
  claude-sonnet-4-5                        3                         9   450K      30    $0.14
2026-11-14           claude         2      2   40K            0      6    50K      20    $0.01
  claude-sonnet-4-5                        1                         3    40K      10    $0.01
  my-model                                 1                         3    10K      10  unknown
total                claude         2      5  160K            1     15   500K      50    $0.16
  claude-sonnet-4-5                        4                        12   490K      40    $0.16
  my-model                                 1                         3    10K      10  unknown
Not in the cost: 1 call on models without a known price.
"""


def test_models_are_below_each_line(month: User) -> None:
    assert month.run("report", "--models", COLUMNS="100") == (0, MODELS, "")
    by_session = month.run("report", "--models", "--by", "session").lines
    assert by_session[2].split()[:2] == ["claude-sonnet-4-5", "4"]
    by_model = ("report", "--by", "model")
    assert month.run(*by_model, "--models") == month.run(*by_model)


def test_models_in_json_are_on_every_line(month: User) -> None:
    output = month.run("report", "--json").json
    usage = {"input": 3, "cache_read": 9_400, "cache_write": 597, "output": 10,
             "reasoning": None, "cache_write_1h": 0}  # fmt: skip
    own = {"model": "my-model", "calls": 1, "usage": usage, "cost": None}
    assert output["lines"][1]["models"][1] == output["total"]["models"][1] == own
    for line in output["lines"]:
        assert sum(model["calls"] for model in line["models"]) == line["calls"]


def test_models_in_csv_have_a_row_each(month: User) -> None:
    completed = month.run("report", "--models", "--csv")
    rows = list(csv.DictReader(io.StringIO(completed.out)))
    assert [(row["day"], row["model"], row["calls"], row["cost"][:4]) for row in rows] == [
        ("2026-11-13", "claude-sonnet-4-5", "3", "0.14"),
        ("2026-11-14", "claude-sonnet-4-5", "1", "0.01"),
        ("2026-11-14", "my-model", "1", ""),
    ]


def test_json_has_the_figures_of_the_table(month: User) -> None:
    output = month.run("report", "--json").json
    assert list(output) == ["by", "lines", "total", "source"]
    assert output["by"] == "day"
    assert all(list(line) == LINE for line in (*output["lines"], output["total"]))
    first = output["lines"][0]
    assert (first["key"], first["calls"], first["peak_sent"]) == ("2026-11-13", 3, 160_000)
    assert first["usage"]["cache_read"] == 99_400 + 159_400 + 189_400
    assert output["total"]["unpriced"] == 1


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("day", ["2026-11-13", "2026-11-14"]),
        ("session", ["s1", "s2"]),
        ("model", ["claude-sonnet-4-5", "my-model"]),
    ],
)
def test_grouping_by_day_session_and_model(month: User, by: str, keys: list[str]) -> None:
    output = month.run("report", "--json", "--by", by).json
    assert [line["key"] for line in output["lines"]] == keys
    assert output["total"]["calls"] == 5


def test_home_is_a_tilde_in_the_table_and_a_path_in_json(month: User) -> None:
    home = str(month.home / "project")
    output = month.run("report", "--json", "--by", "project").json
    assert sorted(line["key"] for line in output["lines"]) == sorted([home, "/srv/other"])
    assert "~/project" in month.run("report", "--by", "project").out


def test_cost_of_a_branch(month: User) -> None:
    """In the table the home is a tilde; a session that goes on elsewhere counts in both."""
    project = str(month.home / "project")
    month.session(
        "s3",
        month.call("b1", 20_000, cwd=project, gitBranch="main"),
        month.call("b2", 30_000, cwd=project, gitBranch="feature/basket"),
    )
    output = month.run("report", "--json", "--by", "branch").json
    assert [(line["key"], line["calls"]) for line in output["lines"]] == [
        (f"{project}: feature/basket", 1), (f"{project}: main", 1), ("unknown", 5),
    ]  # fmt: skip
    assert "~/project: feature/basket" in month.run("report", "--by", "branch").out
    chosen = month.run("report", "--json", "--branch", "feature/basket").json["total"]
    assert (chosen["calls"], chosen["usage"]["cache_read"]) == (1, 29_400)
    assert month.run("report", "--branch", "feature").out == "No calls found.\n"


def test_csv_leaves_unknown_values_empty(month: User) -> None:
    completed = month.run("report", "--csv", "--by", "model")
    rows = list(csv.DictReader(io.StringIO(completed.out)))
    assert [row["model"] for row in rows] == ["claude-sonnet-4-5", "my-model"]
    assert (rows[0]["calls"], rows[0]["peak_sent"], rows[0]["compactions"]) == ("4", "160000", "1")
    assert (rows[1]["cost"], rows[1]["end_sent"]) == ("", "")
    assert float(rows[0]["cost"]) > 0


# What a terminal interprets: ESC, BEL, DEL, CSI as one character, and marks that reorder text.
CONTROLS = "\x1b\x07\x7f\x9b\u061c\u200e\u200f\u202a\u202e\u2066\u2069\U000e0001"


@pytest.fixture
def hostile(user: User) -> User:
    """A user with a session whose model and folder have control characters."""
    fields: dict[str, Any] = {"model": f"=evil{CONTROLS}\tm", "cwd": f"/srv/{CONTROLS}פרויקט"}
    user.session("s1", user.call("m1", 9_000, **fields))
    return user


@pytest.mark.parametrize("by", ["model", "project"])
def test_csv_and_json_write_no_control_characters(hostile: User, by: str) -> None:
    for option in ("--csv", "--json"):
        for completed in (hostile.on_terminal, hostile.run):
            lines = completed("report", option, "--by", by).out.splitlines()
            assert all(line.isprintable() for line in lines), lines


def test_json_keeps_the_value_of_a_name_with_control_characters(hostile: User) -> None:
    (line,) = hostile.run("report", "--json", "--by", "project").json["lines"]
    assert line["key"] == f"/srv/{CONTROLS}פרויקט"


def test_csv_has_no_formulas(hostile: User) -> None:
    (row,) = csv.DictReader(io.StringIO(hostile.run("report", "--csv", "--by", "model").out))
    assert row["model"].startswith("'=evil")


def written(user: User, id: str, tokens: int, age: float, **fields: Any) -> dict[str, Any]:
    """A call that wrote all its tokens to the cache, and read none."""
    record = user.call(id, tokens, age, **fields)
    record["message"]["usage"] |= {
        "cache_creation_input_tokens": tokens - 3,
        "cache_read_input_tokens": 0,
    }
    return record


@pytest.fixture
def cold(user: User) -> User:
    """A user with three sessions: one with two misses, one with one, one without."""
    user.session(
        "s1",
        *(written(user, f"m{age}", 60_000 - age, age) for age in (900, 880, 300)),
        user.call("m290", 60_500, 290),
    )
    second: dict[str, Any] = {"sessionId": "s2", "model": "my-model"}
    user.session("s2", *(written(user, f"n{age}", 50_000, age, **second) for age in (99, 98)))
    user.session("s3", user.call("o1", 10_000, 60, sessionId="s3"))
    return user


MISSES = """\
session  title       cause                             calls  misses  tokens     cost
s1       project                                           4       2    118K    $0.41
                     idle longer than the cache lives              1     59K    $0.20
                     tools or instructions changed                 1     59K    $0.20
s2       project     tools or instructions changed         2       1     50K  unknown
total    3 sessions                                        7       3    168K    $0.41
                     tools or instructions changed                 2    109K    $0.20
                     idle longer than the cache lives              1     59K    $0.20
"""


def test_misses_have_tokens_cost_and_causes(cold: User) -> None:
    assert cold.run("report", "--misses", "--by", "session", COLUMNS="100") == (0, MISSES, "")


def test_misses_in_json_are_on_every_line(cold: User) -> None:
    output = cold.run("report", "--json", "--by", "session", "--sort", "misses").json
    assert [line["key"] for line in output["lines"]] == ["s1", "s2", "s3"]
    first, second, third = output["lines"]
    assert first["misses"] == {"calls": 2, "tokens": 118_214, "cost": pytest.approx(0.407838)}
    assert second["misses"] == {"calls": 1, "tokens": 49_990, "cost": None}
    assert third["misses"] == {"calls": 0, "tokens": 0, "cost": 0.0}
    assert list(output["total"]["miss_causes"]) == [
        "tools or instructions changed",
        "idle longer than the cache lives",
    ]


def test_misses_in_csv_have_a_row_per_cause(cold: User) -> None:
    completed = cold.run("report", "--misses", "--csv", "--by", "model")
    rows = list(csv.DictReader(io.StringIO(completed.out)))
    assert [(row["model"], row["misses"], row["cost"][:4]) for row in rows] == [
        ("claude-sonnet-4-5", "1", "0.20"),
        ("claude-sonnet-4-5", "1", "0.20"),
        ("my-model", "1", ""),
    ]


def test_misses_of_calls_that_all_read_the_cache(month: User) -> None:
    assert month.run("report", "--misses").out == "No cache misses found.\n"


def test_project_option_matches_part_of_the_path(month: User) -> None:
    assert month.run("report", "--json", "--project", "srv/other").json["total"]["calls"] == 1
    assert month.run("report", "--project", "nothing").out == "No calls found.\n"


def test_since_option_leaves_out_older_calls(user: User) -> None:
    user.session("s1", user.call("m1", 9_000, 9 * DAY_S), user.call("m2", 9_000, 60))
    assert user.run("report", "--json").json["total"]["calls"] == 2
    assert user.run("report", "--json", "--since", "3d").json["total"]["calls"] == 1
    assert user.run("report", "--json", "--since", "2w").json["total"]["calls"] == 2


def test_since_and_until_take_dates_and_include_both_days(user: User) -> None:
    user.session("s1", *(user.call(f"m{i}", 9_000, i * DAY_S) for i in range(4)))
    days = [line["key"] for line in user.run("report", "--json").json["lines"]]
    chosen = user.run("report", "--json", "--since", days[1], "--until", days[2]).json
    assert [line["key"] for line in chosen["lines"]] == days[1:3]
    assert user.run("report", "--json", "--until", "2d").json["total"]["calls"] == 2


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_impossible_date_is_refused_with_what_is_expected(user: User, option: str) -> None:
    refused = user.run("report", option, "2026-02-30")
    assert refused.code == 2
    assert "expected a date such as 2026-11-01, or a span such as 90m, 24h, 7d, 2w" in refused.err


def test_sort_option_puts_the_largest_figure_first(user: User) -> None:
    for session, calls in {"s1": 1, "s2": 3, "s3": 2}.items():
        sent = 90_000 // calls
        user.session(session, *(user.call(f"{session}-{i}", sent, 60 - i) for i in range(calls)))
    for figure, first in {"calls": "s2", "peak": "s1", "key": "s1"}.items():
        sorted_lines = user.run("report", "--by", "session", "--json", "--sort", figure).json[
            "lines"
        ]
        assert sorted_lines[0]["key"] == first, figure


def test_agent_option_leaves_out_other_agents(month: User) -> None:
    assert month.run("report", "--json", "--agent", "claude").json["total"]["calls"] == 5
    assert month.run("report", "--json", "--agent", "codex").json["total"]["calls"] == 0


def test_calls_of_a_fork_count_when_the_original_is_deleted(user: User) -> None:
    old = user.session("s1", user.call("m1", 9_000, 100))
    user.session("s2", user.call("m1", 9_000, 100), user.call("m2", 9_500, 90), folder="-q")
    user.session("s2", user.call("m1", 9_000, 90), user.call("m2", 9_500, 80))
    (user.projects / "-q" / "s2.jsonl").unlink()
    assert user.run("report", "--json").json["total"]["calls"] == 2
    old.unlink()
    assert user.run("report", "--json", "--agent", "claude").json["total"]["calls"] == 2
    assert user.run("report", "--json").json["total"]["calls"] == 2


# Repeated reports.


def append(user: User, name: str, *records: dict[str, object]) -> None:
    with (user.projects / "-p" / f"{name}.jsonl").open("a") as file:
        for record in records:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def calls(user: User, *arguments: str, **env: Any) -> int:
    count: int = user.run("report", "--json", *arguments, **env).json["total"]["calls"]
    return count


def test_unchanged_report_is_identical(month: User) -> None:
    for command in (
        ["report"],
        ["report", "--json"],
        ["report", "--csv"],
        ["report", "--by", "model"],
    ):
        first = month.run(*command)
        assert month.run(*command) == first == month.run(*command)


def test_repeated_report_is_coloured_only_on_a_terminal(month: User) -> None:
    completed = month.on_terminal("report")
    assert "\x1b[" in completed.out
    assert month.on_terminal("report") == completed
    assert "\x1b[" not in month.run("report").out
    assert len(month.on_terminal("report", columns=200).lines[0]) > len(completed.lines[0])


def test_repeated_report_counts_appended_calls(user: User) -> None:
    user.session("s1", user.call("m1", 9_000))
    assert (calls(user), calls(user)) == (1, 1)
    append(user, "s1", user.call("m2", 9_100, 50))
    assert (calls(user), calls(user)) == (2, 2)


def test_repeated_report_counts_new_files_in_any_folder(user: User) -> None:
    user.session("s1", user.call("m1", 9_000))
    assert (calls(user), calls(user)) == (1, 1)
    user.session("s2", user.call("m2", 9_000))
    assert (calls(user), calls(user)) == (2, 2)
    user.session("s3", user.call("m3", 9_000), folder="-q")
    assert (calls(user), calls(user)) == (3, 3)
    user.subagent("s1", "a1", user.call("m4", 9_000))
    assert (calls(user), calls(user)) == (4, 4)


def test_repeated_report_drops_deleted_files(user: User) -> None:
    user.session("s1", user.call("m1", 9_000))
    path = user.session("s2", user.call("m2", 9_000))
    assert (calls(user), calls(user)) == (2, 2)
    path.unlink()
    assert (calls(user), calls(user)) == (1, 1)


def test_repeated_report_counts_a_rewrite_of_the_same_size(user: User) -> None:
    path = user.session("s1", user.call("m1", 9_000, 70))
    size = path.stat().st_size
    assert (calls(user), calls(user)) == (1, 1)
    user.session("s1", user.call("m2", 8_000, 80))
    assert path.stat().st_size == size
    assert user.run("report", "--json").json["total"]["peak_sent"] == 8_000


def test_repeated_report_counts_a_link_whose_target_appeared(user: User) -> None:
    user.session("s1", user.call("m1", 9_000))
    (user.projects / "-p" / "s2.jsonl").symlink_to(user.home / "elsewhere.jsonl")
    assert (calls(user), calls(user)) == (1, 1)
    user.write(user.home / "elsewhere.jsonl", [user.call("m2", 9_000)], 60)
    assert calls(user) == 2


def test_repeated_report_follows_arguments_time_zone_and_config_folder(month: User) -> None:
    assert (calls(month), calls(month)) == (5, 5)
    assert calls(month, "--project", "srv/other") == 1
    assert calls(month, CLAUDE_CONFIG_DIR=str(month.home)) == 0
    days = [line["key"] for line in month.run("report", "--json", TZ="UTC-9").json["lines"]]
    assert days == ["2026-11-13", "2026-11-14"]
    days = [line["key"] for line in month.run("report", "--json", TZ="UTC+13").json["lines"]]
    assert days == ["2026-11-12", "2026-11-13"]


def gemini_chat(user: User, call: str) -> None:
    """Write a Gemini CLI chat with one call into a new folder."""
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


def test_repeated_report_counts_the_first_file_of_another_agent(user: User) -> None:
    user.session("s1", user.call("m1", 9_000))
    assert (calls(user), calls(user)) == (1, 1)
    gemini_chat(user, "another")
    assert calls(user) == 2


def test_same_call_id_in_two_agents_counts_twice(user: User) -> None:
    user.session("s1", user.call("m1", 9_000))
    gemini_chat(user, "m1")
    assert calls(user) == 2


def test_session_id_is_taken_from_the_file_name_or_its_content(user: User) -> None:
    gemini_chat(user, "m1")
    assert [row["session_id"] for row in user.run("status", "--all", "--json").json] == ["g1"]
    assert user.run("report", "--json", "--by", "session").json["lines"][0]["key"] == "g1"
    assert user.run("inspect", "g1", "--json").json["session_id"] == "g1"


def test_corrupt_cache_does_not_change_the_report(month: User) -> None:
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


def test_full_disk_leaves_no_partial_cache(month: User) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "brimline", "report"],
        capture_output=True,
        text=True,
        cwd=month.cwd,
        env={k: v for k, v in month.env.items() if "COVERAGE" not in k},
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)),
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout == month.run("report").out
    assert sorted(os.listdir(month.home.parent / "cache")) == ["state"]


def test_user_without_transcripts_is_told_so(user: User) -> None:
    completed = user.run("report")
    assert (completed.code, completed.err) == (0, "")
    names = ", ".join(map(display_name, agent_names()))
    assert completed.out == f"No transcripts found ({names}).\n"


@pytest.fixture
def slow(user: User) -> User:
    """A user whose report takes more than a second, and several times that under coverage."""
    user.env = {name: text for name, text in user.env.items() if "COVERAGE" not in name}
    path = user.session("s1", user.call("m1", 9_000))
    line = json.dumps(user.call("m2", 9_000)).encode() + b"\n"
    with path.open("ab") as file:
        for number in range(250):
            file.write(
                b"".join(line.replace(b'"m2"', b'"m%d-%d"' % (number, i)) for i in range(600))
            )
    return user


@pytest.mark.slow
def test_slow_report_shows_progress_on_a_terminal(slow: User) -> None:
    completed = slow.on_terminal("report", "--json")
    assert completed.code == 0
    assert "█" in completed.out
    assert re.search(r"\d of \d+ MB, \d+ MB/s, \d+s left", completed.out)


@pytest.mark.slow
def test_interrupted_report_ends_without_a_traceback(slow: User) -> None:
    completed = slow.on_terminal("report", "--json", interrupt="MB/s")
    assert completed.code == 130
    assert "Traceback" not in completed.out
    assert "{" not in completed.out
