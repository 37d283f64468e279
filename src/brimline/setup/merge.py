"""Our entries in an agent's settings: put in, brought up to date, and taken out.

Hooks have the same shape in every client: `hooks.EVENT[].hooks[]`. Entries of others are not looked
at but to tell them from ours.
"""

from collections.abc import Sequence

import msgspec

from brimline.errors import InvalidSettings
from brimline.jsonc import Document, Json, JsonPath, Value, insert, remove, replace, to_json
from brimline.setup.command import Hook, is_ours

HOOKS = "hooks"
STATUS_LINE = "statusLine"


class Wanted(msgspec.Struct, frozen=True):
    """A hook, and the event at which it is wanted."""

    event: str
    hook: Hook


class Own(msgspec.Struct, frozen=True):
    """A status line of the user's, in whose place ours stands.

    `raw` is how it was written: the command, or all of it where it had none (`whole`). It is None
    where the line is inherited from other settings, and nothing is to be given back.
    """

    command: str | None
    raw: str | None = None
    whole: bool = False


def ours(document: Document) -> list[JsonPath]:
    """The ways to our hooks, in their order."""
    found: list[JsonPath] = []
    for event in _keys(document.find((HOOKS,))):
        for number, group in enumerate(_items(document.find((HOOKS, event)))):
            for place, hook in enumerate(_items(group.get(HOOKS))):
                if is_ours(hook.to_python()):
                    found.append((HOOKS, event, number, HOOKS, place))
    return found


def standing(document: Document) -> dict[str, Json]:
    """Our hooks by their events."""
    values = ((str(steps[1]), document.find(steps)) for steps in ours(document))
    return {event: value.to_python() for event, value in values if value is not None}


def is_set_up(document: Document) -> bool:
    """Whether anything of ours stands in it."""
    return bool(ours(document)) or has_status_line(document)


def has_status_line(document: Document) -> bool:
    """Whether the status line is ours."""
    value = document.find((STATUS_LINE,))
    return value is not None and is_ours(value.to_python())


def with_hooks(
    document: Document, wanted: Sequence[Wanted], copy: Document | None = None
) -> Document:
    """One hook of ours at each event that is wanted, and none at another.

    What holds nothing else goes with a hook, unless the `copy` of what was there before has it.
    InvalidSettings where something stands there that holds no hooks.
    """
    events = {one.event for one in wanted}
    for steps in reversed(ours(document)):
        if steps[1] not in events:
            document = _without(document, steps, copy)
    for one in wanted:
        document = _with_hook(document, one.event, one.hook.to_json())
    return document


def without_hooks(document: Document, copy: Document | None = None) -> Document:
    """Without any hook of ours, and without what was not there before and held nothing else."""
    return with_hooks(document, (), copy)


def _with_hook(document: Document, event: str, hook: Json) -> Document:
    spots = [steps for steps in ours(document) if steps[1] == event]
    for extra in reversed(spots[1:]):
        document = _without(document, extra)
    if not spots:
        return _added(document, event, hook)
    value = document.find(spots[0])
    if value is not None and value.to_python() == hook:
        return document
    return replace(document, spots[0], to_json(hook))


def _added(document: Document, event: str, hook: Json) -> Document:
    if _shaped(document, (HOOKS,), "object") is None:
        document = insert(document, (HOOKS,), {})
    groups = _shaped(document, (HOOKS, event), "array")
    group: Json = {"hooks": [hook]}
    if groups is None:
        return insert(document, (HOOKS, event), [group])
    return insert(document, (HOOKS, event, len(groups.children)), group)


def _without(document: Document, steps: JsonPath, copy: Document | None = None) -> Document:
    """Without one hook; its group, its event and all hooks go too where nothing else is in them."""
    document = remove(document, steps)
    for emptied, gone in ((4, 3), (2, 2), (1, 1)):
        if not _is_bare(document, steps[:emptied], steps[:gone]):
            break
        if gone < 3 and copy is not None and copy.find(steps[:gone]) is not None:
            break
        document = remove(document, steps[:gone])
    return document


def _is_bare(document: Document, emptied: JsonPath, gone: JsonPath) -> bool:
    """Whether nothing is left at one way, and no comment would go with the other."""
    left, whole = document.find(emptied), document.find(gone)
    if left is None or whole is None or left.children:
        return False
    return not any(whole.start < start < whole.end for start, _ in document.comments)


def with_status_line(document: Document, command: str) -> tuple[Document, Own | None]:
    """Our status line, and the user's own, if ours took its place; its other fields stay."""
    value, told = document.find((STATUS_LINE,)), document.find((STATUS_LINE, "command"))
    if value is None:
        made: Json = {"type": "command", "command": command}
        return insert(document, (STATUS_LINE,), made), None
    if told is None or told.kind != "string":
        made = {"type": "command", "command": command}
        own = Own(None, document.source(value), whole=True)
        return replace(document, (STATUS_LINE,), to_json(made)), own
    if told.scalar == command:
        return document, None
    own = None if is_ours(value.to_python()) else Own(_text(told), document.source(told))
    return replace(document, (STATUS_LINE, "command"), to_json(command)), own


def without_status_line(document: Document, own: Own | None) -> Document:
    """Without our status line, if it is ours; the user's own is in its place again."""
    if not has_status_line(document):
        return document
    if own is None or own.raw is None:
        return remove(document, (STATUS_LINE,))
    way = (STATUS_LINE,) if own.whole else (STATUS_LINE, "command")
    return replace(document, way, own.raw)


def own_status_line(document: Document) -> Own | None:
    """The status line that somebody else put there."""
    told = document.find((STATUS_LINE, "command"))
    if told is None or told.kind != "string" or has_status_line(document):
        return None
    return Own(_text(told), document.source(told))


def _text(value: Value) -> str | None:
    """What a string says; None where it is half a character, which nobody could run."""
    text = str(value.scalar)
    return (
        text if text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text) else None
    )


def _shaped(document: Document, steps: JsonPath, kind: str) -> Value | None:
    """A value that must be an object or an array where it is there."""
    value = document.find(steps)
    if value is not None and value.kind != kind:
        came = document.source(value)[:40]
        where = ".".join(str(step) for step in steps)
        raise InvalidSettings(document.name, where, f"expected an {kind}: got {came}")
    return value


def _keys(value: Value | None) -> list[str]:
    keys = [child.key for child in value.children if child.key is not None] if value else []
    return list(dict.fromkeys(keys))


def _items(value: Value | None) -> list[Value]:
    if value is None or value.kind != "array":
        return []
    return [child.value for child in value.children]
