"""Documents of scored parts: what is left out first, and how it is shown."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.handoff.sections import Item, Part, Section, fit_sections, split_lines
from brimline.handoff.truncate import UTF16


def document(*items: Item, most_chars: int = 1_000, has_count: bool = False) -> str:
    return fit_sections("# Head\n", [Section("Title", items, has_count)], most_chars)


def test_least_valuable_part_is_left_out_first() -> None:
    items = [
        Item((Part(name * 20, score),)) for name, score in (("a", 3.0), ("b", 1.0), ("c", 2.0))
    ]
    assert document(*items) == f"# Head\n\n## Title\n- {'a' * 20}\n- {'b' * 20}\n- {'c' * 20}\n"
    assert document(*items, most_chars=70) == f"# Head\n\n## Title\n- {'a' * 20}\n- {'c' * 20}\n"
    assert document(*items, most_chars=10) == "# Head\n"


def test_gap_in_a_text_is_noted_with_its_lines() -> None:
    parts = Part("one", 9.0), Part("two\nthree", 0.0), Part("four", 8.0)
    assert "- one\n  [2 lines left out]\n  four\n" in document(Item(parts, has_notes=True))


def test_items_that_are_left_out_are_counted() -> None:
    items = [Item((Part("one", 1.0),)), Item((Part("two", 0.0),)), Item((Part("three", 0.0),))]
    assert document(*items, has_count=True).endswith("- one\n- [2 more left out]\n")


def test_remark_is_on_the_line_of_its_part_and_left_out_before_it() -> None:
    item = Item((Part("a.py", 2.0), Part(" (+1 -0)", 1.0, is_remark=True)))
    assert "- a.py (+1 -0)\n" in document(item)
    assert "- a.py\n" in document(item, most_chars=30)


@given(st.text("ab é😀\n-", max_size=90).map(lambda part: part * 40))
def test_lines_are_never_cut(text: str) -> None:
    """Without its wrapped lines, the groups are the lines of the text."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    groups = list(split_lines(text))
    if all(len(line) <= 1_000 for line in lines):
        assert "\n".join(groups).split("\n") == (lines or [""])
    assert all(len(line) <= 1_000 for group in groups for line in group.split("\n"))


@given(
    st.lists(st.lists(st.tuples(st.text("aé😀\n", max_size=60), st.floats(-5, 99)), max_size=4)),
    st.integers(20, 400),
)
def test_document_is_never_longer_than_it_may_be(
    texts: list[list[tuple[str, float]]], most_chars: int
) -> None:
    items = [Item(tuple(Part(*part) for part in parts), has_notes=True) for parts in texts]
    assert UTF16.size(document(*items, most_chars=most_chars, has_count=True)) <= most_chars
