"""`brimline serve`: the daemon that hears the agents' hooks and serves the API."""

import argparse
import asyncio
import sys
import time

from brimline.cli.ask import ask
from brimline.cli.context import Context, emit_json
from brimline.cli.paint import age
from brimline.errors import NotRunning


def run(context: Context, options: argparse.Namespace) -> int:
    """Run it here until Ctrl-C, or ask about the one that runs."""
    if options.stop:
        return _stop(context)
    if options.status:
        return _status(context, options.json)
    from brimline.server.daemon import Daemon, quiet_signals

    quiet_signals()
    daemon = Daemon(context.places, context.settings, options.port)
    asyncio.run(daemon.run(_ready))
    return 0


def _ready(address: str) -> None:
    print(f"brimline serves at {address} (Ctrl-C ends it)", flush=True)


def _status(context: Context, as_json: bool) -> int:
    try:
        told = ask(context, "GET", "/v1/daemon")
    except NotRunning as error:
        if as_json:
            emit_json({"running": False})
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
    ask(context, "DELETE", "/v1/daemon")
    for _ in range(50):
        time.sleep(0.1)
        try:
            ask(context, "GET", "/healthz")
        except NotRunning:
            print("stopped")
            return 0
    print("brimline: it is still running", file=sys.stderr)
    return 1
