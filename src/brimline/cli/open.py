"""`brimline open`: open the dashboard in a browser, signed in by a link that works once."""

import argparse
import os
import sys
import webbrowser

from brimline.cli import background
from brimline.cli.arguments import add_flag
from brimline.cli.context import CommandContext, emit_json

PRINTED = "Open this link in a browser; it works once, within an hour:"
REMOTE = "On another machine, forward the same port first: ssh -L {port}:127.0.0.1:{port} HOST"
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def add_arguments(to: argparse.ArgumentParser) -> None:
    add_flag(to, "--print", "print the link instead of opening it")
    add_flag(to, "--json", "print the link as JSON")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Start the daemon if none runs, and open a link to its dashboard."""
    if background.daemon_address(context) is None:
        code = background.start(context, None, sys.stderr)
        if code:
            return code
    link = background.page_link(context)
    if options.json:
        emit_json({"url": link})
        return 0
    if not options.print and _has_browser(context) and webbrowser.open(link):
        print("opened in your browser (`brimline open --print` prints a link instead)")
        return 0
    print(f"{PRINTED}\n{link}")
    if context.places.env.get("SSH_CONNECTION"):
        port = link.partition("127.0.0.1:")[2].partition("/")[0]
        print(REMOTE.format(port=port), file=sys.stderr)
    return 0


def _has_browser(context: CommandContext) -> bool:
    """Return whether a browser can show up here: on a desktop, and not in a session over ssh."""
    env = context.places.env
    if env.get("SSH_CONNECTION") or not sys.stdout.isatty():
        return False
    if sys.platform == "darwin" or env.get("BROWSER") or env.get("WSL_DISTRO_NAME"):
        return True
    return os.name == "posix" and any(env.get(name) for name in DISPLAYS)
