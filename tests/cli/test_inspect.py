"""`brimline inspect`: one transcript or stream, as JSON and as text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .terminal import Json, User, cells, without_colour

TOP = ["agent", "session_id", "records", "skipped", "threads"]
THREAD = [
    "thread", "model", "calls", "sent", "held", "last_sent", "peak_sent", "percent", "percent_raw",
    "percent_of_limit", "window", "limit", "cycle", "compactions", "formulas", "series",
]  # fmt: skip
FORMULAS = ["latest", "max_cache_read_plus_sums", "sum_cache_creation", "last_input", "result_sums",
            "effective"]  # fmt: skip


PI = {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-11-14T12:00:00Z", "cwd": "/p"}


def test_cost_is_that_of_the_report(inspected: User) -> None:
    (line,) = inspected.run("report", "--by", "session", "--json").json["lines"]
    output = inspected.run("inspect", "s1", "--json").json
    assert (output["cost"], output["client_cost"], output["unpriced"]) == (
        pytest.approx(line["cost"]),
        None,
        0,
    )
    assert f"\ncost ${line['cost']:,.2f}  duration 3m  " in inspected.run("inspect", "s1").out


def test_head_has_duration_and_age_of_the_session(user: User) -> None:
    """From the first call of any thread to the last one; a stream of Claude Code has no times."""
    user.session("s1", user.call("m1", 9_000, 7_500), user.call("m2", 9_500, 900))
    user.subagent("s1", "a1", user.call("x1", 20_000, 300))
    output = user.run("inspect", "s1", "--json").json
    assert output["duration_seconds"] == pytest.approx(7_200, abs=1)
    assert output["age_seconds"] == pytest.approx(300, abs=60)
    assert "  duration 2h  last call 5m ago\n" in user.run("inspect", "s1").out
    output = user.run("inspect", "-", "--json", stdin=streamed()).json
    assert (output["duration_seconds"], output["age_seconds"]) == (None, None)
    shown = user.run("inspect", "-", stdin=streamed())
    assert "  duration unknown  last call unknown\n" in shown.out


def test_unknown_cost_is_stated(user: User) -> None:
    user.session("s1", user.call("m1", 9_000, model="my-model"))
    assert "\ncost unknown  duration 0s  " in user.run("inspect", "s1").out


def test_cost_by_the_client_is_marked(user: User, tmp_path: Path) -> None:
    usage = {"input": 9, "output": 9, "cacheRead": 0, "cacheWrite": 0}
    costs: list[Json] = [{"cost": {"total": 0.25}}, {}]
    replies = [
        {"type": "message", "id": f"e{number}", "message": {
            "role": "assistant", "model": "gpt-5.3-codex-spark", "timestamp": number,
            "usage": usage | cost,
        }}
        for number, cost in enumerate(costs)
    ]  # fmt: skip
    path = tmp_path / "pi.jsonl"
    path.write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in (PI, *replies))
    )
    output = user.run("inspect", str(path), "--json").json
    assert (output["cost"], output["client_cost"], output["unpriced"]) == (0.25, 0.25, 1)
    expected = (
        "cost $0.25, $0.25 of it by the client: no price is known, "
        "without 1 call on models without a known price"
    )
    assert expected in user.run("inspect", str(path)).lines


def test_cost_of_a_fork_is_without_the_calls_that_it_copied(user: User) -> None:
    """Whether the report was made before or not; a copy of the file elsewhere has no original."""
    queued = user.record("queue-operation", 50)
    original = user.session("b1", user.call("m1", 9_000, 100))
    fork = user.session("a1", queued, user.call("m1", 9_000, 100), user.call("m2", 9_500, 40))
    costs = {name: user.run("inspect", name, "--json").json["cost"] for name in ("a1", "b1")}
    lines = user.run("report", "--by", "session", "--json").json["lines"]
    assert costs == pytest.approx({line["key"]: line["cost"] for line in lines})
    again = {name: user.run("inspect", name, "--json").json["cost"] for name in ("a1", "b1")}
    assert again == costs
    assert user.run("inspect", str(fork), "--json").json["cost"] == costs["a1"]
    original.unlink()
    alone = user.run("inspect", "a1", "--json").json["cost"]
    assert alone == pytest.approx(costs["a1"] + costs["b1"])


@pytest.fixture
def inspected(user: User) -> User:
    """A user with a session that compacted, and its subagent."""
    user.now = 1_794_657_600  # 2026-11-14, 12:00 UTC
    user.session(
        "s1",
        user.call("m1", 100_000, 300, output=50),
        user.call("m1", 100_000, 299, output=500),
        user.call("m2", 160_000, 200),
        *user.compaction(150),
        user.record("hologram", 149),
        user.call("m3", 40_000, 100, output=1_000),
    )
    user.subagent("s1", "a1", user.call("x1", 20_000, 250))
    return user


def test_json_has_every_field_with_the_right_value(inspected: User) -> None:
    completed = inspected.run("inspect", "s1", "--json", "--series")
    assert (completed.code, completed.err) == (0, "")
    output: Json = completed.json
    assert [key for key in TOP if key not in output] == []
    assert (output["agent"], output["session_id"], output["records"]) == ("claude", "s1", 8)
    assert output["skipped"] == {"unknown": 1, "malformed": 0}
    main, sub = output["threads"]
    for thread in (main, sub):
        assert [key for key in THREAD if key not in thread] == []
        assert {"tokens", "origin"} <= set(thread["window"])
        assert {"tokens", "origin"} <= set(thread["limit"])
        assert set(FORMULAS) <= set(thread["formulas"])
    assert (main["thread"], main["model"], main["calls"]) == ("main", "claude-sonnet-4-5", 3)
    assert (main["sent"], main["held"], main["peak_sent"]) == (40_000, 41_000, 160_000)
    assert (main["percent"], main["percent_raw"], main["cycle"]) == (20.0, 20.0, 1)
    assert main["percent_of_limit"] == pytest.approx(100 * 41 / 167, abs=0.05)
    assert (main["window"]["tokens"], main["limit"]["tokens"]) == (200_000, 167_000)
    assert main["compactions"] == [
        {
            "at": "2026-11-14T11:57:30.000Z",
            "trigger": "auto",
            "before": 167_000,
            "after": 40_000,
            "inferred": False,
            "effect": {
                "injected_chars": 0,
                "facts": {
                    kind: {"kept": 0, "total": 0} for kind in ("statements", "files", "numbers")
                },
                "is_summary_encrypted": False,
                "calls_to_edit": None,
            },
        }
    ]
    assert main["series"] == [
        {"call": "m1", "at": "2026-11-14T11:55:01.000Z", "sent": 100_000, "output": 500},
        {"call": "m2", "at": "2026-11-14T11:56:40.000Z", "sent": 160_000, "output": 10},
        {"call": "m3", "at": "2026-11-14T11:58:20.000Z", "sent": 40_000, "output": 1_000},
    ]
    assert main["formulas"]["latest"] == 40_000
    assert main["formulas"]["result_sums"] == 300_000
    assert (sub["thread"], sub["calls"], sub["sent"]) == ("a1", 1, 20_000)


def test_series_is_left_out_unless_requested(inspected: User) -> None:
    assert "series" not in inspected.run("inspect", "s1", "--json").json["threads"][0]


def test_percentage_after_a_compaction_is_null(user: User) -> None:
    user.session("s1", user.call("m1", 160_000), *user.compaction())
    thread = user.run("inspect", "s1", "--json").json["threads"][0]
    assert (thread["percent"], thread["percent_raw"], thread["percent_of_limit"]) == (None,) * 3
    assert (thread["state"], thread["peak_sent"], thread["calls"]) == ("unknown", 160_000, 1)
    assert (thread["sent"], thread["held"], thread["last_sent"]) == (None, None, 160_000)
    assert "unknown until the next reply" in user.run("inspect", "s1").out


PEOPLE = """\
Claude Code  2.1.325  ~/project  session s1
8 records read, 1 of an unknown kind

main  claude-sonnet-4-5  Context: 20.0% (40K/200K)  of limit 24.6% (167K)
no forecast: too few calls  3 calls  cycle 1
   200K ┤
   167K ┼╌╌╌
        ┤ █
        ┤ █
        ┤ █
        ┤██
        ┤██
        ┤██
        ┤███
        ┤███
      0 └──▲
         3 calls   ▲ compaction (1)   ╌ limit
"""

BELOW = """\
compaction after call 2: 167,000 -> 40,000 (auto)
  injected nothing  no edit since
"""

AUDIT = """\
compaction after call 2: 167,000 -> 40,000 (auto)
  injected nothing  no edit since

formula                    tokens  of window   off by
latest                     40,000      20.0%        0
max_cache_read_plus_sums  160,919      80.5%  +302.3%
sum_cache_creation          3,310       1.7%   -91.7%
last_input                      3       0.0%  -100.0%
result_sums               300,000     150.0%  +650.0%
effective                   4,540       2.3%   -88.7%
"""


def test_text_has_a_chart_with_compaction_and_limit(inspected: User) -> None:
    completed = inspected.run("inspect", "s1", COLUMNS="100")
    assert (completed.code, completed.err) == (0, "")
    head, cost, *others = completed.out.split("\n", 2)
    assert cost.startswith("cost $0.13  duration 3m  last call ")
    assert "\n".join([head, *others]).startswith(PEOPLE)
    assert BELOW in completed.out
    assert "formula" not in completed.out
    assert "\na1  claude-sonnet-4-5  Context: 10.0% (20K/200K)" in completed.out


def test_audit_adds_the_formulas_and_counts_the_records(user: User, inspected: User) -> None:
    assert AUDIT in inspected.run("inspect", "s1", "--audit", COLUMNS="100").out
    user.session("s2", user.call("m1", 9_000))
    assert "records read" not in user.run("inspect", "s2").out
    assert "\n1 record read\n" in user.run("inspect", "s2", "--audit").out


@pytest.mark.parametrize(
    ("calls", "step", "shown"),
    [(8, 20_000, "about 2 calls left (1-4)"), (101, 1_000, "about 40 calls left (18-72)")],
)
def test_thread_says_how_many_calls_are_left(user: User, calls: int, step: int, shown: str) -> None:
    """With a range if it is narrow; JSON has it in any case."""
    user.session("s3", *(user.call(f"m{i}", 20_000 + step * i, calls - i) for i in range(calls)))
    out = user.run("inspect", "s3", COLUMNS="140").out
    assert re.search(rf" \(167K\)  {re.escape(shown)}\s", out)
    low, high = user.run("inspect", "s3", "--json").json["threads"][0]["calls_left_range"]
    assert low < high


def test_minutes_of_work_and_the_next_turn_are_shown_and_null_if_unknown(user: User) -> None:
    user.session(
        "s1",
        *(
            record
            for number in range(10)
            for record in (
                user.record("user", 60, message={"role": "user", "content": "go on"}),
                user.call(f"m{number}", 50_000 + 8_000 * number, 600 - 30 * number),
            )
        ),
    )
    thread = user.run("inspect", "s1", "--json").json["threads"][0]
    assert thread["minutes_left"] == thread["calls_left"] / 2
    assert thread["next_turn"] == {"turns": 10, "fitting": 10, "median_tokens": 8_000}
    out = user.run("inspect", "s1").out
    assert f"about {thread['calls_left'] // 2}m of work" in out
    assert "\nthe next turn probably fits: 10 of the last 10 would, their median added 8K\n" in out
    user.session("s2", user.call("m1", 9_000))
    thread = user.run("inspect", "s2", "--json").json["threads"][0]
    assert (thread["minutes_left"], thread["next_turn"]) == (None, None)
    assert "next turn" not in user.run("inspect", "s2").out


@pytest.mark.parametrize("width", [40, 80, 120])
def test_facts_of_head_and_thread_are_wrapped(user: User, width: int) -> None:
    user.session("s1", user.call("m1", 9_000), user.call("m2", 9_500))
    lines = user.run("inspect", "s1", COLUMNS=str(width)).lines
    facts = lines[: next(i for i, line in enumerate(lines) if "┤" in line)]
    assert max(cells(line) for line in facts if not line.startswith("cache")) <= width


def test_series_is_a_table_of_every_call(inspected: User) -> None:
    out = inspected.run("inspect", "s1", "--series").out
    assert "call  at                           sent  output\n" in out
    assert "m1    2026-11-14T11:55:01.000Z  100,000     500\n" in out


@pytest.mark.parametrize("columns", [80, 200])
def test_chart_of_many_calls_fits_the_terminal(user: User, columns: int) -> None:
    calls = [user.call(f"m{i}", 20_000 + 100 * i) for i in range(1_000)]
    user.session("s1", *calls[:700], *user.compaction(), *calls[700:])
    out = without_colour(user.on_terminal("inspect", "s1", columns=columns).out)
    chart = [line for line in out.splitlines() if {"┤", "└", "┼"} & set(line)]
    assert len(chart) == 11
    assert max(map(cells, chart)) == columns
    assert chart[-1].count("▲") == 1


def test_single_call_has_no_chart(user: User) -> None:
    """Nor has a second one without figures."""
    bare = user.call("m2", 0)
    bare["message"]["usage"] = {"input_tokens": 0, "output_tokens": 7}
    user.session("s1", user.call("m1", 9_000), bare)
    user.session("s2", user.call("m3", 9_000), user.call("m4", 9_500))
    assert "┤" not in user.run("inspect", "s1").out
    assert "┤" in user.run("inspect", "s2").out


def test_chart_columns_have_the_colour_of_their_height(inspected: User) -> None:
    out = inspected.on_terminal("inspect", "s1").out
    assert "\x1b[33m█" in out
    assert "\x1b[31m█" in out
    assert "\x1b[32m█" in out


def test_chart_columns_have_the_colours_of_the_levels_and_the_limit(inspected: User) -> None:
    out = inspected.run("inspect", "s1", "--colour", "always", BRIMLINE_LEVELS="10,90").out
    assert "\x1b[33m█" in out
    assert "\x1b[31m█" not in out
    limits: Json = {"BRIMLINE_LIMITS": "claude=160000"}
    assert "\x1b[1;31m█" in inspected.run("inspect", "s1", "--colour", "always", **limits).out


def test_chart_works_without_prompt_sizes_and_window(user: User) -> None:
    bare = user.call("m1", 0, model="my-model", version="2.1.300")
    bare["message"]["usage"] = {"input_tokens": 0, "output_tokens": 7}
    user.session("s1", bare)
    for command in (["inspect", "s1"], ["inspect", "s1", "--json"], ["status"], ["report"]):
        completed = user.run(*command)
        assert (completed.code, completed.err) == (0, "")


def test_transcript_without_calls_is_reported(user: User) -> None:
    user.session("s1", user.record("user", message={"role": "user", "content": "hello"}))
    assert user.run("inspect", "s1").lines[2] == "1 record read: no model call in it"
    assert user.run("inspect", "s1", "--json").json["threads"] == []


def test_malformed_records_are_counted_with_their_place(user: User) -> None:
    path = user.session("s1", user.call("m1", 9_000))
    with path.open("ab") as file:
        file.write(b'{"type":"assistant",\n\xff\xfe\n')
    out = user.run("inspect", "s1").out
    assert "3 records read, 2 malformed\n" in out
    assert out.count("  malformed: before byte ") == 2
    assert user.run("inspect", "s1", "--json").json["skipped"] == {"unknown": 0, "malformed": 2}


def test_path_may_be_relative(inspected: User) -> None:
    path = inspected.projects / "-p" / "s1.jsonl"
    output = inspected.run("inspect", str(path), "--json").json
    assert [thread["thread"] for thread in output["threads"]] == ["main", "a1"]
    (inspected.cwd / "copy.jsonl").write_bytes(path.read_bytes())
    output = inspected.run("inspect", "copy.jsonl", "--json").json
    assert [thread["thread"] for thread in output["threads"]] == ["main"]


def test_transcript_is_read_from_standard_input(inspected: User) -> None:
    data = (inspected.projects / "-p" / "s1.jsonl").read_bytes()
    output = inspected.run("inspect", "-", "--json", stdin=data).json
    assert (output["records"], output["threads"][0]["sent"]) == (7, 40_000)


def streamed() -> bytes:
    """Output of `claude -p --output-format stream-json`."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": 30_000, "output_tokens": 1}
    message = {"id": "m1", "model": "claude-sonnet-4-5-20250929", "usage": usage}
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s9", "cwd": "/srv/project",
         "model": "claude-sonnet-4-5-20250929", "claude_code_version": "2.1.325"},
        {"type": "assistant", "session_id": "s9", "message": message},
        {"type": "result", "session_id": "s9", "usage": {**usage, "output_tokens": 90},
         "modelUsage": {"claude-sonnet-4-5-20250929": {"contextWindow": 300_000}}},
    ]  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_stream_on_standard_input_uses_the_reported_window(user: User) -> None:
    completed = user.run("inspect", "-", "--json", stdin=streamed())
    assert (completed.code, completed.err) == (0, "")
    thread = completed.json["threads"][0]
    assert (completed.json["session_id"], thread["sent"], thread["percent"]) == ("s9", 30_003, 10.0)
    assert (thread["window"]["tokens"], thread["window"]["origin"]) == (300_000, "reported")


def test_gemini_chat_is_read_from_standard_input(user: User) -> None:
    time = "2026-11-15T03:25:06.382Z"
    counts = {"input": 5_000, "output": 5, "cached": 0, "thoughts": 0, "tool": 0, "total": 5_005}
    lines: list[dict[str, Any]] = [
        {"sessionId": "g1", "projectHash": "ab", "startTime": time, "kind": "main"},
        {"id": "m1", "timestamp": time, "type": "gemini", "model": "gemini-2.5-pro",
         "tokens": counts},
    ]  # fmt: skip
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    completed = user.run("inspect", "-", "--json", stdin=data)
    assert (completed.code, completed.err) == (0, "")
    assert (completed.json["agent"], completed.json["threads"][0]["sent"]) == ("gemini", 5_000)


@pytest.mark.parametrize("data", [b"", b"hello\n", b"\0" * 1_000, b"\xff" * 1_000, b"[]\n" * 9])
def test_unknown_format_on_standard_input_is_an_error_with_a_hint(user: User, data: bytes) -> None:
    completed = user.run("inspect", "-", stdin=data)
    assert (completed.code, completed.out) == (2, "")
    names = "claude, cline, codex, copilot, gemini, goose, kilo, kimi, opencode, pi, qwen"
    assert f"--agent ({names})" in completed.err


@pytest.mark.parametrize(
    "agent",
    [
        *("claude", "cline", "codex", "copilot", "pi", "gemini", "goose", "kilo", "kimi"),
        *("opencode", "qwen"),
    ],
)
@pytest.mark.parametrize("data", [b"", b"hello\n", b"\0" * 1_000, b"\xff" * 1_000, b"[]\n" * 9])
def test_forced_agent_never_ends_in_a_traceback(user: User, agent: str, data: bytes) -> None:
    completed = user.run("inspect", "-", "--agent", agent, stdin=data)
    assert completed.code in (0, 2)
    assert "Traceback" not in completed.err


def test_agent_option_selects_the_reader(inspected: User) -> None:
    path = inspected.cwd / "x.jsonl"
    path.write_bytes(b"{}\n" + (inspected.projects / "-p" / "s1.jsonl").read_bytes())
    assert (
        inspected.run("inspect", "x.jsonl", "--agent", "claude", "--json").json["threads"][0][
            "calls"
        ]
        == 3
    )


def no_file(user: User, target: Path) -> str:
    """The error output for a target that cannot be read."""
    completed = user.run("inspect", str(target))
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith(f"brimline: cannot read {target}: ")
    return completed.err


def test_directory_or_broken_link_is_an_error_with_the_reason(user: User) -> None:
    (user.cwd / "x.jsonl").mkdir()
    assert no_file(user, user.cwd / "x.jsonl").endswith(
        ": it is a directory\nhint: Name a transcript file inside it.\n"
    )
    (user.cwd / "y.jsonl").symlink_to("none")
    assert ": no such file\n" in no_file(user, user.cwd / "y.jsonl")


def test_escapes_in_a_file_name_do_not_reach_the_terminal(user: User) -> None:
    completed = user.run("inspect", "./\x1b]0;owned\x07.jsonl")
    assert completed.code == 2
    assert not {"\x1b", "\x07"} & set(completed.err)


def test_usage_above_the_window_is_stated_in_words(user: User) -> None:
    user.session("s1", user.call("m1", 260_000))
    out = user.run("inspect", "s1", BRIMLINE_WINDOWS="claude=200000").out
    assert "WARNING: more than the window" in out


def test_usage_above_the_window_overrides_an_assumed_window(user: User) -> None:
    user.session("s1", user.call("m1", 260_000))
    window = user.run("inspect", "s1", "--json").json["threads"][0]["window"]
    assert (window["tokens"], window["origin"]) == (1_000_000, "observed")


@pytest.mark.slow
def test_line_of_100_megabytes_is_counted_within_bounded_memory(user: User) -> None:
    path = user.session("s1", user.call("m1", 9_000))
    with path.open("ab") as file:
        file.write(b'{"type":"user","x":"' + b"x" * (100 << 20) + b'"}\n')
        file.write(json.dumps(user.call("m2", 10_000)).encode() + b"\n")
    output = user.run("inspect", "s1", "--json").json
    assert output["skipped"]["malformed"] == 1
    assert output["threads"][0]["sent"] == 10_000


def test_parts_of_what_the_client_compares_are_named(user: User) -> None:
    """Codex adds what came in since the last call, and the reasoning of earlier turns."""
    folder = user.home / ".codex/sessions/2026/11/14"
    usage = {"input_tokens": 200_000, "cached_input_tokens": 0, "output_tokens": 100}
    info = {"last_token_usage": usage, "total_token_usage": usage, "model_context_window": 258_400}
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
    secret = {"type": "reasoning", "encrypted_content": "x" * 54_200}
    output = {"type": "function_call_output", "output": ""}
    output["output"] = "x" * (8_000 - len(json.dumps(output, separators=(",", ":"))))
    payloads = [
        ("session_meta", {"id": "c1", "cwd": "/p", "cli_version": "0.142.5"}),
        ("turn_context", {"turn_id": "t1", "model": "gpt-5.5"}),
        ("response_item", secret),
        ("response_item", prompt),
        ("response_item", {"type": "function_call"}),
        ("response_item", output),
        ("event_msg", {"type": "token_count", "info": info}),
    ]
    at = "2026-11-14T11:55:00.000Z"
    records = [{"timestamp": at, "type": kind, "payload": each} for kind, each in payloads]
    path = str(user.write(folder / "rollout-2026-11-14T11-55-00-c1.jsonl", records, 60))
    assert (
        "the client compares 212,100 = held 200,100 + pending 2,000 + earlier reasoning 10,000"
        in (user.run("inspect", path).lines)
    )
    (thread,) = user.run("inspect", path, "--json").json["threads"]
    assert thread["compared"] == {
        "tokens": 212_100,
        "parts": {"held": 200_100, "pending": 2_000, "earlier reasoning": 10_000},
    }
    assert thread["percent_of_limit"] == round(100 * 212_100 / 244_800, 1)
