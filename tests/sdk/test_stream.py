"""Streams pass through unchanged, synchronous or not, and are observed on the way."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from brimline.sdk import Tracker

from .answers import delta, message, start

ITEMS: list[Any] = [start("m1", 60_000), {"type": "text"}, "not ours", None, delta(500)]


class Stream:
    """A stream of an SDK: iterated, entered and closed."""

    def __init__(self, items: list[Any] = ITEMS) -> None:
        self.items = items
        self.entered, self.left = False, False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __enter__(self) -> "Stream":
        self.entered = True
        return self

    def __exit__(self, *raised: object) -> None:
        self.left = True

    def close(self) -> str:
        """A method of its own."""
        return "closed"


class Helper(Stream):
    """A helper as the SDKs have: its own texts, and methods that read to the end."""

    text_stream: Iterator[str]

    def __init__(self, items: list[Any] = ITEMS) -> None:
        super().__init__(items)
        self._rest = iter(items)

    def __iter__(self) -> Iterator[Any]:
        return self._rest

    def get_final_message(self) -> str:
        return f"{len(list(self._rest))} events were left"


class AsyncHelper(Helper):
    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in self._rest:
            yield item

    async def until_done(self) -> str:
        return f"{len(list(self._rest))} events were left"


class Manager:
    """A context manager that returns the stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __enter__(self) -> Stream:
        return self.stream

    def __exit__(self, *raised: object) -> bool:
        self.stream.left = True
        return True

    async def __aenter__(self) -> "AsyncStream":
        return AsyncStream()

    async def __aexit__(self, *raised: object) -> None:
        self.stream.left = True


class AsyncStream:
    """An asynchronous stream."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in ITEMS:
            yield item


def test_every_item_passes_through_as_the_same_object() -> None:
    tracker = Tracker()
    passed = list(tracker.track(Stream()))
    assert all(out is item for out, item in zip(passed, ITEMS, strict=True))
    assert tracker.reading.held == 60_500


def test_reading_is_current_at_every_item() -> None:
    tracker = Tracker()
    states = [tracker.reading.state for _ in tracker.track(iter(ITEMS))]
    assert states == ["streaming"] * 4 + ["measured"]


def test_stream_of_a_subagent_is_observed_for_its_thread() -> None:
    tracker = Tracker()
    list(tracker.track(Stream(), thread="helper"))
    assert tracker.reading.sent is None
    assert tracker.threads["helper"].sent == 60_000


async def test_asynchronous_stream_passes_through_unchanged() -> None:
    tracker = Tracker()
    passed = [item async for item in tracker.track(AsyncStream())]
    assert all(out is given for out, given in zip(passed, ITEMS, strict=True))
    assert tracker.reading.held == 60_500


async def test_stream_may_be_given_before_it_is_awaited() -> None:
    async def created() -> AsyncStream:
        return AsyncStream()

    tracker = Tracker()
    async for _ in await tracker.track(created()):
        pass
    assert tracker.reading.held == 60_500


def test_stream_that_is_a_context_manager_is_entered_and_left() -> None:
    tracker, stream = Tracker(), Stream()
    with tracker.track(stream) as tracked:
        assert len(list(tracked)) == len(ITEMS)
        assert not stream.left
    assert (stream.entered, stream.left) == (True, True)


def test_stream_of_a_context_manager_is_observed() -> None:
    """Leaving is the manager's, exceptions too."""
    tracker, manager = Tracker(), Manager(Stream())
    with tracker.track(manager) as tracked:
        list(tracked)
        raise RuntimeError("the manager swallows this")
    assert manager.stream.left
    assert tracker.reading.held == 60_500


async def test_stream_of_an_asynchronous_context_manager_is_observed() -> None:
    tracker, manager = Tracker(), Manager(Stream())
    async with tracker.track(manager) as tracked:
        async for _ in tracked:
            pass
    assert manager.stream.left
    assert tracker.reading.held == 60_500


def text(words: str) -> Any:
    return {"type": "content_block_delta", "delta": {"type": "text_delta", "text": words}}


TEXTS = [start("m1", 60_000), text("It "), text("rains."), delta(500)]


def test_reading_is_current_at_every_text_of_a_helper() -> None:
    tracker, helper = Tracker(), Helper(TEXTS)
    helper.text_stream = iter(())
    seen = [(words, tracker.reading.sent) for words in tracker.track(helper).text_stream]
    assert seen == [("It ", 60_000), ("rains.", 60_000)]
    assert tracker.reading.held == 60_500


async def test_reading_is_current_at_every_text_of_an_asynchronous_helper() -> None:
    tracker, helper = Tracker(), AsyncHelper(TEXTS)
    helper.text_stream = iter(())
    texts: Any = tracker.track(helper).text_stream
    seen = [(words, tracker.reading.sent) async for words in texts]
    assert seen == [("It ", 60_000), ("rains.", 60_000)]


def test_helper_that_reads_to_the_end_is_observed() -> None:
    tracker = Tracker()
    assert tracker.track(Helper()).get_final_message() == "0 events were left"
    assert tracker.reading.held == 60_500


async def test_asynchronous_helper_that_reads_to_the_end_is_observed() -> None:
    tracker = Tracker()
    assert await tracker.track(AsyncHelper()).until_done() == "0 events were left"
    assert tracker.reading.held == 60_500


def test_streams_read_at_once_do_not_mix_their_figures() -> None:
    tracker = Tracker()
    small = tracker.track(iter([start("m1", 18), delta(5)]))
    large = tracker.track(iter([start("m2", 100_000), delta(8)]))
    for _ in zip(small, large, strict=True):
        pass
    calls = tracker.session.threads["main"].calls
    assert [(call.id, call.usage.sent, call.usage.output) for call in calls.values()] == [
        ("m1", 18, 5),
        ("m2", 100_000, 8),
    ]


def test_message_that_a_helper_gathered_does_not_replace_its_tracked_stream() -> None:
    tracker = Tracker()
    list(tracker.track(Stream()))
    assert not tracker.observe(message("m1", 70_000))
    assert tracker.reading.held == 60_500


class Broken(Stream):
    def __iter__(self) -> Iterator[Any]:
        yield start("m1", 60_000)
        raise ConnectionError


def leave_the_loop(tracker: Tracker) -> None:
    for _ in tracker.track(Stream()):
        break


def close(tracker: Tracker) -> None:
    stream = tracker.track(Stream())
    next(iter(stream))
    assert tracker.reading.state == "streaming"
    stream.close()


def leave_the_context(tracker: Tracker) -> None:
    with tracker.track(Stream()) as stream:
        next(iter(stream))


def fail(tracker: Tracker) -> None:
    with pytest.raises(ConnectionError):
        list(tracker.track(Broken()))


def cancel(tracker: Tracker) -> None:
    async def waiting() -> AsyncIterator[Any]:
        yield start("m1", 60_000)
        await asyncio.Event().wait()

    async def go() -> None:
        async for _ in tracker.track(waiting()):
            pass

    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(go(), 0.01))


@pytest.mark.parametrize("abort", [leave_the_loop, close, leave_the_context, fail, cancel])
def test_aborted_stream_is_no_longer_streaming(abort: Callable[[Tracker], None]) -> None:
    tracker = Tracker()
    abort(tracker)
    assert (tracker.reading.state, tracker.reading.sent) == ("measured", 60_000)


def test_stream_without_usage_is_counted_and_its_type_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = Tracker()
    for items in (["a", "b"], ["c"], []):
        list(tracker.track(iter(items)))
    assert tracker.unread_streams == {"builtins.list_iterator": 2}
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "no usage found in a stream of type builtins.list_iterator: not measured")
    ]


def test_stream_with_usage_is_not_counted_as_unread() -> None:
    tracker = Tracker()
    with tracker.track(Stream()) as stream:
        list(stream)
    assert tracker.unread_streams == {}


def test_other_attributes_are_the_streams_own() -> None:
    tracked: Any = Tracker().track(Stream())
    assert tracked.close() == "closed"
    with pytest.raises(AttributeError):
        _ = tracked.nothing_of_the_kind


def test_item_with_invalid_counts_passes_and_changes_no_reading() -> None:
    tracker = Tracker()
    bad = {"type": "message_start", "message": message("m1", -5)}
    assert list(tracker.track([bad])) == [bad]
    assert tracker.reading.sent is None


# What is tracked besides a stream of an SDK.


@pytest.mark.parametrize("form", [dict[str, Any], SimpleNamespace], ids=["dict", "object"])
def test_answer_that_is_no_stream_is_observed(form: Callable[..., Any]) -> None:
    tracker, answer = Tracker(), form(**message("m1", 5_000))
    assert tracker.track(answer, thread="helper") is answer
    assert tracker.threads["helper"].sent == 5_000


def test_unreadable_answer_is_returned_and_makes_the_context_unknown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 5_000))
    bad = message("m2", -5)
    assert tracker.track(bad) is bad
    assert (tracker.reading.state, tracker.reading.sent) == ("unknown", None)
    assert "usage field 'input_tokens'" in caplog.text


class EventStream:
    """A stream of `botocore`, which is iterated and closed."""

    def __init__(self, events: list[Any]) -> None:
        self._events = events

    def __iter__(self) -> Iterator[Any]:
        return iter(self._events)


CONVERSED = [
    {"messageStart": {"role": "assistant"}},
    {"metadata": {"usage": {"inputTokens": 900, "outputTokens": 9, "totalTokens": 909}}},
]


def test_stream_in_an_answer_of_converse_stream_is_tracked() -> None:
    tracker = Tracker()
    given: dict[str, Any] = {"stream": EventStream(CONVERSED), "ResponseMetadata": {}}
    answer = tracker.track(given)
    assert answer["ResponseMetadata"] == {}
    assert list(answer["stream"]) == CONVERSED
    assert tracker.reading.held == 909


def invoked(*chunks: Any) -> dict[str, Any]:
    """An answer of `invoke_model_with_response_stream`."""
    return {
        "body": EventStream([{"chunk": {"bytes": json.dumps(each).encode()}} for each in chunks])
    }


METRICS = {"inputTokenCount": 900, "outputTokenCount": 9, "cacheReadInputTokenCount": 100}


@pytest.mark.parametrize(
    ("chunks", "sent", "held"),
    [
        ([start("m1", 60_000), delta(500), {"type": "message_stop",
          "amazon-bedrock-invocationMetrics": METRICS}], 60_000, 60_500),
        ([{"generation": "Hi."}, {"amazon-bedrock-invocationMetrics": METRICS}], 1_000, 1_009),
    ],
    ids=["Anthropic", "others"],
)  # fmt: skip
def test_body_of_invoke_model_is_tracked(chunks: list[Any], sent: int, held: int) -> None:
    tracker = Tracker()
    list(tracker.track(invoked(*chunks))["body"])
    assert (tracker.reading.sent, tracker.reading.held) == (sent, held)


def test_chunk_of_invoke_model_that_is_no_json_passes() -> None:
    tracker = Tracker()
    list(tracker.track({"body": EventStream([{"chunk": {"bytes": b"{"}}])})["body"])
    assert tracker.reading.state == "unknown"


def test_whole_body_in_bytes_is_left_alone() -> None:
    answer = {"body": io.BytesIO(b"{}")}
    assert Tracker().track(answer) is answer


def ai(id: str, sent: int) -> Any:
    """A message of LangChain."""
    usage = {"input_tokens": sent, "output_tokens": 5, "total_tokens": sent + 5}
    fields = {"usage_metadata": usage, "response_metadata": {"model_name": "gpt-6"}}
    return SimpleNamespace(type="ai", id=id, **fields)


HUMAN = SimpleNamespace(type="human", id="h", response_metadata={})


GRAPHS: dict[str, list[Any]] = {
    "updates": [
        {"agent": {"messages": [ai("a1", 900)]}},
        {"tools": {"messages": []}},
        {"agent": {"messages": ai("a2", 1_200)}},
        {"end": None},
    ],
    "values": [
        {"messages": [ai("old", 5), HUMAN]},
        {"messages": [ai("old", 5), HUMAN, ai("a1", 900)]},
        {"messages": [ai("old", 5), HUMAN, ai("a1", 900), ai("a2", 1_200)]},
    ],
    "messages": [(ai("a1", 900), {"langgraph_node": "agent"}), (ai("a2", 1_200), {})],
    "modes and subgraphs": [
        ("updates", {"agent": {"messages": [ai("a1", 900)]}}),
        (("sub:1",), "values", {"messages": [HUMAN, ai("a2", 1_200)]}),
    ],
}


@pytest.mark.parametrize("items", GRAPHS.values(), ids=GRAPHS)
def test_stream_of_a_graph_is_measured(items: list[Any]) -> None:
    """Messages before the last one of the user are of earlier runs."""
    tracker = Tracker()
    assert list(tracker.track(iter(items))) == items
    calls = tracker.session.threads["main"].calls.values()
    assert [(call.id, call.usage.sent) for call in calls] == [("a1", 900), ("a2", 1_200)]


def test_unreadable_last_usage_makes_the_reading_unknown_and_warns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 5_000))
    bad = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": "many"}}
    for _ in range(2):
        list(tracker.track(iter([start("m2", 60_000), bad])))
        assert (tracker.reading.state, tracker.reading.sent) == ("unknown", None)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "usage field 'output_tokens' must be an integer" in record.message
    assert tracker.unread_streams == {"builtins.list_iterator": 2}


def test_readable_usage_behind_an_unreadable_one_counts() -> None:
    tracker = Tracker()
    bad = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": "many"}}
    list(tracker.track(iter([start("m2", 60_000), bad, delta(500)])))
    assert (tracker.reading.state, tracker.reading.held) == ("measured", 60_500)
