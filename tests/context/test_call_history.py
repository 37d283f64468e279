"""The calls of a thread: an immutable mapping that shares its calls with newer versions."""

import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.events import Call
from brimline.context.tracker.call_history import CallHistory, CallSums, decode_calls, encode_calls
from brimline.context.usage import Usage


def call(id: str, sent: int = 10, model: str = "m") -> Call:
    return Call(id=id, usage=Usage(sent, 0, 0, 1), model=model)


CALLS = st.builds(call, st.sampled_from("abcdef"), st.integers(1, 99), st.sampled_from("mn"))


@given(st.lists(CALLS, max_size=20))
def test_every_version_equals_a_dict_of_the_calls_so_far(calls: list[Call]) -> None:
    model: dict[str, Call] = {}
    history = CallHistory()
    versions = [(history, dict(model))]
    for each in calls:
        model[each.id] = each
        history = history.with_call(each)
        versions.append((history, dict(model)))
    for version, expected in versions:
        assert version == expected
        assert list(version.items()) == list(expected.items())
        assert version.sums == CallSums().plus([*expected.values()])
        places = range(len(expected) + 1)
        assert [version.call_at(place) for place in places] == [*expected.values(), None]
    for version, expected in reversed(versions):  # the sums of a later version are known by now
        assert version.sums == CallSums().plus([*expected.values()])


def test_sums_of_an_older_version_are_right_after_those_of_a_newer_one() -> None:
    older = CallHistory([call("a", 1), call("b", 2)])
    newer = older.with_call(call("c", 4)).with_call(call("d", 8))
    sums = [version.sums.usage.input for version in (newer, older, newer)]
    assert sums == [15, 3, 15]


def test_call_that_only_a_newer_version_has_is_not_in_the_older_one() -> None:
    older = CallHistory([call("a"), call("b")])
    newer = older.with_call(call("c")).with_call(call("d"))
    assert set(newer) == {"a", "b", "c", "d"}
    assert "c" not in older
    with pytest.raises(KeyError):
        older["c"]
    assert older.get("c") is None


def test_two_continuations_of_one_history_do_not_see_each_other() -> None:
    start = CallHistory([call("a"), call("b")])
    left = start.with_call(call("left")).with_call(call("more"))
    right = start.with_call(call("right")).with_call(call("more", 99))
    assert list(left) == ["a", "b", "left", "more"]
    assert list(right) == ["a", "b", "right", "more"]
    assert left != right


def test_history_with_another_copy_of_the_last_call_differs() -> None:
    start = CallHistory([call("a"), call("b")])
    assert start != start.with_call(call("b", 99))
    assert start == start.with_call(call("b"))


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (CallHistory([call("a"), call("b")]), True),
        (CallHistory([call("a", 11), call("b")]), False),
        (CallHistory([call("a"), call("b", 11)]), False),
        (CallHistory([call("b")]), False),
        ({"a": call("a"), "b": call("b")}, True),
        ({"a": call("a")}, False),
        ([call("a"), call("b")], False),
    ],
)
def test_equal_histories_have_equal_calls(other: object, equal: bool) -> None:
    assert (CallHistory([call("a"), call("b")]) == other) is equal


def test_history_is_the_same_after_encoding() -> None:
    history = CallHistory([call("a"), call("b", 20)])
    assert pickle.loads(pickle.dumps(history)) == history
    data = msgspec.json.encode(history, enc_hook=encode_calls)
    assert msgspec.json.decode(data, type=CallHistory, dec_hook=decode_calls) == history


def test_hooks_refuse_other_types() -> None:
    with pytest.raises(NotImplementedError):
        encode_calls(object())
    with pytest.raises(NotImplementedError):
        decode_calls(dict, {})
