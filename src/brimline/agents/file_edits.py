"""What a tool call changes in files, by its arguments."""

import re
from collections.abc import Iterator

import msgspec

from brimline.agents.content import ToolCall
from brimline.files.foreign_json import JsonDecoder

PATCH_MARK = "*** Begin Patch"
_PATCH_FILE = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+)")

_PATCHED_FILE = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE
)


class FileEdit(msgspec.Struct, frozen=True):
    """The lines that a call adds to a file and removes from it."""

    file: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


class _TextChange(msgspec.Struct, frozen=True):
    """A replaced text, as the agents name it."""

    old_string: str = ""
    new_string: str = ""
    old_camel: str = msgspec.field(default="", name="oldString")
    new_camel: str = msgspec.field(default="", name="newString")
    old_text: str = msgspec.field(default="", name="oldText")
    new_text: str = msgspec.field(default="", name="newText")
    old_str: str = ""
    new_str: str = ""
    content: str = ""
    new_source: str = ""
    file_text: str = ""

    @property
    def old(self) -> str:
        return self.old_string or self.old_camel or self.old_text or self.old_str

    @property
    def new(self) -> str:
        changed = self.new_string or self.new_camel or self.new_text or self.new_str
        return changed or self.content or self.new_source or self.file_text


class _EditArguments(_TextChange, frozen=True):
    edits: list[_TextChange] = []


_arguments = JsonDecoder(_EditArguments)


def file_edits(call: ToolCall) -> Iterator[FileEdit]:
    """Yield what an edit or a patch changes; nothing if the arguments do not show it."""
    if not call.files:
        return
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else bytes(arguments).decode("utf-8", "replace")
    if PATCH_MARK in text:
        yield from _patch_edits(text)
    elif call.kind == "edit" and (decoded := _arguments.decode_or_none(arguments)):
        for change in (decoded, *decoded.edits):
            yield _compare(call.files[0], change.old.splitlines(), change.new.splitlines())


def patched_files(patch: str) -> tuple[str, ...]:
    """The files that a patch names; in a script or an argument its line breaks are escaped."""
    names = _PATCHED_FILE.findall(patch.replace("\\n", "\n"))
    return tuple(dict.fromkeys((changed or moved).strip() for changed, moved in names))


def _patch_edits(text: str) -> Iterator[FileEdit]:
    """Yield the edits of a patch; in a script or an argument its line breaks are escaped."""
    lines = text.replace("\\n", "\n").replace("\\t", "\t").splitlines()
    file, added, removed = "", list[str](), list[str]()
    for line in lines:
        if header := _PATCH_FILE.search(line):
            if file:
                yield _compare(file, removed, added)
            file, added, removed = header[1].strip(), [], []
        elif line.startswith("+"):
            added.append(line[1:])
        elif line.startswith("-"):
            removed.append(line[1:])
    if file:
        yield _compare(file, removed, added)


def _compare(file: str, before: list[str], after: list[str]) -> FileEdit:
    """Leave out the lines that both have."""
    old, new = set(before), set(after)
    return FileEdit(
        file,
        tuple(line for line in after if line.strip() and line not in old),
        tuple(line for line in before if line.strip() and line not in new),
    )
