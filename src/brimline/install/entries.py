"""Our entries in an agent's settings: hooks and the status line, added, updated and removed.

Every agent has hooks as `hooks.EVENT[].hooks[]`. Entries that are not ours are never changed.
"""

from collections.abc import Sequence

import msgspec

from brimline.agents.hook_command import is_our_hook
from brimline.agents.install_spec import WantedHook
from brimline.errors import InvalidSettings
from brimline.files.jsonc import Document, Json, JsonPath, Value, insert, remove, replace, to_json

HOOKS = "hooks"
STATUS_LINE = "statusLine"
INTERVAL = (STATUS_LINE, "refreshInterval")


class ReplacedStatusLine(msgspec.Struct, frozen=True):
    """The user's status line, which ours replaces.

    `raw` is its JSON text: of the command, or of the whole value if that had no command (`whole`).
    It is None if the line comes from other settings: then there is nothing to restore.
    """

    command: str | None
    raw: str | None = None
    whole: bool = False


def find_our_hooks(document: Document) -> list[JsonPath]:
    paths: list[JsonPath] = []
    for event in _keys(document.find((HOOKS,))):
        for group_index, group in enumerate(_items(document.find((HOOKS, event)))):
            for hook_index, hook in enumerate(_items(group.get(HOOKS))):
                if is_our_hook(hook.to_python()):
                    paths.append((HOOKS, event, group_index, HOOKS, hook_index))
    return paths


def installed_hooks(document: Document) -> dict[str, Json]:
    """Return our hooks by event."""
    values = ((str(path[1]), document.find(path)) for path in find_our_hooks(document))
    return {event: value.to_python() for event, value in values if value is not None}


def has_our_entries(document: Document) -> bool:
    return bool(find_our_hooks(document)) or has_our_status_line(document)


def has_our_status_line(document: Document) -> bool:
    value = document.find((STATUS_LINE,))
    return value is not None and is_our_hook(value.to_python())


def set_hooks(
    document: Document, wanted: Sequence[WantedHook], backup: Document | None = None
) -> Document:
    """Have one hook of ours at each wanted event, and none at others.

    Containers that become empty are removed, unless the `backup` has them. Raises InvalidSettings
    if `hooks` or an event has another type than expected.
    """
    events = {hook.event for hook in wanted}
    for path in reversed(find_our_hooks(document)):
        if path[1] not in events:
            document = _remove_hook(document, path, backup)
    for hook in wanted:
        document = _set_hook(document, hook.event, hook.hook.to_json())
    return document


def _set_hook(document: Document, event: str, hook: Json) -> Document:
    paths = [path for path in find_our_hooks(document) if path[1] == event]
    for extra in reversed(paths[1:]):
        document = _remove_hook(document, extra)
    if paths:
        value = document.find(paths[0])
        is_current = value is not None and value.to_python() == hook
        return document if is_current else replace(document, paths[0], to_json(hook))
    if _find_of_kind(document, (HOOKS,), "object") is None:
        document = insert(document, (HOOKS,), {})
    groups = _find_of_kind(document, (HOOKS, event), "array")
    group: Json = {"hooks": [hook]}
    if groups is None:
        return insert(document, (HOOKS, event), [group])
    return insert(document, (HOOKS, event, len(groups.children)), group)


def _remove_hook(document: Document, path: JsonPath, backup: Document | None = None) -> Document:
    """Remove one hook, and its group, its event and `hooks` if they become empty."""
    document = remove(document, path)
    for container, parent in ((4, 3), (2, 2), (1, 1)):
        inner, outer = document.find(path[:container]), document.find(path[:parent])
        if inner is None or outer is None or inner.children:
            break
        if any(outer.start < start < outer.end for start, _ in document.comments):
            break  # a comment would be removed with it
        if parent < 3 and backup is not None and backup.find(path[:parent]) is not None:
            break
        document = remove(document, path[:parent])
    return document


def set_status_line(document: Document, command: str) -> tuple[Document, ReplacedStatusLine | None]:
    """Set our command, keep the other fields, and return the user's line if ours replaced it."""
    line: Json = {"type": "command", "command": command}
    value, command_value = document.find((STATUS_LINE,)), document.find((STATUS_LINE, "command"))
    if value is None:
        return insert(document, (STATUS_LINE,), line), None
    if command_value is None or command_value.kind != "string":
        own = ReplacedStatusLine(None, document.source(value), whole=True)
        return replace(document, (STATUS_LINE,), to_json(line)), own
    if command_value.scalar == command:
        return document, None
    own = find_user_status_line(document)
    return replace(document, (STATUS_LINE, "command"), to_json(command)), own


def set_refresh_interval(document: Document, seconds: int) -> tuple[Document, bool]:
    """Have the status line drawn again after a time; return whether the user had set none."""
    if document.find(INTERVAL) is not None:
        return document, False
    return insert(document, INTERVAL, seconds), True


def has_refresh_interval(document: Document, seconds: int | None) -> bool:
    value = document.find(INTERVAL)
    return value is not None and value.to_python() == seconds


def restore_status_line(
    document: Document, own: ReplacedStatusLine | None, interval: int | None = None
) -> Document:
    """Replace our status line, if there is one, by the user's own, and remove our interval."""
    if has_refresh_interval(document, interval):
        document = remove(document, INTERVAL)
    if not has_our_status_line(document):
        return document
    if own is None or own.raw is None:
        return remove(document, (STATUS_LINE,))
    path = (STATUS_LINE,) if own.whole else (STATUS_LINE, "command")
    return replace(document, path, own.raw)


def find_user_status_line(document: Document) -> ReplacedStatusLine | None:
    """Return a status line that is not ours."""
    command_value = document.find((STATUS_LINE, "command"))
    if command_value is None or command_value.kind != "string" or has_our_status_line(document):
        return None
    command = str(command_value.scalar)
    # No shell could run a command with a lone surrogate.
    has_surrogate = any("\ud800" <= character <= "\udfff" for character in command)
    return ReplacedStatusLine(None if has_surrogate else command, document.source(command_value))


def _find_of_kind(document: Document, path: JsonPath, kind: str) -> Value | None:
    """Return the value at a path; raises InvalidSettings if it has another kind."""
    value = document.find(path)
    if value is not None and value.kind != kind:
        got = document.source(value)[:40]
        name = ".".join(str(step) for step in path)
        raise InvalidSettings(document.name, name, f"expected an {kind}: got {got}")
    return value


def _keys(value: Value | None) -> list[str]:
    keys = [child.key for child in value.children if child.key is not None] if value else []
    return list(dict.fromkeys(keys))


def _items(value: Value | None) -> list[Value]:
    if value is None or value.kind != "array":
        return []
    return [child.value for child in value.children]
