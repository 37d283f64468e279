"""The marks of calls in a file: which calls of a session changed after a mark."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.store.base import ForgetSessions, PutCall, PutSession, PutThread, Write
from brimline.store.sqlite.connections import connect, prepare
from brimline.store.sqlite.statements import calls_after, changes
from brimline.store.sqlite.writer import Writer
from brimline.testing.store.suite import call, session, thread


class MarkedFile:
    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._writer, self._connection = Writer(path, connection), connection

    def write(self, *lists: list[Write]) -> None:
        for outcome in self._writer.write_all(lists):
            assert isinstance(outcome, list), outcome

    def last_mark(self, session: str = "s") -> int:
        return {id: mark for mark, id in changes(self._connection, 0)}[session]

    def after(self, mark: int, session: str = "s") -> list[str]:
        return [row.call for row in calls_after(self._connection, session, mark)]


@pytest.fixture
def file(path: Path) -> Iterator[MarkedFile]:
    prepare(path)
    connection = connect(path)
    yield MarkedFile(path, connection)
    connection.close()


def test_calls_after_a_mark_are_those_written_since(file: MarkedFile) -> None:
    file.write([PutCall(call("a", 1)), PutCall(call("b", 2))])
    mark = file.last_mark()
    assert (file.after(-1), file.after(0), file.after(mark)) == (["a", "b"], ["a", "b"], [])
    file.write([PutCall(call("c", 3))], [PutThread(thread(0, 3))])
    assert file.after(mark) == ["c"]
    file.write([PutThread(thread(0, 4))])
    assert file.after(file.last_mark()) == []


def test_changed_copy_of_a_call_gets_a_new_mark_and_an_equal_one_does_not(file: MarkedFile) -> None:
    file.write([PutCall(call("a", 1)), PutCall(call("b", 2))])
    mark = file.last_mark()
    file.write([PutCall(call("a", 1)), PutCall(call("b", 2, output=9))])
    assert file.after(mark) == ["b"]


def test_marks_of_calls_are_those_of_their_sessions_in_one_transaction(file: MarkedFile) -> None:
    """Else a reader that has come to the mark of the first session would miss the second's."""
    of_a, of_b = call("1", 1, session="a"), call("1", 1, session="b")
    file.write([PutSession(session("a"))], [PutCall(of_a), PutCall(of_b)])
    assert file.last_mark("b") > file.last_mark("a")
    assert file.after(file.last_mark("a"), "b") == ["1"]
    assert file.after(file.last_mark("a"), "a") == []


def test_marks_grow_after_sessions_are_forgotten_in_the_same_transaction(file: MarkedFile) -> None:
    file.write([PutSession(session("old", 1.0)), PutCall(call("a", 1))])
    mark = file.last_mark()
    file.write([PutSession(session("old", 2.0)), ForgetSessions(5.0)], [PutCall(call("b", 2))])
    assert file.last_mark() > mark
    assert file.after(mark) == ["b"]
