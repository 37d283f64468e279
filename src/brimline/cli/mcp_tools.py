"""The two tools of `brimline mcp`. Their definitions are a part of every call, so they are short.

What a tool needs is imported when it is called first: a client waits for the server's start.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from brimline.cli.context import CommandContext
from brimline.errors import InvalidRequest, NotRunning

if TYPE_CHECKING:
    from brimline.context.short_status import ShortStatus
    from brimline.sessions.ledger.explain import Explanation

Arguments: TypeAlias = Mapping[str, Any]

LARGEST_PIECES = 10
MAX_WASTE_LINES = 3
MAX_RECALL_HITS = 5
MAX_TEXT_CHARS = 20_000  # of a document that is read: clients truncate longer results
DOCUMENTS = "handoffs"  # in the state folder
TOOL_WAIT_S = 30.0

DEFINITIONS: list[dict[str, Any]] = [
    {
        "name": "context",
        "description": "How full your context window is: tokens, limit, calls left, what to do.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "detail": {
                    "type": "string",
                    "enum": ["breakdown"],
                    "description": "add the largest pieces, and waste",
                },
                "session": {"type": "string", "description": "another session's id"},
            },
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "handoff",
        "description": "The document with which you go on after a compaction or clear; "
        "recall finds what you wrote, ran or read before.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["write", "read", "state", "recall"]},
                "text": {
                    "type": "string",
                    "description": "write: task, done, open, where to look. recall: words",
                },
                "session": {"type": "string", "description": "read, state, recall: another one"},
            },
            "required": ["action"],
        },
    },
]


class AgentTools:
    """The tools, by name; `client` is the agent that runs them, None if it is none of ours."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._client: str | None = None
        self.by_name: dict[str, Callable[[Arguments], str]] = {
            "context": self._describe_context,
            "handoff": self._run_handoff,
        }

    def set_client(self, name: str) -> None:
        """Remember which agent this client is, by the name that it introduces itself with."""
        from brimline.agents import all_agents

        for agent in all_agents():
            if name in agent.capabilities.mcp_client_names:
                self._client = agent.name

    def _describe_context(self, arguments: Arguments) -> str:
        detail = _text(arguments, "detail")
        if detail not in (None, "breakdown"):
            raise InvalidRequest(f"detail: expected breakdown: got {detail!r}")
        status = self._status(_text(arguments, "session"))
        lines = [f"{status.text}.", _describe_handoff(status)]
        if detail:
            lines += _describe_pieces(self._explain(status))
        return "\n".join(lines)

    def _run_handoff(self, arguments: Arguments) -> str:
        action, text = _text(arguments, "action"), _text(arguments, "text")
        session = _text(arguments, "session")
        match action:
            case "write":
                return self._write(text, session)
            case "read":
                return self._read(self._status(session))
            case "state":
                return _describe_handoff(self._status(session))
            case "recall":
                return self._recall(text, self._status(session))
            case _:
                raise InvalidRequest(
                    f"action: expected write, read, state or recall: got {action!r}"
                )

    def _status(self, session: str | None) -> "ShortStatus":
        from brimline.cli.own_session import find_own_status, find_status

        self._context = msgspec.structs.replace(self._context, now=time.time())
        if session is not None:
            return find_status(self._context, session)
        return find_own_status(self._context, agent=self._client)

    def _write(self, text: str | None, session: str | None) -> str:
        """Save a document for the agent's own session; raises InvalidRequest for another one.

        If it is ambiguous which one is its own, it may name any of them.
        """
        from brimline.api.client.request import session_path
        from brimline.cli.own_session import find_own_statuses
        from brimline.cli.session_choice import OWN_AUTHOR

        if text is None or not text.strip():
            raise InvalidRequest("text: expected the document: it is empty")
        own = self._status(None).session if session is None else session
        mine = [each.session for each in find_own_statuses(self._context, agent=self._client)]
        if own not in mine:
            raise InvalidRequest("a document can be written for your own session only")
        path = self._save(own, text)
        body = {"path": path, "author": OWN_AUTHOR}
        saved = self._ask("POST", session_path(own, "/handoff"), body)
        if problem := saved.get("undeliverable"):
            return f"Saved, but nothing will deliver it: {problem}"
        return f"Saved {len(text):,} characters; you get them after the next compaction."

    def _save(self, session: str, text: str) -> str:
        """Write the document to a file of its own, which the session's next one replaces."""
        from brimline.files.atomic_file import replace_file
        from brimline.files.folder_safety import make_private_folder

        folder = self._context.state.absolute() / DOCUMENTS
        try:
            make_private_folder(folder)
            from hashlib import sha256  # loads OpenSSL

            path = folder / f"{sha256(session.encode()).hexdigest()[:16]}.md"
            replace_file(path, text.encode("utf-8", "replace"))
        except OSError as error:
            raise InvalidRequest(f"cannot write to {folder}: {error.strerror or error}") from error
        return str(path)

    def _read(self, status: "ShortStatus") -> str:
        from brimline.api.client.request import session_path

        view = self._ask("GET", session_path(status.session, "/handoff"))
        if not view["handoffs"]:
            return "no handoff yet"
        text = view["handoffs"][0]["text"]
        rest = len(text) - MAX_TEXT_CHARS
        more = f"\n[{rest:,} more characters in {view['handoffs'][0]['path']}]" if rest > 0 else ""
        return f"{_describe_handoff(status)}\n\n{text[:MAX_TEXT_CHARS]}{more}"

    def _recall(self, words: str | None, status: "ShortStatus") -> str:
        from brimline.cli.recall import recall_text

        if words is None or not words.strip():
            raise InvalidRequest("text: expected the words to find")
        return recall_text(self._context, words, status.session, MAX_RECALL_HITS)

    def _explain(self, status: "ShortStatus") -> "Explanation":
        from brimline.api.client.request import session_path
        from brimline.sessions.ledger.explain import Explanation

        path = session_path(status.session, "/explanation")
        try:
            return msgspec.convert(self._ask("GET", path), Explanation)
        except (NotRunning, InvalidRequest):  # it does not run, or does not know the session
            from brimline.cli.session_choice import find_files
            from brimline.sessions.ledger.explain import explain
            from brimline.sessions.ledger.session_ledger import read_ledgers

            files = find_files(self._context, status.session)
            return explain(read_ledgers(files, self._context.places))

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        from brimline.api.client.request import request

        return request(self._context.state, method, path, body, TOOL_WAIT_S)


def _text(arguments: Arguments, name: str) -> str | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"{name}: expected a text: got {value!r}")
    return value


def _describe_handoff(status: "ShortStatus") -> str:
    if status.handoff is None or status.handoff == "none":
        return "No handoff yet."
    calls = status.calls_since_handoff
    since = "" if calls is None else f", {calls} call{'s' * (calls != 1)} since"
    return f"Handoff: {status.handoff}{since}."


def _describe_pieces(explained: "Explanation") -> list[str]:
    """Return the largest pieces of the main thread, and what is wasted."""
    from brimline.context.events import MAIN
    from brimline.context.usage import format_tokens
    from brimline.terminal.text import truncate

    thread = next((each for each in explained.threads if each.thread == MAIN), None)
    if thread is None:
        return [explained.problem or "What fills it is unknown."]
    pieces = [(piece, each.name) for each in thread.categories for piece in each.pieces]
    pieces.sort(key=lambda pair: pair[0].tokens, reverse=True)
    lines = [
        truncate(f"{format_tokens(piece.tokens)} {name}: {piece.what}", 100)
        for piece, name in pieces[:LARGEST_PIECES]
    ]
    if thread.waste_total:
        lines.append(f"Waste: {format_tokens(thread.waste_total.tokens)} tokens.")
    lines += [each.advice for each in thread.waste[:MAX_WASTE_LINES]]
    return lines
