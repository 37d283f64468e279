"""A dict that drops its oldest entries."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.files.bounded_dict import BoundedDict


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_dict_holds_the_last_distinct_keys_oldest_first(keys: list[int], max_entries: int) -> None:
    entries: BoundedDict[int, int] = BoundedDict(max_entries)
    for number, key in enumerate(keys):
        entries[key] = number
    newest = list(dict.fromkeys(reversed(keys)))[:max_entries][::-1]
    assert list(entries) == newest
    assert all(keys[number] == key for key, number in entries.items())
