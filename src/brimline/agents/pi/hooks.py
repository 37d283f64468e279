"""Pi's hooks, which are our own extension's (extension.js).

The end of a compaction is answered: the extension puts the document before the next request.
"""

import msgspec

from brimline.agents.extension_hooks import decode_extension_input, reported_window
from brimline.agents.hook_adapter import EVENTS, STARTS, HookRequest, StandardHooks
from brimline.observations import Observation, Reply

STANDARD_HOOKS = StandardHooks(EVENTS, {**STARTS, "new": "cleared"}, unanswerable=frozenset())


class PiHooks:
    """Pi's hooks."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        """What a hook tells, and the window that Pi goes by."""
        hook_input = decode_extension_input(request)
        observation = STANDARD_HOOKS.observe_main(request, hook_input, at, late)
        return observation and msgspec.structs.replace(
            observation, events=reported_window(hook_input)
        )

    def may_read_files(self, request: HookRequest) -> bool:
        return False

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """A reply: the end of a turn goes on, the others add to what is read."""
        return STANDARD_HOOKS.encode_reply(request, reply)


HOOKS = PiHooks()
