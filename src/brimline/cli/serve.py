"""`brimline serve`: the daemon that hears the agents' hooks and serves the API."""

import argparse
import sys
from contextlib import suppress

from brimline.cli import background, uncollected
from brimline.cli.ask import ask
from brimline.cli.context import Context, emit_json
from brimline.errors import AlreadyRunning, NotRunning
from brimline.paint import age
from brimline.server.sockets import PORT, Silent


def run(context: Context, options: argparse.Namespace) -> int:
    """Run it here until Ctrl-C, or ask about the one that runs."""
    if options.stop:
        return _stop(context)
    if options.status:
        return _status(context, options.json)
    if options.background:
        return background.start(context, options.port)
    if options.autostart:
        return _started_by_hook(context, options.port)
    if options.demo:
        return _demo(options.port)
    return _in_the_foreground(context, PORT if options.port is None else options.port)


def _in_the_foreground(context: Context, port: int) -> int:
    try:
        return _here(context, port)
    except AlreadyRunning:
        if address := background.answers(context):
            print(f"brimline serves at {address} already (`brimline serve --stop` ends it)")
            return 0
        if (one := background.held(context)) is not None:
            raise one from None
        raise


def _demo(port: int | None) -> int:
    """Show recorded sessions; nothing of the user's is asked or touched."""
    import uvloop

    from brimline.server.demo.demo import Demo

    uvloop.run(Demo(port).run(_shows))
    return 0


def _shows(address: str) -> None:
    print(f"brimline shows recorded sessions at {address} (Ctrl-C ends it)", flush=True)


def _here(context: Context, port: int | None) -> int:
    with uncollected():
        import uvloop

        from brimline.server.daemon import Daemon, quiet_signals

    quiet_signals()
    daemon = Daemon(context.places, context.settings, port or None)
    uvloop.run(daemon.run(_ready))
    return 1 if daemon.lost else 0


def _started_by_hook(context: Context, port: int | None) -> int:
    """The same, into the log; nothing where that is switched off, or where one runs already."""
    if not context.settings.daemon.autostart:
        return 0
    background.log_to(background.log_of(context))
    with suppress(AlreadyRunning):
        _here(context, port)
    return 0


def _ready(address: str) -> None:
    print(f"brimline serves at {address} (Ctrl-C ends it)", flush=True)


def _status(context: Context, as_json: bool) -> int:
    try:
        told = ask(context, "GET", background.DAEMON)
    except NotRunning as error:
        if as_json:
            emit_json({"running": False, "pid": error.pid if isinstance(error, Silent) else None})
        else:
            print(error)
        return 3
    if as_json:
        emit_json({"running": True, **told})
        return 0
    since = age(context.now - told["since"])
    print(f"running since {since}, process {told['pid']}, version {told['version']}")
    print(f"at {told['address']}; {told['heard']:,} hooks and status lines heard")
    if told["malformed"] or told["dropped"]:
        print(f"{told['malformed']:,} could not be read, {told['dropped']:,} were dropped")
    return 0


def _stop(context: Context) -> int:
    if background.stop(context):
        print("stopped")
        return 0
    print("brimline: it is still running", file=sys.stderr)
    return 1
