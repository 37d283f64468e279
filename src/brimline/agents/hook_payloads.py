"""The JSON that clients give their hooks and status lines: the parts that we read."""

from contextlib import suppress
from typing import Annotated, TypeAlias

import msgspec

from brimline.agents.transcripts.source import MALFORMED
from brimline.context.client_report import Dollars, PromptCache, Quotas
from brimline.context.usage import Usage
from brimline.files.foreign_json import JsonDecoder

MAX_TOKENS = 10**8  # more tokens than any window holds; an epoch time is far more

Id: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
TokenCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MAX_TOKENS)]
WindowSize: TypeAlias = Annotated[int, msgspec.Meta(gt=0, lt=MAX_TOKENS)]
Percentage: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]


NO_VALUE = msgspec.Raw()


class HookInput(msgspec.Struct, frozen=True):
    """What a client writes on a hook's standard input.

    `agent_id` is set inside a subagent of Claude Code and Codex. `source` is why a session starts,
    `trigger` who compacts. Of `prompt` and `tool_response` only the size is used.
    """

    session_id: Id
    hook_event_name: str
    transcript_path: str | None = None
    cwd: str | None = None
    model: str | None = None
    source: str | None = None
    trigger: str | None = None
    reason: str | None = None
    agent_id: str | None = None
    agent_transcript_path: str | None = None
    stop_hook_active: bool = False
    prompt: msgspec.Raw = NO_VALUE
    tool_response: msgspec.Raw = NO_VALUE


class _TextBlock(msgspec.Struct, frozen=True):
    text: str = ""


_content = JsonDecoder(str | tuple[_TextBlock, ...])


def text_size(content: msgspec.Raw) -> int:
    """Return the UTF-8 bytes of a JSON text, or of the texts in blocks; 0 if it is neither."""
    with suppress(*MALFORMED):
        decoded = _content.decode(content)
        texts = (decoded,) if isinstance(decoded, str) else (block.text for block in decoded)
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return 0


class StatusModel(msgspec.Struct, frozen=True):
    """The model in a status line's input."""

    id: str | None = None
    display_name: str | None = None


class CurrentUsage(msgspec.Struct, frozen=True):
    """The usage of the last call of the main thread; all 0 after a compaction."""

    input_tokens: TokenCount
    cache_creation_input_tokens: TokenCount
    cache_read_input_tokens: TokenCount
    output_tokens: TokenCount = 0

    @property
    def usage(self) -> Usage:
        return Usage(
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
            self.output_tokens,
        )


class ContextWindow(msgspec.Struct, frozen=True):
    """The context in a status line's input; its percentage is only checked, never shown."""

    context_window_size: WindowSize | None = None
    current_usage: CurrentUsage | None = None
    used_percentage: Percentage | None = None
    total_input_tokens: float | None = None
    total_output_tokens: float | None = None


class Cost(msgspec.Struct, frozen=True):
    """The cost of a session so far, as the client computes it."""

    total_cost_usd: Dollars | None = None


class Workspace(msgspec.Struct, frozen=True):
    """The folder in which the session began."""

    project_dir: str | None = None


class StatusInput(msgspec.Struct, frozen=True):
    """What Claude Code writes on a status line's standard input."""

    session_id: Id
    transcript_path: str | None = None
    cwd: str | None = None
    version: str | None = None
    model: StatusModel = StatusModel()
    context_window: ContextWindow = ContextWindow()
    cost: Cost = Cost()
    workspace: Workspace = Workspace()
    rate_limits: Quotas = Quotas()
    prompt_cache: PromptCache = PromptCache()


class StatusLineReport(msgspec.Struct, frozen=True):
    """A status line's input without invalid values; `wrong` describes the worst of them.

    `project` is where the session began: its agent may work in another folder by now. `called`:
    the session has made a call, even if its usage is unknown.
    """

    input: StatusInput
    wrong: str | None = None
    project: str | None = None
    called: bool = False


class EventOutput(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a hook's answer that is for its event."""

    hook_event_name: str
    additional_context: str


class HookOutput(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a hook answers on its standard output."""

    decision: str | None = None
    reason: str | None = None
    hook_specific_output: EventOutput | None = None
