"""Reading the child's output while it passes through."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import agent_names, source
from brimline.agents.transcripts.lines import MAX_LINE_BYTES
from brimline.context.events import MAIN
from brimline.context.tracker import Session, fold
from brimline.run.stream_reader import StreamReader, TextSearch

from .lines import FIXTURES, SESSION, call, init, packed, recorded, result

STREAMS = sorted(FIXTURES.glob("*/*/stream-*.jsonl"))


def read_stream(
    data: bytes, agent: str | None = None, until: str | None = None, size: int = 0
) -> StreamReader:
    """A reader that got the whole output in chunks of a size."""
    tap = StreamReader(agent, until)
    for place in range(0, len(data), size or len(data) or 1):
        tap.feed(data[place : place + (size or len(data))])
    tap.close()
    return tap


@pytest.mark.parametrize("path", STREAMS, ids=lambda p: f"{p.parts[-3]}-{p.parts[-2]}-{p.stem}")
def test_session_equals_fold_of_stream(path: object) -> None:
    data = (FIXTURES / str(path)).read_bytes()
    agent = str(path).split("/")[-3]
    parser = source(agent).stream()
    events = [event for line in data.splitlines() for event in parser.feed(line) or ()]
    assert read_stream(data, agent).session == fold(Session(agent=agent), events)


@pytest.mark.parametrize("separators", [(", ", ": "), (" ,", " : ")], ids=str)
@pytest.mark.parametrize("path", STREAMS, ids=lambda p: f"{p.parts[-3]}-{p.parts[-2]}-{p.stem}")
def test_blanks_in_the_json_hide_an_outcome(path: Path, separators: tuple[str, str]) -> None:
    """A stream that went through another program may have them, and a byte order mark."""
    data, agent = path.read_bytes(), path.parts[-3]
    records = [json.loads(line) for line in data.splitlines() if line.startswith(b"{")]
    texts = [json.dumps(each, separators=separators, ensure_ascii=False) for each in records]
    spaced = read_stream("\ufeff{}\n".format("\n".join(texts)).encode())
    compact = read_stream(data, agent)
    assert (spaced.agent, spaced.session) == (agent, compact.session)
    assert spaced.outcome == compact.outcome


@pytest.mark.parametrize("agent", agent_names())
@pytest.mark.parametrize("size", [1, 7, 64, 1_000])
def test_chunk_size_does_not_matter(agent: str, size: int) -> None:
    data, until = recorded(agent), "All done."
    whole, pieces = read_stream(data, agent, until), read_stream(data, agent, until, size)
    assert pieces.session == whole.session
    assert pieces.outcome == whole.outcome
    assert pieces.text_found
    assert pieces.tally == whole.tally


@pytest.mark.parametrize("agent", agent_names())
def test_agent_is_detected_by_first_lines_without_losing_one(agent: str) -> None:
    data = recorded(agent)
    configured, detected = read_stream(data, agent), read_stream(data)
    assert detected.agent == agent
    assert detected.session == configured.session
    assert detected.outcome == configured.outcome
    assert detected.is_stream


def test_agent_is_detected_after_other_output() -> None:
    tap = read_stream(b"Loading...\n\n  ready\n" + recorded("claude"))
    assert tap.agent == "claude"


def test_detection_stops_after_a_few_unknown_json_lines() -> None:
    line = packed({"level": "info", "message": "DONE"})
    tap = read_stream(line * 100 + recorded("claude"), until="DONE")
    assert (tap.agent, tap.is_stream, tap.text_found) == (None, False, True)


def test_last_line_without_newline_is_read() -> None:
    """An incomplete one is dropped."""
    data = init() + call("m1", 5_000) + call("m2", 6_000)
    assert len(read_stream(data[:-1], "claude").session.threads[MAIN].calls) == 2
    assert len(read_stream(data[:-9], "claude").session.threads[MAIN].calls) == 1


def test_results_add_up_and_the_last_failure_counts() -> None:
    account = {"m": {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3,
                     "cacheCreationInputTokens": 4, "costUSD": 0.5}}  # fmt: skip
    last = {"model_usage_since_last_result": account}
    data = init() + result(is_error=True, **last) + result(**last)
    outcome = read_stream(data, "claude").outcome
    assert (outcome.cost, outcome.turns, outcome.failed) == (1.0, 4, False)
    assert outcome.billed is not None
    assert outcome.billed.sent == 16


def test_malformed_lines_are_counted() -> None:
    bad = b'{"type":"assistant","message":{"id":"m","usage":{"input_tokens":-1}}}\n{"type\n'
    tap = read_stream(init() + bad + b'{"type":"novelty"}\n' + call("m1", 5_000), "claude")
    assert (tap.tally.records, tap.tally.malformed, tap.tally.unknown) == (5, 2, 1)
    assert list(tap.session.threads[MAIN].calls) == ["m1"]


def test_too_long_line_is_counted_and_dropped() -> None:
    tap = StreamReader("claude", "DONE")
    for _ in range(MAX_LINE_BYTES // (1 << 20) + 2):
        tap.feed(b"{" + b"x" * (1 << 20))
    tap.feed(b"\n" + init() + call("m1", 5_000, "DONE"))
    assert tap.tally.malformed == 1
    assert tap.session.id == SESSION
    assert tap.text_found


@given(st.lists(st.binary(max_size=40), max_size=20), st.sampled_from([None, *agent_names()]))
def test_any_bytes_are_read(pieces: list[bytes], agent: str | None) -> None:
    tap = StreamReader(agent, "x")
    for piece in pieces:
        tap.feed(piece)
    tap.close()
    assert tap.session.threads == {}


@pytest.mark.parametrize(
    ("data", "expected"),
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
def test_text_of_reply_is_found(data: bytes, expected: bool) -> None:
    """The text is searched in replies and plain output only."""
    assert read_stream(data, "claude", "DONE").text_found == expected


def test_text_in_prompt_is_not_found() -> None:
    """Some agents print the prompt."""
    for agent in agent_names():
        assert not read_stream(recorded(agent), agent, "Go.").text_found


@given(st.text(min_size=1, max_size=5), st.text(max_size=40), st.data())
def test_search_finds_text_across_parts(text: str, words: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=5)))
    finder = TextSearch(text)
    for first, last in zip([0, *cuts], [*cuts, len(words)], strict=True):
        finder.add(words[first:last])
    assert finder.found == (text in words)
