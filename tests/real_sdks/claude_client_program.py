"""Clients of the Claude Agent SDK, one line each: `python -m real_sdks.claude_client_program`.

The SDK gives its whole environment to Claude Code, so it runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import logging
import sys

import msgspec
from claude_agent_sdk import ClaudeAgentOptions, StreamEvent

from brimline import Tracker
from brimline.integrations.claude_agent_sdk import BrimlineClient

from .connect import CLAUDE
from .integration_cases import Case, LoggedTexts, print_case, read


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Which clients there are, by their prompts."""

    cli: str
    prompts: tuple[str, ...] = ("Go.",)
    shared: bool = False
    """Whether they share one tracker, which they must not."""
    left: bool = False
    """Whether their messages are left after the first event of a stream."""


async def converse(wish: Wish, prompt: str, tracker: Tracker) -> Case:
    """One turn of a client."""
    options = ClaudeAgentOptions(
        model=CLAUDE, allowed_tools=["Bash"], include_partial_messages=True, cli_path=wish.cli
    )
    async with BrimlineClient(tracker, options) as client:
        await client.query(prompt)
        async for message in client.receive_response():
            if wish.left and isinstance(message, StreamEvent):
                await client.interrupt()
                break
    return read(prompt, tracker, {})


async def main(wish: Wish) -> None:
    """Let all clients converse at once."""
    logged = LoggedTexts()
    logging.getLogger("brimline").addHandler(logged)
    shared = Tracker()
    trackers = [shared if wish.shared else Tracker() for _ in wish.prompts]
    conversations = map(converse, [wish] * len(trackers), wish.prompts, trackers)
    for case in await asyncio.gather(*conversations):
        print_case(msgspec.structs.replace(case, warnings=logged.texts))


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Wish)))
