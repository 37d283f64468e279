"""The Claude Agent SDK: a client whose messages are observed."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any
from weakref import WeakValueDictionary

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, Transport

from brimline.integrations.answer_observer import LOGGER
from brimline.sdk import Tracker


class BrimlineClient(ClaudeSDKClient):
    """Observes every message that it receives: calls, subagents, compactions, clears.

    async with BrimlineClient(tracker, options) as client: ...

    A tracker serves one connected client at a time: a second one is not observed.
    """

    def __init__(
        self,
        tracker: Tracker,
        options: ClaudeAgentOptions | None = None,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(options, transport)
        self._tracker = tracker

    async def connect(self, prompt: str | AsyncIterable[dict[str, Any]] | None = None) -> None:
        """Connect; a tracker that another connected client uses is left to that one."""
        if _connected.setdefault(id(self._tracker), self) is not self:
            LOGGER.warning(
                "a second client is connected with the same tracker, and is not measured: "
                "give each client a tracker"
            )
        await super().connect(prompt)

    async def disconnect(self) -> None:
        """Disconnect; another client may then use the tracker."""
        if self._is_observed():
            del _connected[id(self._tracker)]
        await super().disconnect()

    def receive_messages(self) -> AsyncIterator[Message]:
        """Receive all messages; `receive_response` reads from here, too."""
        messages = super().receive_messages()
        return self._tracker.track(messages) if self._is_observed() else messages

    def _is_observed(self) -> bool:
        return _connected.get(id(self._tracker)) is self


# By the id of the tracker, which lives as long as its client.
_connected = WeakValueDictionary[int, BrimlineClient]()
