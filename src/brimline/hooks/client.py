"""What an agent runs at each hook and status line: stdin goes to the daemon, its answer to stdout.

    python -I -S client.py KIND AGENT SOCKET SPOOL
    python -I -S client.py --no-daemon ID KIND AGENT SOCKET SPOOL
    python -I -S client.py --start SPOOL

KIND is `hook`, `statusline`, or `start`: the hook of a session's start, which starts the daemon too
where there is none. The second form is how an extension (asking.js) goes on without an answer: ID
is that of the event, which the daemon may have heard; `start` tells that there is no daemon, and
`delivered` that stdin is the receipt of an answer that the daemon did not confirm. The third form
becomes the daemon, for `brimline-hook` (client.c).

Without an answer the event is appended to the spool, and a status line is what stdin alone can
tell. It exits with 0 whatever happens, within a quarter of a second.

This and its parts, asking.py, payload.py, alone.py and starting.py, stand on the interpreter's C
modules alone: any other import costs the agent more time than all that is done here. A script is
compiled each time that it is run, which would cost half as much again as Python's start; the parts
are taken from its cache, where they are once the daemon's side of them was imported.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import SourceFileLoader
    from os import _exit as leave
    from typing import Any

    from brimline.hooks.asking import Event
else:
    from _frozen_importlib_external import SourceFileLoader
    from posix import _exit as leave


def part(name: str) -> "dict[str, Any]":
    """What a file beside this one defines; a cache that cannot be read is passed over."""
    loader = SourceFileLoader(name, f"{__file__.rpartition('/')[0] or '.'}/{name}.py")
    try:
        code = loader.get_code(name)
    except (EOFError, ValueError, TypeError):
        code = None
    defined: dict[str, Any] = {"__name__": name}
    exec(code or loader.source_to_code(loader.get_data(loader.path), loader.path), defined)
    return defined


def main(arguments: list[str]) -> None:
    """Ask the daemon; where it does not answer, do without it."""
    if arguments[:1] == ["--start"]:
        part("starting")["become"](arguments[1])
        return
    event = part("asking")["ask"](arguments)
    if event.receipt or event.kind == "delivered":
        part("alone")["save"](event, "delivered", event.receipt or event.body)
    elif not event.answered:
        go_on_alone(event)


def go_on_alone(event: "Event") -> None:
    """Show what stdin alone can tell, spool the event, and start the daemon if that is wanted."""
    payload = part("payload")
    reduced = payload["reduce_body"](event.body)
    if event.kind == "statusline":
        state = "daemon off" if event.nobody else "no answer from the daemon"
        event.say(payload["short_status"](reduced, state))
    part("alone")["save"](event, event.kind, reduced)
    if event.starts and event.nobody:
        part("starting")["start"](event.spool)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    try:
        main(sys.argv[1:])
    finally:
        leave(0)
