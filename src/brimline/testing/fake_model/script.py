"""The position in a scenario: the next reply of each thread, and the tokens added to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

from .prompt import Prompt, RequestSender
from .scenario import CAPTURED, Reply, Scenario, ToolCall

ROUTED = '{"complexity_reasoning": "A simple task.", "complexity_score": 10}'
TITLE = "Run the commands"


@dataclass
class _Progress:
    """How far one thread is in its replies and on its ramp."""

    left: list[Reply]
    calls: int = 0
    compactions: int = 0
    conversation: tuple[bytes, ...] = ()  # the last prompt's, by its blocks
    is_summed_up: bool = False  # but not yet in a prompt: some clients compact in the background

    def begin_anew(self) -> None:
        """The conversation was summed up."""
        self.calls, self.compactions, self.is_summed_up = 0, self.compactions + 1, False

    def take_prompt(self, prompt: Prompt) -> None:
        """Begin anew with the first prompt after a summary that does not extend the last prompt."""
        keys = tuple(one.key for one in prompt.blocks if one.in_conversation)
        if self.is_summed_up and keys[: len(self.conversation)] != self.conversation:
            self.begin_anew()
        self.conversation = keys


@dataclass(frozen=True)
class ScriptLine:
    """The reply to one request and the prompt tokens added to it."""

    reply: Reply
    added: int
    # What the API itself sums the conversation up to, before the reply or in its place.
    summary: str | None = None
    closed: int = 0  # the tokens added to the conversation before that


@dataclass
class ScenarioScript:
    """Walks through a scenario; not safe for several threads without a lock."""

    scenario: Scenario
    _threads: dict[str | None, _Progress] = field(default_factory=dict[str | None, _Progress])

    def next_line(self, prompt: Prompt, sender: RequestSender) -> ScriptLine:
        """The reply for a request; it moves the sender's thread one step on."""
        progress = self._progress(sender)
        match sender.thread:
            case "router":
                return ScriptLine(Reply(text=ROUTED), 0)
            case "title":
                return ScriptLine(Reply(text=TITLE), 0)
            case "compaction":
                return self._compaction(prompt, progress)
            case _:
                return self._answer(prompt, progress)

    def _progress(self, sender: RequestSender) -> _Progress:
        if sender.agent_id not in self._threads:
            replies = self.scenario.subagent if sender.agent_id else self.scenario.main
            self._threads[sender.agent_id] = _Progress(list(replies))
        return self._threads[sender.agent_id]

    def _compaction(self, prompt: Prompt, progress: _Progress) -> ScriptLine:
        added = self.scenario.ramp.at(max(0, progress.calls - 1), progress.compactions)
        if prompt.summarise:
            progress.begin_anew()
            return ScriptLine(Reply(), added, self.scenario.summary, added)
        progress.is_summed_up = True
        return ScriptLine(Reply(text=self.scenario.summary), added)

    def _answer(self, prompt: Prompt, progress: _Progress) -> ScriptLine:
        progress.take_prompt(prompt)
        reply = _filled(self._take(prompt, progress), prompt)
        closed = self._ramp(progress)
        if reply.compaction is not None:
            progress.begin_anew()
        ramp = self._ramp(progress)
        if reply.error is None and not (reply.compaction and reply.compaction.paused):
            progress.calls += 1
        added = ramp if reply.added is None else reply.added
        cleared = sum(edit.tokens for edit in reply.edits)
        summary = self.scenario.summary if reply.compaction else None
        return ScriptLine(reply, max(0, added - cleared), summary, closed)

    def _ramp(self, progress: _Progress) -> int:
        return self.scenario.ramp.at(progress.calls, progress.compactions)

    def _take(self, prompt: Prompt, progress: _Progress) -> Reply:
        for reply in progress.left:
            if reply.when is None or reply.when in prompt.newest:
                progress.left.remove(reply)
                return reply
        return self.scenario.otherwise


def _filled(reply: Reply, prompt: Prompt) -> Reply:
    """The reply with the captured text of the request in its tool inputs."""
    match = re.search(reply.capture, prompt.newest) if reply.capture is not None else None
    if match is None:
        return reply
    text = msgspec.json.encode(reply.tools).decode().replace(CAPTURED, match[1])
    tools = msgspec.json.decode(text, type=tuple[ToolCall, ...])
    return msgspec.structs.replace(reply, tools=tools)
