"""A session of the Claude Agent SDK, one line a message: `python -m real_sdks.agent_program`.

The SDK gives its whole environment to Claude Code, so it runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import msgspec
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, query
from claude_agent_sdk.types import StreamEvent

from .connect import CLAUDE
from .steps import Reporter


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the session is to be; without prompts it is one `query`."""

    cli: str
    prompts: tuple[str, ...] = ()
    partial: bool = False
    results: int = 1
    """How many results end a turn: one more where a subagent in the background reports back."""
    arguments: dict[str, str | None] = {}
    levels: tuple[float, ...] = (50, 65)
    interrupt: bool = False
    """Whether the turn is interrupted at its first event of the model."""
    sessions: int = 1
    """How many sessions run at once, each with a tracker."""


async def main(wish: Wish) -> None:
    """Report every message of the sessions."""
    await asyncio.gather(*(_report(wish) for _ in range(wish.sessions)))


async def _report(wish: Wish) -> None:
    reporter = Reporter(wish.levels)
    async for _ in reporter.follow(_messages(wish)):
        pass


async def _messages(wish: Wish) -> AsyncIterator[object]:
    options = ClaudeAgentOptions(
        model=CLAUDE,
        allowed_tools=["Bash", "Read", "Agent"],
        include_partial_messages=wish.partial,
        cli_path=wish.cli,
        extra_args=wish.arguments,
    )
    if not wish.prompts:
        async for message in query(prompt="Go.", options=options):
            yield message
        return
    async with ClaudeSDKClient(options=options) as client:
        for prompt in wish.prompts:
            await client.query(prompt)
            async for message in _turn(client, wish.results):
                yield message
                if wish.interrupt and isinstance(message, StreamEvent):
                    await client.interrupt()
                    wish = msgspec.structs.replace(wish, interrupt=False)


async def _turn(client: ClaudeSDKClient, results: int) -> AsyncIterator[object]:
    async for message in client.receive_messages():
        yield message
        results -= isinstance(message, ResultMessage)
        if not results:
            return


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Wish)))
