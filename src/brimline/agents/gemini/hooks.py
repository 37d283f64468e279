"""Gemini CLI's hooks: names of its own, and the usage of every call.

PreCompress fires before every call and tells nothing: a compression is in the chat's file alone.
A subagent's hooks look like those of the session that it works for.
"""

import os

import msgspec

from brimline.agents.hook_adapter import HookRequest, StandardHooks
from brimline.agents.hook_payloads import GeminiInput, ModelResponse
from brimline.observations import Observation, Reply
from brimline.providers.gemini import generate_usage
from brimline.usage import Usage

_hook = msgspec.json.Decoder(GeminiInput)

STANDARD_HOOKS = StandardHooks(
    events={
        "BeforeAgent": "prompt",
        "AfterModel": "status",
        "AfterTool": "tool",
        "AfterAgent": "stopped",
        "SessionEnd": "ended",
    },
    starts={"clear": "cleared"},
)
# How the first message of a session begins; a subagent's is its task.
SESSION_OPENING = b'"<session_context>'

SUBAGENT_TOOL = "invoke_agent"  # the tool that runs a subagent


class GeminiHooks:
    """Gemini CLI's hooks."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        """What a hook tells; of a model's answer only its end, which has the usage."""
        hook_input = _hook.decode(request.body)
        if hook_input.hook_event_name == "AfterModel":
            return _observe_model_reply(request, hook_input, at, late)
        if hook_input.hook_event_name == "AfterTool" and _is_in_subagent(hook_input):
            return None
        return STANDARD_HOOKS.observe_main(request, hook_input, at, late)

    def may_read_files(self, request: HookRequest) -> bool:
        return True  # of the chats of subagents

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """A reply: AfterAgent goes on, BeforeAgent and AfterTool add to what is read."""
        return STANDARD_HOOKS.encode_reply(request, reply)


def _observe_model_reply(
    request: HookRequest, hook_input: GeminiInput, at: float, late: bool
) -> Observation | None:
    response, messages = hook_input.llm_response, hook_input.llm_request.messages
    if not (messages and bytes(messages[0].content).startswith(SESSION_OPENING)):
        return None
    usage = _usage(response) if any(one.finish_reason for one in response.candidates) else None
    observation = STANDARD_HOOKS.observe_main(request, hook_input, at, late)
    if usage is None or observation is None:
        return None
    model = hook_input.llm_request.model
    return msgspec.structs.replace(observation, usage=usage, model=model, usage_source="hook")


def _usage(response: ModelResponse) -> Usage | None:
    """The usage of a call. A hook is not told how much of it was cached, nor the thoughts; but
    those are in the total."""
    usage = generate_usage(response)
    total = (response.usage_metadata or {}).get("totalTokenCount")
    if usage is None or total is None or total <= usage.held:
        return usage
    return msgspec.structs.replace(usage, output=total - usage.sent)


def _is_in_subagent(hook_input: GeminiInput) -> bool:
    """Whether a subagent's chat was written after the session's own: then it runs the tool.

    Where that is wrong, what was to be said is said at the next tool.
    """
    if hook_input.transcript_path is None or hook_input.tool_name == SUBAGENT_TOOL:
        return False
    folder = os.path.join(os.path.dirname(hook_input.transcript_path), hook_input.session_id)
    try:
        own = os.stat(hook_input.transcript_path).st_mtime_ns
        with os.scandir(folder) as entries:
            return any(entry.stat().st_mtime_ns > own for entry in entries)
    except OSError:
        return False


HOOKS = GeminiHooks()
