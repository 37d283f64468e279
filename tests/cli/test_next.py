"""`brimline next`: what stops a session first."""

import re
from typing import Any

import msgspec
import pytest

from brimline.cli.daemon_sessions import KnownSession
from brimline.store.rows import SessionRow

from .terminal import User
from .test_daemon_sessions import answering, known_thread, response

LONG = "Move the orders to Postgres 18"


@pytest.fixture
def several(user: User) -> User:
    """A user with a session near its limit, a calm one, and a full one of last week."""
    prompt = {"type": "user", "message": {"role": "user", "content": LONG}}
    for id, sent, age in (("near", 150_000, 900), ("calm", 40_000, 60), ("old", 160_000, 700_000)):
        call = user.call(f"m-{id}", sent, age, sessionId=id, cwd="/srv/shop")
        user.session(id, {**prompt, "sessionId": id, "cwd": "/srv/shop"}, call, age=age)
    return user


def test_sessions_with_a_need_are_shown_with_their_ends(several: User) -> None:
    assert several.run("next", COLUMNS="80").lines == [
        f"near  {LONG} · /srv/shop · Claude Code",
        "  At 89.8% of its limit: have it write down where it stands.",
        "  compaction  of limit 89.8%",
    ]


def test_named_session_is_shown_also_without_a_need_or_if_it_is_old(several: User) -> None:
    compaction, cache = several.run("next", "calm").lines[1:]
    assert compaction == "  compaction  of limit 24.0%"
    assert re.fullmatch(r"  cache       until .*\d\d:\d\d, then 40K again \(\$0\.15\)", cache)
    assert several.run("next", "old").lines[1:] == ["  compaction  of limit 95.8%"]
    unknown = several.run("next", "other")
    assert (unknown.code, unknown.out) == (2, "")


def test_budget_is_an_end_if_it_is_set(several: User) -> None:
    ends = several.run("next", "calm", BRIMLINE_BUDGET="0.5").lines[1:]
    assert re.fullmatch(r"  budget      \$0\.\d\d of \$0\.50, \d+\.\d%", ends[1])
    assert several.run("next", BRIMLINE_BUDGET="nan").code == 2


def test_budget_of_the_daemon_counts(several: User) -> None:
    session = KnownSession(
        SessionRow("calm", "claude", several.now),
        (known_thread(at=several.now),),
        cost=1.0,
        budget=2.0,
    )
    with answering(several, response(msgspec.json.encode([session]))):
        lines = several.run("next", "calm", BRIMLINE_BUDGET="0.5").lines
    assert "  budget      $1.00 of $2.00, 50.0%" in lines


def test_nothing_needs_a_person(user: User) -> None:
    user.session("calm", user.call("m1", 40_000, sessionId="calm"))
    assert user.run("next") == (0, "Nothing needs you: 1 session.\n", "")
    assert user.run("next", "--exit-code").code == 0
    assert user.run("next", "--json").json == []


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_exit_code_is_4_if_there_is_a_need(several: User, form: list[str]) -> None:
    assert several.run("next", "--exit-code", *form).code == 4
    assert several.run("next", "--exit-code", "calm", *form).code == 0


def test_json_has_need_and_ends(several: User) -> None:
    (shown,) = several.run("next", "--json").json
    end: dict[str, Any] = {
        "kind": "compaction",
        "text": "of limit 89.8%",
        "used": 89.8,
        "at": None,
        "is_urgent": True,
    }
    assert shown == {
        "agent": "claude",
        "session_id": "near",
        "title": LONG,
        "project": "/srv/shop",
        "need": {
            "kind": "level",
            "text": "At 89.8% of its limit: have it write down where it stands.",
        },
        "ends": [end],
    }
