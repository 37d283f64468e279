"""What the tool calls of each agent change in files."""

import json

import msgspec
import pytest

from brimline.agents.content import ToolCall
from brimline.agents.file_edits import FileEdit, file_edits

PATCH = """*** Begin Patch
*** Update File: a.py
@@
 def f():
-    old()
+    new()
*** Add File: b.py
+one
+two
*** End Patch"""

CHANGED = FileEdit("a.py", ("    new()",), ("    old()",))


def edit(**arguments: object) -> list[FileEdit]:
    raw = msgspec.Raw(json.dumps(arguments).encode())
    return list(file_edits(ToolCall("edit", "1", "edit", files=("a.py",), arguments=raw)))


@pytest.mark.parametrize(
    ("old", "new"),
    [("old_string", "new_string"), ("oldString", "newString"), ("oldText", "newText")],
)
def test_lines_of_an_edit_are_compared(old: str, new: str) -> None:
    texts = {old: "def f():\n    old()\n", new: "def f():\n    new()\n"}
    assert edit(path="a.py", **texts) == [CHANGED]


def test_each_of_several_edits_counts() -> None:
    edits = [{"oldText": "    old()", "newText": "    new()"}] * 2
    assert [each for each in edit(edits=edits) if each.added] == [CHANGED] * 2


def test_written_file_is_added() -> None:
    assert edit(content="one\n\ntwo\n") == [FileEdit("a.py", ("one", "two"), ())]


@pytest.mark.parametrize(
    "arguments", [PATCH, json.dumps({"input": PATCH}), f"await apply({json.dumps(PATCH)});"]
)
def test_patch_is_read_in_every_form(arguments: str) -> None:
    call = ToolCall("apply_patch", "1", "edit", files=("a.py", "b.py"), arguments=arguments)
    assert list(file_edits(call)) == [CHANGED, FileEdit("b.py", ("one", "two"), ())]


def test_malformed_arguments_are_no_edit() -> None:
    assert edit(old_string=3) == []
    assert list(file_edits(ToolCall("edit", "1", "edit", files=("a",), arguments="{"))) == []
