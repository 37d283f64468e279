"""The fake model without its sockets: a request in, an answer out, a record in the log."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from .apis import Json, ModelTurn, Summary, Wire
from .billed import Billed, BilledBlock, BillingLog, Refused, Usage
from .cache import PrefixCache, PromptSplit, uncached
from .prompt import Prompt, RequestSender, estimate, recognise
from .scenario import STATUS, ErrorKind, Reply, Scenario
from .script import ScenarioScript, ScriptLine

MESSAGES: dict[ErrorKind, str] = {
    "overloaded": "Overloaded",
    "rate_limited": "This request would exceed the rate limit",
    "server": "Internal server error",
}


@dataclass(frozen=True)
class Answered:
    """A call that was answered and billed."""

    turn: ModelTurn
    stream: bool


@dataclass(frozen=True)
class Failed:
    """A call that was refused."""

    status: int
    body: Json
    delay: float


class ScriptedModel:
    """Answers requests of any API from one scenario; safe for several threads."""

    def __init__(self, scenario: Scenario, log: BillingLog) -> None:
        self._scenario = scenario
        self._log = log
        self._script = ScenarioScript(scenario)
        self._caches: dict[str, PrefixCache] = {}
        self._lock = threading.Lock()

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of every answer, beside those of HTTP."""
        return self._scenario.headers

    def ask(
        self, wire: Wire, body: bytes, path: str, headers: Mapping[str, str]
    ) -> Answered | Failed:
        """Answer one request and bill it, or refuse it."""
        prompt = wire.read(body, path, headers)
        sender = recognise(prompt)
        with self._lock:
            line = self._script.next_line(prompt, sender)
            split = self._split(wire, prompt, line)
            kind = self._error(line.reply, split)
            if kind is not None:
                return self._refuse(wire, kind, split, line.reply, sender)
            return Answered(self._bill(wire, prompt, line, split, sender), prompt.stream)

    def count(self, wire: Wire, body: bytes, path: str) -> int:
        """The tokens of a prompt, as the counting endpoints report them; nothing is billed."""
        return wire.read(body, path, {}).tokens

    def _split(self, wire: Wire, prompt: Prompt, line: ScriptLine) -> PromptSplit:
        if line.reply.compaction is not None and line.summary is not None:
            prompt = prompt.summed_up(line.summary)
        if line.reply.error is not None or not self._scenario.cache:
            return uncached(prompt.blocks, line.added)
        if line.reply.cold:
            self._caches.clear()
        cache = self._caches.setdefault(f"{wire.api} {prompt.model}", PrefixCache())
        return wire.split(cache, prompt.blocks, line.added, self._scenario.cache_writes)

    def _error(self, reply: Reply, split: PromptSplit) -> ErrorKind | None:
        window = self._scenario.window
        if reply.error is None and window is not None and split.total > window:
            return "prompt_too_long"
        return reply.error

    def _refuse(
        self, wire: Wire, kind: ErrorKind, split: PromptSplit, reply: Reply, sender: RequestSender
    ) -> Failed:
        status = STATUS[kind]
        self._log.add(
            Refused(
                after=self._log.last_sequence, api=wire.api, status=status, thread=sender.thread
            )
        )
        window = self._scenario.window or 200_000
        too_long = f"prompt is too long: {max(split.total, window + 1)} tokens > {window} maximum"
        return Failed(status, wire.error(kind, MESSAGES.get(kind, too_long)), reply.delay)

    def _bill(
        self,
        wire: Wire,
        prompt: Prompt,
        line: ScriptLine,
        split: PromptSplit,
        sender: RequestSender,
    ) -> ModelTurn:
        turn = self._turn(prompt, line, split)
        if turn.summed_up_alone:
            sender = replace(sender, thread="compaction")
        billed = _billed(wire, turn, sender)
        if self._scenario.list_blocks:
            blocks = tuple(BilledBlock(each.tokens, each.content) for each in prompt.blocks)
            billed = msgspec.structs.replace(billed, blocks=blocks)
        if turn.summary and not turn.summed_up_alone and wire.tells_summary:
            self._log.add(_billed_summary(billed, turn.summary))
        self._log.add(billed)
        return turn

    def _turn(self, prompt: Prompt, line: ScriptLine, split: PromptSplit) -> ModelTurn:
        summary = _summary(prompt, line, split)
        return ModelTurn(
            sequence=self._log.next_sequence(),
            model=prompt.model,
            reply=line.reply,
            usage=summary.usage if summary and summary.alone else _usage(line.reply, split),
            split=split,
            tell_writes=self._scenario.cache_writes,
            tell_usage=prompt.tell_usage,
            tell_growth=prompt.tell_growth,
            summary=summary,
        )


def _summary(prompt: Prompt, line: ScriptLine, split: PromptSplit) -> Summary | None:
    """The compaction in an answer, at the cost that the scenario gives."""
    if line.summary is None:
        return None
    compaction, closed = line.reply.compaction, prompt.tokens + line.closed
    if compaction is None:
        usage = _usage(Reply(text=line.summary), split)
        return Summary(line.summary, usage, closed, alone=True)
    usage = Usage(input=compaction.input, output=compaction.output)
    return Summary(line.summary, usage, closed, alone=compaction.paused)


def _usage(reply: Reply, split: PromptSplit) -> Usage:
    reasoning = estimate(reply.reasoning) if reply.reasoning else 0
    words = sum(estimate(str(tool.input)) + 10 for tool in reply.tools)
    words += estimate(reply.text) if reply.text else 0
    output = reasoning + max(1, words) if reply.output is None else reply.output
    return Usage(
        input=split.input,
        cache_read=split.read,
        cache_write=split.write,
        output=output,
        reasoning=min(reasoning, output),
    )


def _billed_summary(answer: Billed, summary: Summary) -> Billed:
    """The billing record of a compaction, apart from that of its answer."""
    return msgspec.structs.replace(
        answer, id=f"{answer.id}/compaction", usage=summary.usage, thread="compaction"
    )


def _billed(wire: Wire, turn: ModelTurn, sender: RequestSender) -> Billed:
    return Billed(
        sequence=turn.sequence,
        api=wire.api,
        id=wire.message_id(turn),
        model=turn.model,
        usage=turn.usage,
        raw=wire.raw(turn),
        thread=sender.thread,
        agent_id=sender.agent_id,
        session_id=sender.session_id,
    )
