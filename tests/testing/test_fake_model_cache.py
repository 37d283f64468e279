"""The simulated prefix caches behave like those of the real APIs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brimline.testing.fake_model.cache import FRAMING, PrefixCache
from brimline.testing.fake_model.prompt import Block, block

SYSTEM = Block(b"system", 1000, in_conversation=False, ttl="5m")


def turn(number: int, *, ttl: str | None = None) -> Block:
    """A message of 100 tokens."""
    return Block(str(number).encode(), 100, in_conversation=True, ttl=ttl)


def test_second_call_reads_what_the_first_wrote() -> None:
    """The breakpoint moves forward, and only the new messages are written."""
    cache = PrefixCache()
    first = cache.at_breakpoints([SYSTEM, turn(1, ttl="5m")], 0)
    second = cache.at_breakpoints([SYSTEM, turn(1), turn(2), turn(3, ttl="5m")], 0)
    assert (first.read, first.write, first.input) == (0, 1100, FRAMING)
    assert (second.read, second.write, second.input) == (1100, 200, FRAMING)


def test_added_tokens_are_written_then_read() -> None:
    """Usage beyond what was sent behaves like content of the conversation."""
    cache = PrefixCache()
    cache.at_breakpoints([SYSTEM, turn(1, ttl="5m")], 5000)
    split = cache.at_breakpoints([SYSTEM, turn(1), turn(2, ttl="5m")], 7000)
    assert (split.read, split.write) == (6100, 2100)


def test_changed_message_is_read_up_to_the_change() -> None:
    """After a compaction only the instructions are read."""
    cache = PrefixCache()
    cache.at_breakpoints([SYSTEM, turn(1, ttl="5m")], 9000)
    split = cache.at_breakpoints([SYSTEM, turn(7, ttl="5m")], 0)
    assert (split.read, split.write) == (1000, 100)


def test_without_breakpoints_nothing_is_cached() -> None:
    """Anthropic caches only up to a breakpoint."""
    cache = PrefixCache()
    plain = [Block(b"system", 1000, in_conversation=False), turn(1)]
    assert [cache.at_breakpoints(plain, 0).input for _ in range(2)] == [1100, 1100]


def test_hour_long_writes_are_counted_separately() -> None:
    """What is written up to an hour-long breakpoint is counted as such."""
    hour = Block(b"system", 1000, in_conversation=False, ttl="1h")
    split = PrefixCache().at_breakpoints([hour, turn(1, ttl="5m")], 0)
    assert (split.write, split.write_1h) == (1100, 1000)
    assert PrefixCache().at_breakpoints([hour], 0).write_1h == 1000


def test_openai_reads_whole_grains_from_1024() -> None:
    """A short prefix is not cached, a long one in steps of 128 tokens."""
    cache = PrefixCache()
    cache.automatic([SYSTEM], 0, grain=128)
    assert cache.automatic([SYSTEM, turn(1)], 0, grain=128).read == 0
    assert cache.automatic([SYSTEM, turn(1)], 0, grain=128).read == 1024


def test_openai_can_report_cache_writes() -> None:
    """What is not read is written in whole grains, the rest is paid in full."""
    split = PrefixCache().automatic([SYSTEM, turn(1)], 0, grain=128, tell_writes=True)
    assert (split.read, split.write, split.input) == (0, 1024, 76)


blocks = st.lists(st.integers(0, 5).map(lambda n: turn(n, ttl="5m" if n % 2 else None)))


@given(st.lists(st.tuples(blocks, st.integers(0, 10_000)), max_size=5))
def test_split_is_disjoint_and_whole(prompts: list[tuple[list[Block], int]]) -> None:
    """Whatever was cached before, the buckets add up to the prompt and none is negative."""
    marked, automatic = PrefixCache(), PrefixCache()
    for prompt, added in prompts:
        total = sum(one.tokens for one in prompt) + (added if prompt else 0)
        first = marked.at_breakpoints(prompt, added)
        second = automatic.automatic(prompt, added, grain=128)
        framing = FRAMING if any(one.ttl for one in prompt) else 0
        assert (first.total, second.total) == (total + framing, total)
        assert min(first.input, first.read, first.write, second.input, second.read) >= 0


def test_block_is_known_by_its_content() -> None:
    """The order of keys makes no difference, the content does."""
    one = block({"a": 1, "b": 2}, in_conversation=True)
    assert one == block({"b": 2, "a": 1}, in_conversation=True)
    assert one != block({"a": 1, "b": 3}, in_conversation=True)
