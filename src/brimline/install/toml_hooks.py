"""Our hooks in a client's settings in TOML: a table `[[hooks]]` for each, added at the end.

The client has one list of hooks, in which each names its event. Hooks that are not ours are never
changed.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from brimline.agents.hook_command import is_our_hook, starts_daemon
from brimline.agents.install_spec import START_EVENT, InstallSpec, WantedHook
from brimline.errors import InvalidSettings
from brimline.files.jsonc import Json
from brimline.install.created_files import is_created
from brimline.install.install import SetupOptions
from brimline.install.setup_file import SetupFile
from brimline.install.toml_key import parse_toml

HOOKS = "hooks"

# A table as we write it, with the blank line before it.
TABLE = re.compile(r"^(?:\r?\n)?\[\[hooks\]\]\r?\n(?:\w+ = .+\r?\n){3}", re.MULTILINE)


def installed_toml_hooks(path: Path, data: bytes) -> dict[str, Json]:
    """Return our hooks by event, without the event's name; raises InvalidSettings."""
    ours = [hook for hook in _read_hooks(path, data) if is_our_hook(hook)]
    return {
        str(hook["event"]): {key: value for key, value in hook.items() if key != "event"}
        for hook in ours
        if "event" in hook
    }


def toml_hooks_file(spec: InstallSpec, path: Path, options: SetupOptions) -> SetupFile:
    """Return the change that adds or removes our hooks."""

    def add(before: bytes | None) -> bytes:
        data = before or b""
        installed = installed_toml_hooks(path, data)
        autostart = options.autostart
        if autostart is None:
            start = installed.get(START_EVENT)
            autostart = options.default_autostart if start is None else starts_daemon(start)
        hooks = spec.wanted_hooks(options.program, None, autostart)
        if installed == {each.event: each.hook.to_json() for each in hooks}:
            return data
        return _append(path, _without_ours(path, data), [_table(each) for each in hooks])

    def remove(before: bytes) -> bytes | None:
        after = _without_ours(path, before)
        return None if not after.strip() and is_created(options.state, path) else after

    return SetupFile(
        name=spec.agent,
        path=path,
        state=options.state,
        remove=options.remove,
        add_ours=add,
        remove_ours=remove,
        has_ours=lambda before: bool(installed_toml_hooks(path, before)),
        scope=options.scope,
    )


def _table(wanted: WantedHook) -> dict[str, Any]:
    hook: dict[str, Any] = msgspec.to_builtins(wanted.hook)
    return {"event": wanted.event, **hook}


def _read_hooks(path: Path, data: bytes) -> list[dict[str, Any]]:
    hooks: Any = parse_toml(path, data).unwrap().get(HOOKS, [])
    if not isinstance(hooks, list) or not all(isinstance(hook, dict) for hook in hooks):  # pyright: ignore
        raise InvalidSettings(str(path), HOOKS, "expected an array of tables")
    return hooks  # pyright: ignore[reportUnknownVariableType]


def _append(path: Path, data: bytes, tables: Sequence[dict[str, Any]]) -> bytes:
    """Add hooks at the end, or to the list in which the file has its hooks.

    No blank line comes before the first if the file's last line has no end, which removal restores.
    """
    from tomlkit import inline_table, item
    from tomlkit.items import Array

    document = parse_toml(path, data)
    hooks: Any = document.get(HOOKS)  # pyright: ignore
    if isinstance(hooks, Array):
        for table in tables:
            hook = inline_table()
            hook.update(table)  # pyright: ignore[reportUnknownMemberType]
            hooks.append(hook)  # pyright: ignore[reportUnknownMemberType]
        return document.as_string().encode()
    newline = "\r\n" if b"\r\n" in data else "\n"
    is_line_open = bool(data) and not data.endswith(b"\n")
    lines = [""] if is_line_open else []
    for place, table in enumerate(tables):
        lines += [""] if place or (data.strip() and not is_line_open) else []
        lines.append("[[hooks]]")
        for key, value in table.items():
            lines.append(f"{key} = {item(value).as_string()}")  # pyright: ignore[reportUnknownMemberType]
    return data + (newline.join(lines) + newline).encode()


def _without_ours(path: Path, data: bytes) -> bytes:
    """Remove our hooks: their text if it is as we wrote it, else what the file has of them."""
    kept = [hook for hook in _read_hooks(path, data) if not is_our_hook(hook)]
    content = data.decode("utf-8")
    left = TABLE.sub(_drop_if_ours, content)
    first = next((found for found in TABLE.finditer(content) if not _drop_if_ours(found)), None)
    if first and first[0].startswith("[") and len(left) == first.start():
        left = left.removesuffix("\n").removesuffix("\r")  # the line before had no end
    text = left.encode()
    if _read_hooks(path, text) == kept:
        return text
    document = parse_toml(path, data)
    hooks: Any = document[HOOKS]
    for place in reversed(range(len(hooks))):
        if is_our_hook(hooks[place].unwrap()):
            del hooks[place]
    if not kept:
        del document[HOOKS]
    return document.as_string().encode()


def _drop_if_ours(found: re.Match[str]) -> str:
    try:
        (hook,) = tomllib.loads(found[0])[HOOKS]
    except tomllib.TOMLDecodeError:
        return found[0]
    return "" if is_our_hook(hook) else found[0]
