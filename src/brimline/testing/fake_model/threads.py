"""Whose request it is: the main conversation's, a subagent's, or one of the client's chores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from .billed import Thread
from .prompt import Prompt

CODEX_TURN = "x-codex-turn-metadata"
CLAUDE_AGENT = "x-claude-code-agent-id"
CLAUDE_SESSION = "x-claude-code-session-id"
OPENCODE_SESSION = "x-session-id"
OPENCODE_PARENT = "x-parent-session-id"
GEMINI_SUBAGENT_TOOL = "complete_task"


@dataclass(frozen=True)
class Mark:
    """A text by which a chore is known, in the instructions or in the newest messages."""

    thread: Thread
    client: str
    system: str | None = None
    newest: str | None = None

    def matches(self, prompt: Prompt) -> bool:
        """Whether the request holds every text of this mark."""
        return (self.system is None or self.system in prompt.system) and (
            self.newest is None or self.newest in prompt.newest
        )


MARKS = (
    Mark("compaction", "Claude Code", newest="CRITICAL: Respond with TEXT ONLY"),
    Mark("compaction", "Pi", system="context summarization assistant"),
    Mark("compaction", "Gemini CLI", system="distilling chat history into a structured XML"),
    Mark("router", "Gemini CLI", system="specialized Task Routing AI"),
    Mark("compaction", "opencode", newest="anchored summary from the conversation history"),
    Mark(
        "compaction", "Copilot CLI", newest="Please create a detailed summary of the conversation"
    ),
    Mark("title", "opencode", system="You are a title generator"),
)


@dataclass(frozen=True)
class Sender:
    """The thread of a request and the ids that the client sent with it."""

    thread: Thread = "main"
    agent_id: str | None = None
    session_id: str | None = None


class _CodexTurn(msgspec.Struct):
    """What Codex sends about a request in one header."""

    session_id: str
    thread_id: str
    request_kind: str


def recognise(prompt: Prompt) -> Sender:
    """Tell the thread of a request by its headers, then by the texts of the known clients."""
    sender = _by_headers(prompt.headers)
    if GEMINI_SUBAGENT_TOOL in prompt.tools:
        sender = Sender("subagent", "gemini")
    chore = "compaction" if prompt.summarise else _chore(prompt)
    return sender if chore is None else replace(sender, thread=chore)


def _chore(prompt: Prompt) -> Thread | None:
    return next((mark.thread for mark in MARKS if mark.matches(prompt)), None)


def _by_headers(headers: Mapping[str, str]) -> Sender:
    if CODEX_TURN in headers:
        return _codex(msgspec.json.decode(headers[CODEX_TURN], type=_CodexTurn))
    if OPENCODE_PARENT in headers:
        return Sender("subagent", headers.get(OPENCODE_SESSION), headers[OPENCODE_PARENT])
    if CLAUDE_AGENT in headers:
        return Sender("subagent", headers[CLAUDE_AGENT], headers.get(CLAUDE_SESSION))
    return Sender("main", None, headers.get(CLAUDE_SESSION, headers.get(OPENCODE_SESSION)))


def _codex(turn: _CodexTurn) -> Sender:
    agent_id = turn.thread_id if turn.thread_id != turn.session_id else None
    thread: Thread = "subagent" if agent_id else "main"
    if turn.request_kind == "compaction":
        thread = "compaction"
    return Sender(thread, agent_id, turn.session_id)
