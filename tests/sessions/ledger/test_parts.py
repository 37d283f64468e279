"""The pieces of a thread become parts, each once in a context."""

import msgspec

from brimline.agents.content import Images, Piece, ToolCall, ToolResult
from brimline.sessions.ledger.context_parts import ContextPart, PartReader

CALL = ToolCall("find", "1", arguments=msgspec.Raw(b'{"word": "x"}'), server="notes")
RESULT = ToolResult("1", True, "found")


def parts_of(reader: PartReader, *pieces: Piece) -> list[ContextPart]:
    return [part for piece in pieces for part in reader.read(piece, 1)]


def test_call_that_is_recorded_again_counts_once() -> None:
    parts = parts_of(PartReader(), CALL, CALL, RESULT, RESULT)
    assert [part.category for part in parts] == ["tool calls", "tool results"]


def test_call_that_a_new_context_keeps_counts_again() -> None:
    reader = PartReader()
    first = parts_of(reader, CALL, RESULT)
    reader.restart()
    assert parts_of(reader, CALL, RESULT) == first


def test_result_of_a_call_before_the_new_context_keeps_its_tool() -> None:
    reader = PartReader()
    parts_of(reader, CALL)
    reader.restart()
    assert [part.tool for part in parts_of(reader, RESULT)] == ["find"]


def test_server_that_the_reader_knows_counts() -> None:
    parts = parts_of(PartReader(), CALL, RESULT, ToolCall("mcp__files__read", "2"))
    assert [part.server for part in parts] == ["notes", "notes", "files"]


def test_tool_call_is_named_by_its_file_or_its_command_or_its_arguments() -> None:
    arguments = msgspec.Raw(b'{"note": "look", "path": "/a.py"}')
    calls = [
        ToolCall("Read", "1", files=("/a.py",), arguments=arguments),
        ToolCall("Bash", "2", command="make test", arguments=arguments),
        ToolCall("find", "3", arguments=arguments),
        ToolCall("list", "4"),
    ]
    names = [part.what for part in parts_of(PartReader(), *calls)]
    assert names == ["Read /a.py", "Bash make test", "find look", "list"]


def test_images_of_the_user() -> None:
    (part,) = PartReader().read(Images(2), 1)
    assert (part.category, part.images) == ("images", 2)
    assert list(PartReader().read(Images(0), 1)) == []


def test_content_counts_as_often_as_a_new_context_keeps_it() -> None:
    reader = PartReader()
    first = parts_of(reader, CALL, RESULT)
    kept = [part for piece in (CALL, RESULT, RESULT) for part in reader.read_kept(piece, 1)]
    assert kept == [*first, first[-1]]
    assert parts_of(reader, CALL, RESULT) == []
