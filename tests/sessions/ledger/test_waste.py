"""What is wasted in a context, each finding once, with what it cost to carry."""

from typing import get_args

import pytest

from brimline.context.events import Call
from brimline.context.usage import Usage
from brimline.sessions.ledger.call_growth import Step
from brimline.sessions.ledger.context_parts import Category, ContextPart
from brimline.sessions.ledger.part_tokens import Entry
from brimline.sessions.ledger.waste import (
    ADVICE,
    REMEDIES,
    Waste,
    WasteKind,
    find_waste,
    total_waste,
)

MODEL = "claude-sonnet-4-5"  # 3 dollars a million; writes 3.75, reads 0.30


def step(*outputs: ContextPart, model: str = MODEL) -> Step:
    usage = Usage(10, 5_000, 1_000, 100)
    call = Call(id="c", usage=usage, model=model, at=1_760_000_000.0)
    return Step(call, "continued", [], list(outputs))


def result(
    what: str, content: int = 1, kind: str = "read", file: str = "", record: int = 1
) -> ContextPart:
    return ContextPart(
        "tool results",
        what,
        4_000,
        record,
        tool="Read",
        tool_kind=kind,  # type: ignore[arg-type]
        file=file,
        content=content,
    )


def entry(part: ContextPart, tokens: int, place: int = 0) -> Entry:
    return Entry(part, tokens, place, "c")


def shown(found: list[Waste]) -> list[tuple[str, str, int, int]]:
    return [(each.kind, each.what, each.tokens, each.times) for each in found]


def test_repeats_count_without_the_first() -> None:
    read = result("Read a.py", file="a.py")
    command = result("Bash make", kind="command")
    entries = [entry(read, 1_000), entry(read, 1_100), entry(read, 900)]
    entries += [entry(command, 500), entry(command, 600), entry(result("Read b.py", 2), 700)]
    assert shown(find_waste(entries, [step()])) == [
        ("read again unchanged", "Read a.py", 2_000, 3),
        ("same command, same output", "Bash make", 600, 2),
    ]


def test_other_content_is_no_repeat() -> None:
    entries = [entry(result("Read a.py", content), 1_000) for content in (1, 2)]
    entries += [entry(result("Edit a.py", 3, kind="edit"), 1_000) for _ in range(2)]
    assert find_waste(entries, [step()]) == []


EDIT = ContextPart("tool calls", "Edit a.py", 10, 5, tool_kind="edit", file="a.py")


def test_large_read_is_stale_if_the_file_was_changed_and_read_again() -> None:
    before = entry(result("Read a.py", 1, file="a.py", record=2), 1_800)
    small = entry(result("Read a.py", 4, file="a.py", record=3), 900)
    after = entry(result("Read a.py", 2, file="a.py", record=9), 1_900)
    other = entry(result("Read b.py", 3, file="b.py", record=2), 1_900)
    found = find_waste([before, small, after, other], [step(EDIT)])
    assert shown(found) == [("stale read", "Read a.py", 1_800, 1)]


def test_read_before_an_edit_alone_is_no_waste() -> None:
    """The agent had to read the file, and knows what it changed."""
    before = entry(result("Read a.py", 1, file="a.py", record=2), 4_800)
    again = entry(result("Read a.py", 2, file="a.py", record=4), 4_800)
    assert find_waste([before, again], [step(EDIT)]) == []


def waste(kind: WasteKind, tokens: int, cost: float | None) -> Waste:
    return Waste(kind, "x", tokens, cost, 1, "")


def test_small_finding_has_neither_a_share_nor_a_cost() -> None:
    assert waste("large result", 1_999, 0.04).is_small(200_000)
    assert waste("large result", 1_999, None).is_small(200_000)
    assert not waste("large result", 2_000, None).is_small(200_000)
    assert not waste("large result", 1_999, 0.05).is_small(200_000)
    assert not waste("client's countdown", 20, 0.0).is_small(200_000)


def test_total_has_small_findings_too_and_sums_them_in_a_line() -> None:
    found = [waste("large result", 9_000, None), waste("read again unchanged", 1_500, 0.01)]
    total = total_waste([*found, waste("read again unchanged", 500, 0.01)], 200_000)
    assert total is not None
    assert (total.tokens, total.findings, total.small_tokens) == (11_000, 3, 2_000)
    assert total.by_kind == {"large result": 9_000, "read again unchanged": 2_000}
    assert total.small_text == "2 small findings: 2K tokens"
    large = total_waste(found[:1], 200_000)
    assert large is not None
    assert large.small_text is None
    assert total_waste([], 200_000) is None


@pytest.mark.parametrize("kind", get_args(WasteKind))
def test_every_finding_says_what_to_do(kind: WasteKind) -> None:
    """By a sentence in the imperative after the one with its figures."""
    assert ADVICE[kind].rpartition(". ")[2].split()[0] in ("Ask", "Disable", "Have", "Move", "Tell")
    assert REMEDIES[kind].split()[0] in ("Ask", "Disable", "Have", "Move", "Tell")


def test_only_the_result_of_a_read_is_stale() -> None:
    """Not the call that asked for it, nor what an earlier edit of the file returned."""
    asked = ContextPart("tool calls", "Read a.py", 4_000, 1, tool_kind="read", file="a.py")
    edited = result("Edit a.py", 1, kind="edit", file="a.py", record=2)
    assert find_waste([entry(asked, 1_800), entry(edited, 1_900)], [step(EDIT)]) == []


def test_read_in_the_first_record_is_not_stale_without_an_edit() -> None:
    first = entry(result("Read a.py", file="a.py", record=0), 800)
    assert find_waste([first], [step()]) == []


def test_servers_without_a_call() -> None:
    listed = [
        entry(ContextPart("system and tools", "x", 1, server=name), 3_000)
        for name in ("tides", "my server")
    ]
    called = ContextPart("tool calls", "mcp__my_server__ask", 1, server="my_server")
    found = find_waste(listed, [step(called)])
    assert shown(found) == [("MCP tools never called", "tides", 3_000, 1)]
    assert found[0].advice.startswith("MCP server tides: no tool of it was called")


def test_large_memory_file_and_large_results() -> None:
    memory = entry(ContextPart("memory files", "CLAUDE.md", 1), 6_000)
    small = entry(ContextPart("memory files", "small.md", 1), 4_999)
    results = [entry(result(f"Read {n}", n), 5_000 + n) for n in range(7)]
    found = find_waste([memory, small, *results], [step()])
    assert shown(found)[:2] == [
        ("large memory file", "CLAUDE.md", 6_000, 1),
        ("large result", "Read 6", 5_006, 1),
    ]
    assert len(found) == 6


@pytest.mark.parametrize("category", ["memory files", "tool results"])
def test_part_of_5000_tokens_is_large(category: Category) -> None:
    parts = [entry(ContextPart(category, "x", 1), tokens) for tokens in (4_999, 5_000)]
    assert [each.tokens for each in find_waste(parts, [step()])] == [5_000]


def test_little_is_no_waste() -> None:
    read = result("Read a.py", file="a.py")
    assert find_waste([entry(read, 1_000), entry(read, 199)], [step()]) == []


def test_cost_is_a_write_and_a_read_for_each_later_call() -> None:
    read = result("Read a.py", file="a.py")
    steps = [step(), step(), step(), step()]
    (found,) = find_waste([entry(read, 1_000), entry(read, 1_000_000, place=1)], steps)
    assert found.cost == pytest.approx(3.75 + 2 * 0.30)


def test_cost_is_unknown_without_a_price() -> None:
    read = result("Read a.py", file="a.py")
    steps = [step(), step(model="unknown")]
    (found,) = find_waste([entry(read, 1_000), entry(read, 1_000)], steps)
    assert found.cost is None


def countdown(left: int) -> ContextPart:
    return ContextPart("injected context", "countdown of the client", 48, 1, tokens_left=left)


@pytest.mark.parametrize(
    ("left", "verdict"),
    [
        ([], "what is left is unknown"),
        ([120_000, 150_000], "in fact 120K are left"),
        ([12_000_000, 14_900_000], "that is right"),
    ],
)
def test_countdown_of_the_client_is_compared_with_what_is_left(
    left: list[int], verdict: str
) -> None:
    """However small it is: a model may believe it."""
    entries = [entry(countdown(15_000_000), 20), entry(countdown(14_946_570), 21)]
    (waste,) = find_waste(entries, [step()], left=left)
    assert (waste.kind, waste.tokens, waste.times) == ("client's countdown", 41, 2)
    assert waste.advice == (
        'The client tells the model "14,946,570 tokens left", 2 times so far, '
        f"41 tokens: {verdict}. Have the agent run `brimline here` instead."
    )
