"""Compactions: told of bit by bit, kept once for the cycle that they ended."""

from brimline.store.base import PutCompaction, Store
from brimline.store.rows import CompactionRow
from brimline.testing.store.suite import check, compaction


@check
async def compaction_comes_back_whole(store: Store) -> None:
    """Every field of a compaction is kept; a session need not be known for it."""
    row = CompactionRow("s", "main", 2, 1.5, "auto", 167_000, 2**40, "m", "1.0", inferred=True)
    bare = CompactionRow("s", "main", 0)
    assert await store.write([PutCompaction(row), PutCompaction(bare)]) == [True, True]
    kept = await store.compactions("s")
    assert kept == [bare, row]
    assert [one.inferred for one in kept] == [False, True]
    assert [id for _, id in await store.changes()] == ["s"]


@check
async def compaction_is_filled_in(store: Store) -> None:
    """What is None says nothing new; what is not replaces what was there."""
    await store.write([PutCompaction(compaction(before=150_000, trigger="auto"))])
    assert await store.write([PutCompaction(compaction(after=0, trigger="manual"))]) == [True]
    filled = compaction(before=150_000, after=0, trigger="manual")
    assert await store.compactions() == [filled]


@check
async def compaction_with_nothing_new_has_no_effect(store: Store) -> None:
    """A compaction that tells nothing new has no effect and is no change, in one list or later."""
    put = PutCompaction(compaction(before=150_000, after=9_000))
    assert await store.write([put, put]) == [True, False]
    told = await store.changes()
    less = PutCompaction(compaction(before=150_000))
    assert await store.write([put, less]) == [False, False]
    assert await store.changes() == told


@check
async def compaction_is_inferred_until_a_record_tells(store: Store) -> None:
    """`inferred` goes from set to not set, and never back."""
    inferred, told = PutCompaction(compaction(inferred=True)), PutCompaction(compaction())
    assert await store.write([inferred, inferred, told, inferred, told]) == [
        True,
        False,
        True,
        False,
        False,
    ]
    (kept,) = await store.compactions()
    assert kept.inferred is False
    assert await store.write([PutCompaction(compaction(before=9, inferred=True))]) == [True]
    assert await store.compactions() == [compaction(before=9)]


@check
async def compactions_in_their_order(store: Store) -> None:
    """Session, thread and cycle tell compactions apart; they are listed by these three."""
    rows = [
        compaction(session="t"),
        compaction(cycle=10),
        compaction(cycle=9),
        compaction(thread="agent-1", cycle=11),
    ]
    assert await store.write([PutCompaction(row) for row in rows]) == [True] * len(rows)
    assert await store.compactions() == [*reversed(rows)]
    assert await store.compactions("t") == rows[:1]
    assert await store.compactions("u") == []
