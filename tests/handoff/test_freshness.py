"""How much happened since a handoff, and when that makes it old."""

import pytest

from brimline.handoff import MAX_FRESH_CALLS, MAX_FRESH_FILES, Freshness, compute_freshness


def test_calls_and_files_since_the_handoff_are_counted() -> None:
    assert compute_freshness(10, 13, ("a", "b")) == Freshness(calls=3, files=2)


@pytest.mark.parametrize(("then", "now"), [(None, 3), (3, None), (10, 4)])
def test_unknown_or_decreased_counts_are_unknown(then: int | None, now: int | None) -> None:
    assert compute_freshness(then, now) == Freshness(None, None)


@pytest.mark.parametrize(
    ("calls", "files", "old"),
    [
        (0, 0, False),
        (MAX_FRESH_CALLS, MAX_FRESH_FILES, False),
        (MAX_FRESH_CALLS + 1, None, True),
        (0, MAX_FRESH_FILES + 1, True),
        (None, MAX_FRESH_FILES + 1, True),
        (5, None, False),
        (None, 0, None),
        (None, None, None),
    ],
)
def test_document_is_old_after_too_many_calls_or_files(
    calls: int | None, files: int | None, old: bool | None
) -> None:
    assert Freshness(calls, files).is_old is old
