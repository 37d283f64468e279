"""A model request, read into one shape whatever its API, and whose it is.

It is that of the main conversation, of a subagent, or one of the client's chores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec

from .billed import Thread

CHARACTERS_PER_TOKEN = 4
# The kind of block or item in which an API hands out its own summary, and gets it back.
COMPACTION = "compaction"


@dataclass(frozen=True)
class Block:
    """A piece of the prompt in wire order; `ttl` is set at a cache breakpoint."""

    key: bytes
    tokens: int
    in_conversation: bool
    ttl: str | None = None
    content: Any = None


@dataclass(frozen=True)
class Prompt:
    """What one request asks of the model."""

    model: str
    stream: bool
    blocks: tuple[Block, ...]
    system: str  # the text of the instructions
    newest: str  # the text of what came in since the model's last answer
    tools: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tell_usage: bool = True  # whether a stream ends with its usage
    tell_growth: bool = False  # whether each chunk of a stream has the usage so far
    summarise: bool = False  # whether nothing but a compaction is asked for

    @property
    def tokens(self) -> int:
        """The tokens of everything that was sent."""
        return sum(one.tokens for one in self.blocks)

    def summed_up(self, summary: str) -> Prompt:
        """The prompt with its conversation replaced by a summary."""
        heads = tuple(one for one in self.blocks if not one.in_conversation)
        return replace(self, blocks=(*heads, block(summary, in_conversation=True)))


def block(content: Any, *, in_conversation: bool, ttl: str | None = None) -> Block:
    """A piece of a prompt, known by its canonical JSON and sized by its length."""
    text = msgspec.json.encode(content, order="sorted")
    key = hashlib.blake2b(text, digest_size=16).digest()
    return Block(key, estimate(text), in_conversation, ttl, content)


def estimate(text: bytes | str) -> int:
    """Tokens of a text, at least one."""
    return max(1, len(text) // CHARACTERS_PER_TOKEN)


def begins(kinds: Sequence[object]) -> int:
    """Where the part of a conversation that counts begins: at its last compaction, else at 0."""
    places = [place for place, kind in enumerate(kinds) if kind == COMPACTION]
    return places[-1] if places else 0


def text_of(content: Any) -> str:
    """Every string inside a piece of JSON, one per line."""
    return "\n".join(strings(content))


def strings(content: Any) -> Iterable[str]:
    """The strings inside a piece of JSON, depth first, keys left out."""
    match content:
        case str():
            yield content
        case dict():
            for value in cast("dict[str, Any]", content).values():
                yield from strings(value)
        case list():
            for item in cast("list[Any]", content):
                yield from strings(item)
        case _:
            return


CODEX_TURN = "x-codex-turn-metadata"
CLAUDE_AGENT = "x-claude-code-agent-id"
CLAUDE_SESSION = "x-claude-code-session-id"
OPENCODE_SESSION = "x-session-id"
OPENCODE_PARENT = "x-parent-session-id"
GEMINI_SUBAGENT_TOOL = "complete_task"
COPILOT_INTERACTION = "x-interaction-type"
QWEN_SUBAGENT = "You are a general-purpose subagent working for a parent agent."
KIMI_SUBAGENT = "You are now running as a subagent. All the `user` messages are sent by the main"
CLINE_TOOL = "run_commands"
GOOSE_SUBAGENT = "You are a specialized subagent within the goose AI framework"
QWEN_SUMMARY = "You are the component that summarizes a conversation when its context window is"


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
    Mark("compaction", "Qwen Code", newest=QWEN_SUMMARY),
    Mark("compaction", "Qwen Code", system=QWEN_SUMMARY),  # again, if the first had no snapshot
    Mark("compaction", "Kimi Code", newest="You are about to run out of context. Create a handoff"),
    Mark("compaction", "Cline CLI", newest="Summarize this session for continuation. Be concise"),
    Mark("compaction", "Goose", newest="Please summarize the conversation history provided in the"),
    Mark("title", "opencode", system="You are a title generator"),
)


@dataclass(frozen=True)
class RequestSender:
    """The thread of a request and the ids that the client sent with it."""

    thread: Thread = "main"
    agent_id: str | None = None
    session_id: str | None = None


class _CodexTurn(msgspec.Struct):
    """What Codex sends about a request in one header."""

    session_id: str
    thread_id: str
    request_kind: str


def recognise(prompt: Prompt) -> RequestSender:
    """Tell the thread of a request by its headers, then by the texts of the known clients."""
    sender = _by_headers(prompt.headers)
    if GEMINI_SUBAGENT_TOOL in prompt.tools:
        sender = RequestSender("subagent", "gemini")
    if GOOSE_SUBAGENT in prompt.system:
        sender = RequestSender("subagent", "goose")
    if KIMI_SUBAGENT in prompt.system:
        sender = RequestSender("subagent", "kimi")
    if CLINE_TOOL in prompt.tools and "You are Cline" not in prompt.system:
        sender = RequestSender("subagent", "cline")  # its instructions are the main agent's
    if QWEN_SUBAGENT in prompt.system:
        sender = RequestSender("subagent", "qwen")
    chore = "compaction" if prompt.summarise else _chore(prompt)
    return sender if chore is None else replace(sender, thread=chore)


def _chore(prompt: Prompt) -> Thread | None:
    return next((mark.thread for mark in MARKS if mark.matches(prompt)), None)


def _by_headers(headers: Mapping[str, str]) -> RequestSender:
    if CODEX_TURN in headers:
        return _codex(msgspec.json.decode(headers[CODEX_TURN], type=_CodexTurn))
    if OPENCODE_PARENT in headers:
        return RequestSender("subagent", headers.get(OPENCODE_SESSION), headers[OPENCODE_PARENT])
    if CLAUDE_AGENT in headers:
        return RequestSender("subagent", headers[CLAUDE_AGENT], headers.get(CLAUDE_SESSION))
    if headers.get(COPILOT_INTERACTION) == "conversation-subagent":
        return RequestSender("subagent", "copilot")
    return RequestSender("main", None, headers.get(CLAUDE_SESSION, headers.get(OPENCODE_SESSION)))


def _codex(turn: _CodexTurn) -> RequestSender:
    agent_id = turn.thread_id if turn.thread_id != turn.session_id else None
    thread: Thread = "subagent" if agent_id else "main"
    if turn.request_kind == "compaction":
        thread = "compaction"
    return RequestSender(thread, agent_id, turn.session_id)
