"""A program that reports to the daemon; it does what the lines of its standard input say."""

import asyncio
import json
import os
import sys
import threading
import time
import warnings

from brimline import DaemonSession, Tracker
from brimline.api.client import session

MODEL = "claude-sonnet-4-5"


class Program:
    """One agent; each method is a word of the input."""

    def __init__(self, agent: str, id: str) -> None:
        self.session = DaemonSession(agent, id=id or None, title=f"{agent} at work")
        self.tracker = Tracker(model=MODEL, report_to=self.session)
        self.calls = 0

    def call(self, tokens: str, thread: str = "main") -> object:
        """Observe an answer of the API; return how long that took."""
        self.calls += 1
        answer: dict[str, object] = {
            "id": f"msg_{os.getpid()}_{self.calls}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": int(tokens), "output_tokens": 5},
        }
        started = time.perf_counter()
        self.tracker.observe(answer, thread)
        self.tracker.observe(answer, thread)
        return time.perf_counter() - started

    def wait_for_daemon(self, seconds: str) -> object:
        """Wait longer for the daemon than programs do: a busy machine is slow."""
        session.MESSAGES_WAIT_S = session.CLOSE_WAIT_S = float(seconds)
        return None

    def compacted(self, thread: str = "main") -> object:
        self.tracker.compacted(thread)
        return self.tracker.reading.cycle

    def reset(self) -> object:
        self.tracker.reset()
        return self.tracker.reading.cycle

    def messages(self) -> object:
        return [message.text for message in self.session.messages()]

    def awaited_messages(self) -> object:
        async def wait() -> list[str]:
            return [message.text for message in await self.session.messages()]

        return asyncio.run(wait())

    def die_with_a_message(self) -> object:
        """Die while a message is processed."""
        next(self.session.messages())
        os._exit(1)

    def timed_messages(self) -> object:
        started = time.perf_counter()
        list(self.session.messages())
        return time.perf_counter() - started

    def fork(self, tokens: str) -> object:
        """Observe a call in a forked child, which then exits as any program."""
        self.call("1000", "before")  # still queued when it forks
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: a fork beside a thread
        if os.fork() == 0:
            self.call(tokens, "child")
            sys.exit(0)
        return os.wait()[1]

    def threads(self) -> object:
        return sorted(thread.name for thread in threading.enumerate())


def main() -> None:
    """Print the result of each line as JSON; end when the input ends."""
    program = Program(*sys.argv[1:])
    print(json.dumps(program.session.id), flush=True)
    for line in sys.stdin:
        word, *arguments = line.split()
        print(json.dumps(getattr(program, word)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
