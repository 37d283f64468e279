"""The Claude Agent SDK: a client whose messages are observed."""

from collections.abc import AsyncIterator

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, Transport

from brimline.observe import Tracker


class BrimlineClient(ClaudeSDKClient):
    """Observes every message that it receives: calls, subagents, compactions, clears.

    A client needs a tracker of its own; a client that is connected later may continue with it.
    """

    def __init__(
        self,
        tracker: Tracker,
        options: ClaudeAgentOptions | None = None,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(options, transport)
        self._tracker = tracker

    def receive_messages(self) -> AsyncIterator[Message]:
        """Receive all messages; `receive_response` reads from here, too."""
        return self._tracker.track(super().receive_messages())
