"""`brimline fleet`: settings that point telemetry at a server; its figures and its audit log."""

import argparse
import re
from textwrap import fill

import msgspec

from brimline.agents import managed_clients, managed_settings
from brimline.agents.managed_settings import TOKEN_MARK, ManagedFile, ManagedSettings
from brimline.cli.arguments import add_json, parse_agent
from brimline.cli.context import Context, emit_json
from brimline.cli.fleet_audit import add_audit_arguments, show_audit
from brimline.cli.fleet_status import add_status_arguments, show_status
from brimline.errors import InvalidSettings

USAGE = """brimline fleet snippet [CLIENT] [--url URL] [--json]
       brimline fleet status [--by GROUP] [--since SPAN] [--url URL] [--token-file FILE] [--json]
       brimline fleet audit [--limit N] [--url URL] [--token-file FILE] [--json]"""
ACTIONS = ("snippet", "status", "audit")
EXAMPLE_URL = "https://fleet.example.com"
ADDRESS = re.compile(r"https?://([\w.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?(/[\w.~/-]*)?", re.ASCII)
HOW = (
    f"Replace {TOKEN_MARK} with a token with the scope `ingest`:\n"
    "  brimline token create --name TEAM --scope ingest --organisation NAME --database URL\n"
    "Whoever can read a file can use its token: give each team its own, and let it expire."
)


class Snippet(msgspec.Struct, frozen=True):
    """The managed settings of one client; `note` is what an administrator must know about them."""

    client: str
    name: str
    files: list[ManagedFile]
    note: str


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    help_text = (
        "snippet: print managed settings for OpenTelemetry, and where each file goes; "
        "status: show the fleet's figures by group; "
        "audit: list who sent what to which agent through the server"
    )
    to.add_argument("action", choices=ACTIONS, metavar="ACTION", help=help_text)
    help_text = f"with snippet: only this client: {', '.join(managed_clients())}"
    to.add_argument("client", nargs="?", type=parse_agent, metavar="CLIENT", help=help_text)
    help_text = "the server's address (default: an example; with status and audit, uplink.url)"
    to.add_argument("--url", type=_parse_url, help=help_text)
    help_text = "with status and audit: a file with a token of scope read (default: the uplink's)"
    to.add_argument("--token-file", metavar="FILE", help=help_text)
    add_status_arguments(to)
    add_audit_arguments(to)
    add_json(to)


def _parse_url(text: str) -> str:
    if not ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected an address such as {EXAMPLE_URL}: got {text!r}")
    return text.rstrip("/")


def run(context: Context, options: argparse.Namespace) -> int:
    if options.action != "snippet":
        if options.client:
            raise InvalidSettings("argument", "CLIENT", f"not allowed with {options.action}")
        show = show_status if options.action == "status" else show_audit
        return show(context, options)
    clients = [options.client] if options.client else managed_clients()
    url = options.url or EXAMPLE_URL
    settings = {client: managed_settings(client, url) for client in clients}
    if options.json:
        rows = settings.items()
        emit_json([Snippet(client, one.client, one.files, one.note) for client, one in rows])
        return 0
    lines = [line for one in settings.values() for line in _lines(one, context.width)]
    print("\n".join([HOW, *lines]))
    return 0


def _lines(settings: ManagedSettings, width: int) -> list[str]:
    lines = ["", f"== {settings.client}", fill(settings.note, width, break_on_hyphens=False)]
    for file in settings.files:
        places = f"Linux and macOS: {file.linux}"
        if file.macos != file.linux:
            places = f"Linux: {file.linux}\nmacOS: {file.macos}"
        lines += ["", places, "", file.text.rstrip("\n")]
    return lines
