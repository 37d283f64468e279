"""`brimline handoff`: hand a document over, to be brought back after the next compaction."""

import argparse
import os
from collections.abc import Mapping

from brimline.cli.ask import Refused, ask
from brimline.cli.context import Context, emit_json
from brimline.cli.paint import age, clean

SESSION = ("BRIMLINE_SESSION", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID")
"""Where an agent's own commands find the id of its session."""


def run(context: Context, options: argparse.Namespace) -> int:
    """Hand one over, or show those that were."""
    session = options.session or _own(context.places.env)
    if session is None:
        raise Refused("which session?", "Run it inside an agent, or say --session ID.")
    if options.path is None or options.show or options.list:
        return _show(context, session, options)
    author = "the agent itself" if options.session is None else "the user"
    body = {"path": os.path.abspath(options.path), "author": author}
    told = ask(context, "POST", f"/v1/sessions/{session}/handoff", body)
    if options.json:
        emit_json(told)
    else:
        print(f"kept {len(told['text']):,} characters for session {session[:8]}: the first request")
        print("after a compaction will hold them. Go on with your work.")
    return 0


def _own(env: Mapping[str, str]) -> str | None:
    return next((env[name] for name in SESSION if env.get(name)), None)


def _show(context: Context, session: str, options: argparse.Namespace) -> int:
    found = ask(context, "GET", f"/v1/sessions/{session}/handoff")["handoffs"]
    if options.json:
        emit_json(found)
        return 0
    if not found:
        print("no handoff yet")
        return 0
    if options.list:
        for row in found:
            print(
                f"{age(context.now - row['at'])} ago, after {row['calls']:,} calls: {row['path']}"
            )
        return 0
    print(clean(found[0]["path"]))
    print(found[0]["text"])
    return 0
