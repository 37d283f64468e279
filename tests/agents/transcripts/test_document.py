"""Documents that are read as a whole, again after each change."""

from io import BytesIO

from brimline.agents.transcripts.document import DocumentReader
from brimline.agents.transcripts.source import Events, Tally


def parse(document: bytes, tally: Tally) -> Events | None:
    """Each line is a record of an unknown kind, and the document one of a known kind."""
    for _ in document.splitlines():
        tally.read(lambda: None, "a line")
    return ()


def test_document_that_grew_is_not_counted_twice() -> None:
    first = DocumentReader("x", BytesIO(b"a\nb\n"), parse)
    list(first)
    second = DocumentReader("x", BytesIO(b"a\nb\nc\n"), parse, first.cursor)
    list(second)
    second.tally.continue_from(first.tally)
    assert (second.tally.records, second.tally.unknown) == (4, 3)
    unchanged = DocumentReader("x", BytesIO(b"a\nb\nc\n"), parse, second.cursor)
    list(unchanged)
    unchanged.tally.continue_from(second.tally)
    assert (unchanged.tally.records, unchanged.tally.unknown) == (4, 3)


def test_lines_that_were_added_are_counted_with_those_before() -> None:
    tally = Tally(records=3, unknown=1)
    tally.continue_from(Tally(records=5, unknown=2, malformed=1, places=["x"]))
    assert (tally.records, tally.unknown, tally.malformed, tally.places) == (8, 3, 1, ["x"])
