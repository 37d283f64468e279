"""The hook protocol: requests and replies as bytes, and invalid bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.hook_adapter import HookRequest
from brimline.errors import BrimlineError
from brimline.hooks.client.exchange import MAX_EVENT_BYTES, MAX_LINE_BYTES, MAX_REPLY_BYTES
from brimline.hooks.protocol import (
    MAX_HEADER_BYTES,
    InvalidFrame,
    Sizes,
    encode_reply,
    parse_line,
    parse_request,
)
from brimline.testing.hook_frames import encode_request, parse_reply

HEADER = b"kind=hook\0agent=claude\0id=12-3\0pid=3\0"

words = st.text(st.characters(codec="utf-8", exclude_characters="\0="), min_size=1)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
requests = st.builds(
    HookRequest,
    kind=st.sampled_from(["hook", "statusline"]),
    agent=words,
    id=st.builds("{}-{}".format, st.integers(0, 10**19), st.integers(0, 10**9)),
    pid=st.integers(0, 10**9),
    env=st.dictionaries(words, texts),
    body=st.binary(),
)


def parse_whole_request(data: bytes) -> HookRequest:
    end = data.index(b"\n") + 1
    sizes = parse_line(data[:end])
    assert len(data) == end + sizes.header + sizes.body
    return parse_request(data[end : end + sizes.header], data[end + sizes.header :])


@given(requests)
def test_encoded_request_parses_to_itself(request: HookRequest) -> None:
    assert parse_whole_request(encode_request(request)) == request


@given(st.binary())
def test_encoded_reply_parses_to_itself_and_a_part_to_none(text: bytes) -> None:
    data = encode_reply(text)
    assert parse_reply(data) == text
    assert all(parse_reply(data[:size]) is None for size in range(len(data)))


@given(st.binary())
def test_garbage_raises_invalid_frame(data: bytes) -> None:
    with pytest.raises(InvalidFrame):
        parse_line(data)
    with pytest.raises(InvalidFrame):
        parse_request(data, b"")


@pytest.mark.parametrize(
    "header",
    [
        HEADER[:-1],
        b"",
        HEADER.replace(b"hook", b"hoop"),
        HEADER.replace(b"claude", b""),
        HEADER.replace(b"12-3", b"12"),
        HEADER.replace(b"pid=3", "pid=\u0663".encode()),
        b"env.TERM=xterm\0" + HEADER,
    ],
    ids=["cut", "empty", "kind", "agent", "id", "pid", "order"],
)
def test_invalid_header_error_says_what_was_expected(header: bytes) -> None:
    with pytest.raises(InvalidFrame) as error:
        parse_request(header, b"")
    assert error.value.reason.startswith(
        "expected kind=hook, statusline, delivered or here, agent=, id="
    )
    assert error.value.reason.endswith(f": got {header!r}")
    assert isinstance(error.value, BrimlineError)


@pytest.mark.parametrize(
    "line",
    [
        b"BRIMLINE 1 1 1",
        b"BRIMLINE 1 1\n",
        b"BRIMLINE 2 1 1\n",
        b"BRIMLINE 1 -1 1\n",
        b"GET / HTTP/1.1\r\n",
        b"BRIMLINE 1 %d 1\n" % (MAX_HEADER_BYTES + 1),
        b"BRIMLINE 1 1 %d\n" % (MAX_EVENT_BYTES + 1),
    ],
)
def test_invalid_or_oversized_first_line_is_rejected(line: bytes) -> None:
    with pytest.raises(InvalidFrame):
        parse_line(line)


def test_largest_request_and_reply_are_accepted() -> None:
    line = b"BRIMLINE 1 %d %d\n" % (MAX_HEADER_BYTES, MAX_EVENT_BYTES)
    assert parse_line(line) == Sizes(MAX_HEADER_BYTES, MAX_EVENT_BYTES)
    assert len(line) <= MAX_LINE_BYTES
    longest = b"x" * MAX_REPLY_BYTES
    assert parse_reply(encode_reply(longest)) == longest
    with pytest.raises(InvalidFrame):
        encode_reply(longest + b"x")


@pytest.mark.parametrize(
    "data", [b"x" * MAX_LINE_BYTES, b"HTTP/1.1\r\n", b"BRIMLINE 1 %d\n" % (MAX_REPLY_BYTES + 1)]
)
def test_invalid_reply_is_not_taken_for_an_incomplete_one(data: bytes) -> None:
    with pytest.raises(InvalidFrame):
        parse_reply(data)


def test_unknown_header_entries_are_ignored_and_the_last_duplicate_counts() -> None:
    request = parse_request(HEADER + b"more=1\0env.TERM=a\0env.TERM=b\0noise\0", b"x")
    assert request == HookRequest("hook", "claude", "12-3", 3, {"TERM": "b"}, b"x")


def test_variable_that_is_no_utf8_becomes_readable_text() -> None:
    request = parse_request(HEADER + b"env.TERM=\xff\0", b"")
    assert request.env == {"TERM": "\ufffd"}


def test_request_time_comes_from_its_id() -> None:
    request = parse_request(HEADER.replace(b"12-3", b"1794725180500000000-3"), b"x")
    assert request.at == 1794725180.5
