"""`brimline send`: a message for a session, delivered by its hooks."""

import argparse

from brimline.cli.ask import ask
from brimline.cli.context import Context, emit_json


def run(context: Context, options: argparse.Namespace) -> int:
    """Queue it."""
    body = {"text": options.text, "urgent": options.urgent}
    told = ask(context, "POST", f"/v1/sessions/{options.session}/messages", body)
    if options.json:
        emit_json(told)
    else:
        when = "the next tool result" if options.urgent else "the next turn"
        print(f"queued for {options.session}: delivered at {when}")
    return 0
