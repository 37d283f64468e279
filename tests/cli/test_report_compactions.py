"""`brimline report --compactions`: what each compaction left, and the averages by version."""

import csv
import io
from typing import Any

import pytest

from brimline.handoff.pins import INTRO

from .terminal import Json, User

STATEMENT = "Please move the shipping costs into the basket."
INJECTED = f"{INTRO}\n- Mind the basket."


def edit_of(file: str) -> Json:
    edit = {"file_path": file, "old_string": "a", "new_string": "b"}
    return {"type": "tool_use", "id": file, "name": "Edit", "input": edit}


def session_with_two_compactions(user: User, **fields: Any) -> list[Json]:
    """A statement and an edit; the second summary names nothing."""

    def said(age: float, content: object) -> Json:
        return user.record("user", age, message={"role": "user", "content": content}, **fields)

    edited = user.call("m1", 100_000, 500, **fields)
    edited["message"]["content"] = [edit_of("/app/basket.py")]
    second = user.call("m3", 50_000, 300, **fields)
    second["message"]["content"] = [edit_of("/app/price.py")]
    first_summary, last_summary = user.compaction(400, **fields), user.compaction(200, **fields)
    first_summary[1]["message"]["content"] = f"This session is being continued. {STATEMENT}"
    hook = {"type": "hook_additional_context", "hookName": "SessionStart", "content": [INJECTED]}
    return [
        said(510, STATEMENT),
        edited,
        said(490, [{"type": "tool_result", "tool_use_id": "/app/basket.py", "content": "ok"}]),
        *first_summary,
        user.record("attachment", 390, attachment=hook, **fields),
        user.call("m2", 40_000, 350, **fields),
        second,
        *last_summary,
        user.call("m4", 30_000, 100, **fields),
    ]


@pytest.fixture
def compacted(user: User) -> User:
    user.now = 1_794_657_600  # 2026-11-14, 12:00 UTC
    user.session("s1", *session_with_two_compactions(user))
    later: dict[str, Any] = {"sessionId": "s2", "version": "2.1.9", "cwd": "/srv/other"}
    user.session("s2", user.call("n1", 90_000, 90, **later), *user.compaction(50, **later))
    user.session("s3", user.call("o1", 90_000, 90, sessionId="s3"))
    return user


TABLE = """\
at           session  client          trigger  before  after  statements  files  injected  calls to edit
11-14 11:53  s1       claude 2.1.325  auto       167K    40K        100%     0%        95              2
11-14 11:56  s1       claude 2.1.325  auto       167K    30K          0%     0%         0
11-14 11:59  s2       claude 2.1.9    auto       167K                                   0

client          compactions  before  after  statements  files  injected  calls to edit
claude 2.1.9              1    167K                              0 of 1
claude 2.1.325            2    167K    35K         50%     0%    1 of 2              2
"""  # noqa: E501


def test_table_has_a_line_for_each_compaction_and_version(compacted: User) -> None:
    done = compacted.run("report", "--compactions", COLUMNS="120")
    assert (done.code, done.err) == (0, "")
    assert "\n".join(line.rstrip() for line in done.lines) + "\n" == TABLE


def test_json_has_the_counts(compacted: User) -> None:
    report = compacted.run("report", "--compactions", "--json").json
    first, second, third = report["compactions"]
    assert first["effect"] == {
        "injected_chars": len(INJECTED),
        "facts": {
            "statements": {"kept": 1, "total": 1},
            "files": {"kept": 0, "total": 1},
            "numbers": {"kept": 0, "total": 0},
        },
        "is_summary_encrypted": False,
        "calls_to_edit": 2,
    }
    assert (second["cycle"], second["effect"]["calls_to_edit"]) == (1, None)
    assert (third["session"], third["project"], third["version"]) == ("s2", "/srv/other", "2.1.9")
    inspected = compacted.run("inspect", "s1", "--json").json["threads"][0]["compactions"]
    assert [each["effect"] for each in inspected] == [first["effect"], second["effect"]]
    assert [each["compactions"] for each in report["averages"]] == [1, 2]


def test_csv_has_a_row_for_each_compaction(compacted: User) -> None:
    out = compacted.run("report", "--compactions", "--csv").out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["session"], row["statements_kept"], row["files"]) for row in rows] == [
        ("s1", "1", "1"),
        ("s1", "0", "1"),
        ("s2", "0", "0"),
    ]


def test_compaction_that_a_fork_copied_counts_once(compacted: User) -> None:
    records = session_with_two_compactions(compacted, sessionId="fork")
    head = compacted.record("queue-operation", 40, sessionId="fork", operation="enqueue")
    compacted.session("fork", head, *records, compacted.call("f1", 30_000, 30, sessionId="fork"))
    compactions = compacted.run("report", "--compactions", "--json").json["compactions"]
    assert [each["session"] for each in compactions] == ["s1", "s1", "s2"]


def test_options_select_compactions(compacted: User) -> None:
    def sessions(*options: str) -> list[str]:
        report = compacted.run("report", "--compactions", "--json", *options).json
        return [each["session"] for each in report["compactions"]]

    assert sessions("--project", "other") == ["s2"]
    assert sessions("--agent", "codex") == []
    assert sessions("--until", "2026-11-13") == []
    assert sessions("--since", "2026-11-14") == ["s1", "s1", "s2"]
    assert sessions("--branch", "main") == []


def test_user_without_compactions_is_told_so(user: User) -> None:
    assert user.run("report", "--compactions").out == "No compactions found.\n"
