"""What a child prints, looked at in passing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import agent_names, source
from brimline.events import MAIN
from brimline.run.stream_reader import StreamReader, TextSearch
from brimline.tracker import Session, fold
from brimline.transcripts.chunks import MAX_LINE_BYTES

from .lines import FIXTURES, SESSION, call, init, packed, recorded, result

STREAMS = sorted(FIXTURES.glob("*/*/stream-*.jsonl"))


def tapped(
    data: bytes, agent: str | None = None, until: str | None = None, size: int = 0
) -> StreamReader:
    """A tap through which all of it went, in pieces of a size."""
    tap = StreamReader(agent, until)
    for place in range(0, len(data), size or len(data) or 1):
        tap.feed(data[place : place + (size or len(data))])
    tap.close()
    return tap


@pytest.mark.parametrize("path", STREAMS, ids=lambda p: f"{p.parts[-3]}-{p.parts[-2]}-{p.stem}")
def test_is_the_fold_of_the_stream(path: object) -> None:
    """What it knows is what every line of the stream says."""
    data = (FIXTURES / str(path)).read_bytes()
    agent = str(path).split("/")[-3]
    parser = source(agent).stream()
    events = [event for line in data.splitlines() for event in parser.feed(line) or ()]
    assert tapped(data, agent).session == fold(Session(agent=agent), events)


@pytest.mark.parametrize("agent", agent_names())
@pytest.mark.parametrize("size", [1, 7, 64, 1_000])
def test_pieces_change_nothing(agent: str, size: int) -> None:
    """However its output is cut into pieces, the same is known of it."""
    data, until = recorded(agent), "All done."
    whole, pieces = tapped(data, agent, until), tapped(data, agent, until, size)
    assert pieces.session == whole.session
    assert pieces.outcome == whole.outcome
    assert pieces.text_found
    assert pieces.tally == whole.tally


@pytest.mark.parametrize("agent", agent_names())
def test_recognised_by_its_first_lines(agent: str) -> None:
    """Whose stream it is need not be told; nothing of it is missed."""
    data = recorded(agent)
    known, told = tapped(data, agent), tapped(data)
    assert told.agent == agent
    assert told.session == known.session
    assert told.outcome == known.outcome
    assert told.is_stream


def test_recognised_behind_other_output() -> None:
    """Lines that are no JSON may stand before it."""
    tap = tapped(b"Loading...\n\n  ready\n" + recorded("claude"))
    assert tap.agent == "claude"


def test_nobodys_json() -> None:
    """JSON of no agent is looked at for a few lines, and is nobody's."""
    line = packed({"level": "info", "message": "DONE"})
    tap = tapped(line * 20 + recorded("claude"), until="DONE")
    assert (tap.agent, tap.is_stream, tap.text_found) == (None, False, True)


def test_last_line_without_an_end() -> None:
    """A child that dies behind a whole line loses nothing; in the middle of one, that line."""
    data = init() + call("m1", 5_000) + call("m2", 6_000)
    assert len(tapped(data[:-1], "claude").session.threads[MAIN].calls) == 2
    assert len(tapped(data[:-9], "claude").session.threads[MAIN].calls) == 1


def test_outcome() -> None:
    """Several results are added up, the last word on failure counts."""
    account = {"m": {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3,
                     "cacheCreationInputTokens": 4, "costUSD": 0.5}}  # fmt: skip
    last = {"model_usage_since_last_result": account}
    data = init() + result(is_error=True, **last) + result(**last)
    outcome = tapped(data, "claude").outcome
    assert (outcome.cost, outcome.turns, outcome.failed) == (1.0, 4, False)
    assert outcome.billed is not None
    assert outcome.billed.sent == 16


def test_malformed_lines_are_counted() -> None:
    """What is no record is counted and passed over."""
    bad = b'{"type":"assistant","message":{"id":"m","usage":{"input_tokens":-1}}}\n{"type\n'
    tap = tapped(init() + bad + b'{"type":"novelty"}\n' + call("m1", 5_000), "claude")
    assert (tap.tally.records, tap.tally.malformed, tap.tally.unknown) == (5, 2, 1)
    assert list(tap.session.threads[MAIN].calls) == ["m1"]


def test_endless_line() -> None:
    """A line longer than any record is given up, and what follows is read."""
    tap = StreamReader("claude", "DONE")
    for _ in range(MAX_LINE_BYTES // (1 << 20) + 2):
        tap.feed(b"{" + b"x" * (1 << 20))
    tap.feed(b"\n" + init() + call("m1", 5_000, "DONE"))
    assert tap.tally.malformed == 1
    assert tap.session.id == SESSION
    assert tap.text_found


@given(st.lists(st.binary(max_size=40), max_size=20), st.sampled_from([None, *agent_names()]))
def test_garbage(pieces: list[bytes], agent: str | None) -> None:
    """Whatever is printed, looking at it never fails."""
    tap = StreamReader(agent, "x")
    for piece in pieces:
        tap.feed(piece)
    tap.close()
    assert tap.session.threads == {}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"I am DONE now", True),
        (b"I am DO\nNE", False),
        (init() + call("m1", 9, "I am DONE."), True),
        (init() + call("m1", 9, "DONE", parent="toolu_1"), False),
        (init() + packed({"type": "user", "message": {"content": "Say DONE"}}), False),
        (init() + call("m1", 9, "DO") + call("m2", 9, "NE"), False),
        (result(result="DONE"), True),
        (init() + call("m1", 9, "x") + result(result="x"), False),
    ],
)
def test_until(data: bytes, found: bool) -> None:
    """The text is looked for in the agent's own words, or in plain output; nowhere else."""
    assert tapped(data, "claude", "DONE").text_found == found


def test_prompt_is_not_the_agents_word() -> None:
    """What was asked is printed too by some agents, and is not what they say."""
    for agent in agent_names():
        assert not tapped(recorded(agent), agent, "Go.").text_found


@given(st.text(min_size=1, max_size=5), st.text(max_size=40), st.data())
def test_finder(text: str, words: str, data: st.DataObject) -> None:
    """A text is found however the words are cut."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=5)))
    finder = TextSearch(text)
    for first, last in zip([0, *cuts], [*cuts, len(words)], strict=True):
        finder.add(words[first:last])
    assert finder.found == (text in words)
