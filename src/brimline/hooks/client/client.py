"""The entry of the hook client in Python: stdin goes to the daemon, its answer to stdout.

    python -I -S client.py KIND AGENT SOCKET SPOOL
    python -I -S client.py --no-daemon ID KIND AGENT SOCKET SPOOL
    python -I -S client.py --start SPOOL

The first form is the fallback if there is no compiled client (client.c). KIND is `hook`,
`statusline`, or `start`: the hook of a session's start, which starts the daemon if none runs.
`hook-restart` and `statusline-restart` start it, too, once a minute at most: it may have died
within the session. `here` asks for the status of the session that it runs in: it has no input, its
AGENT is a template, and it is not spooled.

The other forms are run beside the compiled client, too. The second is for extensions that got no
answer: ID is the event id, and the daemon may have received it. Then, `start` and `hook-restart`
mean that no daemon runs, and `delivered` that stdin is the receipt of an answer which the daemon
did not confirm. The third form becomes the daemon; the compiled client runs it.

Without an answer the event is appended to the spool, and a status line shows `ctx unknown` and the
daemon's state. If stdin does not come in time, the event is only counted. The exit code is always
0. Every wait has a deadline, the last of them a quarter of a second after the start: without an
alarm, a process that got no CPU time still spools its event.

The client uses only C modules of the interpreter: any other import takes longer than all the rest.
Python compiles a script each time it runs, which would add half of Python's own start time, so the
parts are loaded from Python's bytecode cache, which the daemon fills (__init__.py).
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import SourceFileLoader
    from os import _exit as leave
    from typing import Any

    from brimline.hooks.client.exchange import HookEvent
else:
    from _frozen_importlib_external import SourceFileLoader
    from posix import _exit as leave


def load_part(name: str) -> "dict[str, Any]":
    """Run a file next to this one and return its names; an unreadable cache is ignored."""
    loader = SourceFileLoader(name, f"{__file__.rpartition('/')[0] or '.'}/{name}.py")
    try:
        code = loader.get_code(name)
    except (EOFError, ValueError, TypeError):
        code = None
    names: dict[str, Any] = {"__name__": name}
    exec(code or loader.source_to_code(loader.get_data(loader.path), loader.path), names)
    return names


def main(arguments: list[str]) -> None:
    """Send the event to the daemon; without an answer, spool it."""
    if arguments[:1] == ["--start"]:
        load_part("autostart")["become_daemon"](arguments[1])
        return
    event = load_part("exchange")["exchange"](arguments, reduce_body)
    if event.receipt or event.kind == "delivered":
        load_part("offline")["save"](event, "delivered", event.receipt or event.body)
    elif not event.answered and event.kind != "here":
        handle_offline(event)


def reduce_body(body: bytes) -> bytes:
    return load_part("payload")["reduce_body"](body)


def handle_offline(event: "HookEvent") -> None:
    """Start the daemon if this kind may, print a status line, and spool the event."""
    offline = load_part("offline")
    reduced = reduce_body(event.body)
    state = "daemon off" if event.no_daemon else "no answer from the daemon"
    if event.starts and event.no_daemon and start_daemon(event, offline):
        state = "daemon starting"
    if event.kind == "statusline" and (event.is_late or reduced):
        event.print(b"ctx unknown\n" if event.is_late else f"ctx unknown | {state}\n".encode())
    if event.is_late:
        offline["count_event"](f"{event.spool}.late")
    else:
        offline["save"](event, event.kind, reduced)


def start_daemon(event: "HookEvent", offline: "dict[str, Any]") -> bool:
    """Start the daemon; return whether one is starting now."""
    try:
        offline["make_folder"](event.spool.rpartition("/")[0])
    except OSError:
        return False
    return load_part("autostart")["start_daemon"](event.spool, event.is_restart)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    try:
        main(sys.argv[1:])
    finally:
        leave(0)
