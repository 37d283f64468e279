"""What the client answers: which parts count, and what else it tells."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.fresh_session.answers import (
    Category,
    FreshPart,
    parse_command_answer,
    parse_request_answer,
)
from brimline.errors import MalformedJson

from .scripted import BESIDE, DEFERRED, DETAILS, MESSAGES, PRINTED, USAGE, USED

encode = msgspec.json.encode


def test_what_is_loaded_counts() -> None:
    """Deferred tools are shown and do not count; buffer and free space are not even shown."""
    answer = parse_request_answer(encode(USAGE))
    assert answer.categories == (
        Category("System prompt", 1_534),
        Category("System tools", 5_285),
        Category("System tools (deferred)", 3_646, deferred=True),
        Category("Messages", 9),
    )
    assert answer.tokens == USAGE["totalTokens"]
    assert answer.has_system_prompt
    assert not answer.estimated


def test_parts_of_categories_are_named() -> None:
    """A server has its definitions and instructions; of deferred tools only the names are sent."""
    loaded = parse_request_answer(encode(USAGE | DETAILS)).parts
    assert loaded == (
        FreshPart("system prompt", "", 1_534),
        FreshPart("built-in tools", "", 5_285),
        FreshPart("MCP server", "sails", 900, tools=2, definitions=900),
        FreshPart("MCP server", "tides", 410, tools=1, definitions=100),
        FreshPart("memory file", "/p/CLAUDE.md", 508),
        FreshPart("skill", "knots", 20),
        FreshPart("skill", "init", 22, is_built_in=True),
        FreshPart("agent", "pilot", 25),
    )
    deferred = {**DEFERRED, "name": "MCP tools (deferred)"}
    rows = [*USAGE["categories"], deferred]
    parts = parse_request_answer(encode(USAGE | DETAILS | {"categories": rows})).parts
    sails, tides = (part for part in parts if part.kind == "MCP server")
    assert (sails.definitions, tides.definitions) == (500, 0)
    assert 500 < sails.tokens < 520
    assert 310 < tides.tokens < 330


def test_details_of_another_shape_leave_the_categories() -> None:
    answer = parse_request_answer(encode(USAGE | {"mcpTools": None, "skills": 5}))
    assert answer.tokens == USAGE["totalTokens"]
    assert [part.kind for part in answer.parts] == ["system prompt", "built-in tools"]


def test_both_ways_tell_the_same() -> None:
    """The command prints the categories that the request answers with."""
    asked, shown = parse_request_answer(encode(USAGE)), parse_command_answer(encode(PRINTED))
    assert (asked.categories, asked.model, asked.window) == (
        shown.categories,
        shown.model,
        shown.window,
    )
    assert (asked.source, shown.source) == ("get_context_usage", "/context")


def test_older_clients_name_no_kinds() -> None:
    """Where a row has no kind, its name tells: 2.1.197 has none."""
    rows = [{"name": row["name"], "tokens": row["tokens"]} for row in USAGE["categories"]]
    answer = parse_request_answer(encode(USAGE | {"categories": rows}))
    assert answer.categories == parse_request_answer(encode(USAGE)).categories


def test_kind_that_is_not_known_does_not_count() -> None:
    """A kind of a newer client is no content that we know to be loaded."""
    rows = [*USED, {"name": "Reserve", "tokens": 50, "kind": "reserved"}]
    assert parse_request_answer(encode(USAGE | {"categories": rows})).tokens == 6_819


def test_limit_where_it_is_kept() -> None:
    """A threshold without its buffer is one that the client does not keep: no limit is told."""
    assert parse_request_answer(encode(USAGE)).limit == 967_000
    rows = [*USED, MESSAGES, BESIDE[1]]
    assert parse_request_answer(encode(USAGE | {"categories": rows})).limit is None


@pytest.mark.parametrize("place", ["env", "settings"])
def test_auto_compact_window_is_no_window(place: str) -> None:
    """A size that the user configured is where it compacts, and says nothing of the window."""
    told = USAGE | {"rawMaxTokens": 150_000, "autocompactSource": place}
    assert parse_request_answer(encode(told)).window is None
    assert parse_command_answer(encode(PRINTED), configured=True).window is None


def test_guess_is_marked() -> None:
    """A client whose API did not count says nothing of the messages."""
    told = USAGE | {"categories": [*USED, DEFERRED, *BESIDE]}
    assert parse_request_answer(encode(told)).estimated
    assert parse_command_answer(encode(PRINTED | {"categories": USED})).estimated


def test_nothing_counted() -> None:
    """An older client without its API leaves the system prompt out: that is no baseline."""
    told = USAGE | {"categories": [{"name": "Skills", "tokens": 1_717}]}
    assert not parse_request_answer(encode(told)).has_system_prompt


def test_memory_files_are_named() -> None:
    """The files that were read are known by their paths, imported ones too."""
    files = [{"path": "/p/CLAUDE.md", "type": "Project", "tokens": 5}, {"path": "/p/more.md"}]
    assert parse_request_answer(encode(USAGE | {"memoryFiles": files})).memory_files == (
        "/p/CLAUDE.md",
        "/p/more.md",
    )
    assert (
        parse_command_answer(encode(PRINTED | {"memory_files": files})).memory_files[1]
        == "/p/more.md"
    )


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"categories": None},
        {"categories": [{"name": "System prompt"}]},
        {"categories": [{"name": "System prompt", "tokens": -1}]},
        {"categories": [{"name": "System prompt", "tokens": "9"}]},
        {"categories": [{"name": 5, "tokens": 9}]},
    ],
)
def test_other_shapes_are_refused(told: dict[str, Any]) -> None:
    """A count that is missing, negative or no number is no answer, and never 0."""
    for read in (parse_request_answer, parse_command_answer):
        with pytest.raises(MalformedJson):
            read(encode(told))


KINDS = st.sampled_from([None, "used", "deferred", "buffer", "free", "new"])
ROWS = st.lists(st.tuples(st.text(max_size=30), st.integers(0, 10**9), KINDS, st.booleans()))


@given(ROWS)
def test_sum_is_the_sum_of_what_is_shown(rows: list[tuple[str, int, str | None, bool]]) -> None:
    """The tokens are those of the shown categories that are not deferred, whatever comes."""
    fields = ("name", "tokens", "kind", "isDeferred")
    told = [dict(zip(fields, row, strict=True)) for row in rows]
    answer = parse_request_answer(encode({"categories": told}))
    assert answer.tokens == sum(one.tokens for one in answer.categories if not one.deferred)
    assert answer.tokens <= sum(row[1] for row in rows)
