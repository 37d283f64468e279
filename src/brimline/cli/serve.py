"""`brimline serve`: the daemon that receives the agents' hooks and serves the API."""

import argparse
import os
import signal
import stat
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from brimline.api.access import LINK_PATH
from brimline.cli import background
from brimline.cli.arguments import add_flag
from brimline.cli.context import CommandContext, emit_json, print_store_problems
from brimline.cli.daemon_requests import describe_losses, request
from brimline.cli.doctor_checks import describe_uplink
from brimline.cli.open import PRINTED
from brimline.daemon.sockets import DaemonUnresponsive
from brimline.errors import AlreadyRunning, InvalidSettings, NotRunning
from brimline.store.postgres import translated_import_error
from brimline.terminal.text import format_age

USAGE = """brimline serve [--port N] [--database URL] [--background | --demo]
       brimline serve --database URL --listen HOST:PORT \
[--tls-cert FILE --tls-key FILE | --behind-proxy]
       brimline serve --status [--json] | --stop"""
ANY_PORT = 0  # the usual port, or any free one if that is taken


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    help_text = "port on 127.0.0.1 (default 8420; `any`: pick a free one)"
    to.add_argument("--port", type=_port, metavar="N", help=help_text)
    about = "keep sessions in a PostgreSQL database (postgresql://...) instead of a file"
    to.add_argument("--database", metavar="URL", help=about)
    about = "run a fleet's server at this address; every request needs a token"
    to.add_argument("--listen", type=_listen_address, metavar="HOST:PORT", help=about)
    to.add_argument("--tls-cert", metavar="FILE", help="with --listen: its certificate chain, PEM")
    to.add_argument("--tls-key", metavar="FILE", help="with --listen: its private key, PEM")
    about = "with --listen: a proxy in front of it speaks TLS"
    add_flag(to, "--behind-proxy", about)
    which = to.add_mutually_exclusive_group()
    for name, help_text in (
        ("--background", "start the daemon and return when it is ready"),
        ("--autostart", "start silently, as hooks do; log to serve.log"),
        ("--demo", "serve sample sessions on a port of their own"),
        ("--status", "show the running daemon"),
        ("--stop", "stop the running daemon"),
    ):
        which.add_argument(name, action="store_true", help=help_text)
    add_flag(to, "--json", "with --status: print JSON instead of text")


def _port(text: str) -> int:
    if text == "any":
        return ANY_PORT
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"expected a port from 1 to 65535, or `any`: got {text!r}")
    return int(text)


def _listen_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or not port.isdecimal() or int(port) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"expected HOST:PORT: got {text!r}")
    return bare, int(port)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Run the daemon until Ctrl-C, or ask about the one that runs."""
    if options.listen is not None:
        return _serve_fleet(context, options)
    if options.tls_cert or options.tls_key or options.behind_proxy:
        reason = "missing: --tls-cert, --tls-key and --behind-proxy are for a fleet's server"
        raise InvalidSettings("argument", "--listen", reason)
    if options.stop:
        return _stop(context)
    if options.status:
        return _status(context, options.json)
    if options.background:
        return background.start(context, options.port)
    if options.autostart:
        return _serve_for_hook(context, options.port)
    if options.demo:
        return _demo(options.port)
    return _serve_in_foreground(context, options.port)


def _serve_in_foreground(context: CommandContext, port: int | None) -> int:
    try:
        return _run_daemon(context, port, _print_link)
    except AlreadyRunning:
        if address := background.daemon_address(context):
            print(f"Brimline is already running at {address} (`brimline serve --stop` stops it)")
            print(f"{PRINTED}\n{background.page_link(context)}")
            return 0
        if (one := background.find_unresponsive_daemon(context)) is not None:
            raise one from None
        raise


def _serve_fleet(context: CommandContext, options: argparse.Namespace) -> int:
    """Run a replica of a fleet's server until Ctrl-C."""
    for name in ("port", "background", "autostart", "demo", "status", "stop"):
        if getattr(options, name):
            raise InvalidSettings("argument", f"--{name}", "not allowed with --listen")
    database = context.settings.daemon.database
    if database is None:
        reason = (
            "missing: a fleet's server needs PostgreSQL; pass its URL, or set BRIMLINE_DATABASE"
        )
        raise InvalidSettings("argument", "--database", reason)
    with translated_import_error():
        from brimline.server.fleet.server import FleetServer, ListenAddress
    host, port = options.listen
    address = ListenAddress(host, port, options.tls_cert, options.tls_key, options.behind_proxy)
    _run_event_loop(FleetServer(context.settings, database, address).run(_print_fleet_address))
    return 0


def _print_fleet_address(url: str) -> None:
    print(f"Brimline's server is running at {url} (Ctrl-C stops it)", flush=True)


def _demo(port: int | None) -> int:
    from brimline.server.demo.demo import Demo

    _run_event_loop(Demo(port).run(_print_demo_link))
    return 0


def _print_demo_link(link: str) -> None:
    print(f"Brimline shows sample sessions at {_address(link)} (Ctrl-C stops it)")
    print(f"{PRINTED}\n{link}", flush=True)


def _run_daemon(context: CommandContext, port: int | None, ready: Callable[[str], None]) -> int:
    background.require_daemon()
    from brimline.install.launcher import local_program, refresh_launcher
    from brimline.server.daemon import DaemonProcess, ignore_hangup

    ignore_hangup()
    with suppress(InvalidSettings):
        refresh_launcher(local_program(Path(os.path.abspath(context.state))))
    daemon = DaemonProcess(context.places, context.settings, port or None)
    _run_event_loop(daemon.run(ready))
    return 1 if daemon.is_lost else 0


def _run_event_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop, or on asyncio's own loop where uvloop has no wheel.

    Until `main` sets its own handlers, Ctrl-C cancels it. It raises nothing: a KeyboardInterrupt
    within a callback of the loop would lose what that callback was to do, and `main` wait for it.
    """
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    from asyncio import CancelledError

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # before the loop runs, it ends the process
    with suppress(CancelledError):
        run(_cancel_on_signals(main))


async def _cancel_on_signals(main: Coroutine[Any, Any, None]) -> None:
    from asyncio import current_task

    from brimline.server.http_server import stop_on_signals

    task = current_task()
    assert task is not None
    stop_on_signals(task.cancel)
    await main


def _serve_for_hook(context: CommandContext, port: int | None) -> int:
    """Run the daemon with its output in the log, if autostart is on and none runs."""
    if not context.settings.daemon.autostart:
        return 0
    background.keep_start_lock()
    background.redirect_output(background.log_path(context))
    with suppress(AlreadyRunning):
        _run_daemon(context, port, _print_link)
    return 0


def _print_link(link: str) -> None:
    """Print the address; a log, which may be shown to others, gets no link."""
    print(f"Brimline is running at {_address(link)} (Ctrl-C stops it)")
    if stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
        print("`brimline open` opens the dashboard")
    else:
        print(f"{PRINTED}\n{link}")
    sys.stdout.flush()


def _address(link: str) -> str:
    return link.partition(LINK_PATH)[0]


def _status(context: CommandContext, as_json: bool) -> int:
    print_store_problems(context)
    try:
        daemon = request(context, "GET", background.DAEMON_PATH)
    except NotRunning as error:
        if as_json:
            emit_json(
                {
                    "running": False,
                    "pid": error.pid if isinstance(error, DaemonUnresponsive) else None,
                }
            )
        else:
            print(error)
        return 3
    if as_json:
        emit_json({"running": True, **daemon})
        return 0
    since = format_age(context.now - daemon["since"])
    print(f"running since {since}, process {daemon['pid']}, version {daemon['version']}")
    print(f"at {daemon['address']}; {daemon['heard']:,} hooks and status lines received")
    if any(daemon.get(loss) for loss in ("malformed", "dropped", "late")):
        print(describe_losses(daemon))
    if uplink := daemon.get("uplink"):
        print(f"uplink to {uplink['url']}: {describe_uplink(uplink)}")
    return 0


def _stop(context: CommandContext) -> int:
    if background.stop(context):
        print("stopped")
        return 0
    print("brimline: the daemon is still running", file=sys.stderr)
    return 1
