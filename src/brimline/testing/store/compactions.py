"""Compactions: reported in parts, stored once for the cycle that they ended."""

from brimline.store.base import PutCompaction, Store
from brimline.store.rows import CompactionRow
from brimline.testing.store.suite import check, compaction


@check
async def compaction_is_stored_with_all_fields(store: Store) -> None:
    """Every field of a compaction is stored, also before its session is."""
    row = CompactionRow("s", "main", 2, 1.5, "auto", 167_000, 2**40, "m", "1.0", True, True)
    bare = CompactionRow("s", "main", 0)
    assert await store.write([PutCompaction(row), PutCompaction(bare)]) == [True, True]
    stored = await store.compactions("s")
    assert stored == [bare, row]
    assert [(one.inferred, one.overflow) for one in stored] == [(False, False), (True, True)]
    assert [id for _, id in await store.changes()] == ["s"]


@check
async def compaction_is_filled_in(store: Store) -> None:
    """A field that is None leaves the stored value; any other value replaces it."""
    await store.write([PutCompaction(compaction(before=150_000, trigger="auto"))])
    assert await store.write([PutCompaction(compaction(after=0, trigger="manual"))]) == [True]
    filled = compaction(before=150_000, after=0, trigger="manual")
    assert await store.compactions() == [filled]


@check
async def compaction_with_nothing_new_has_no_effect(store: Store) -> None:
    """A compaction with nothing new has no effect and is no change, in one list or later."""
    put = PutCompaction(compaction(before=150_000, after=9_000))
    assert await store.write([put, put]) == [True, False]
    changes = await store.changes()
    less = PutCompaction(compaction(before=150_000))
    assert await store.write([put, less]) == [False, False]
    assert await store.changes() == changes


@check
async def inferred_compaction_becomes_recorded_once(store: Store) -> None:
    """`inferred` goes from set to not set, and never back."""
    inferred, recorded = PutCompaction(compaction(inferred=True)), PutCompaction(compaction())
    effects = await store.write([inferred, inferred, recorded, inferred, recorded])
    assert effects == [True, False, True, False, False]
    (stored,) = await store.compactions()
    assert stored.inferred is False
    assert await store.write([PutCompaction(compaction(before=9, inferred=True))]) == [True]
    assert await store.compactions() == [compaction(before=9)]


@check
async def overflow_of_a_compaction_is_set_once(store: Store) -> None:
    """`overflow` goes from not set to set, and never back."""
    refused = PutCompaction(compaction(overflow=True))
    plain = PutCompaction(compaction())
    assert await store.write([plain, refused, plain, refused]) == [True, True, False, False]
    assert await store.compactions() == [compaction(overflow=True)]


@check
async def compactions_are_listed_in_order(store: Store) -> None:
    """Session, thread and cycle identify a compaction; they are listed by these three."""
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
