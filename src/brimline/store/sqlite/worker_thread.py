"""A thread that what is to be done is handed to, and that answers in the event loop."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeAlias, TypeVar

AskT = TypeVar("AskT")
AnswerT = TypeVar("AnswerT")
Job: TypeAlias = tuple[AskT, asyncio.Future[AnswerT]]


class Desk(Generic[AskT, AnswerT]):
    """Takes up to `most` of what waits at a time, in order, and has it answered in its own thread.

    `answer` gives an answer or an exception for each; `end` is called last, in that thread too.
    """

    def __init__(
        self,
        name: str,
        answer: Callable[[Sequence[AskT]], Sequence[AnswerT | Exception]],
        end: Callable[[], None],
        most: int = 1,
    ) -> None:
        self._answer, self._end, self._most = answer, end, most
        self._waiting: queue.SimpleQueue[Job[AskT, AnswerT] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def ask(self, ask: AskT) -> AnswerT:
        """The answer; what was handed in is done also where nobody waits for it any more."""
        future: asyncio.Future[AnswerT] = self._loop.create_future()
        self._waiting.put((ask, future))
        return await future

    async def close(self) -> None:
        """Finish what waits, then end; nothing may be asked any more."""
        self._waiting.put(None)
        await self._ended
        self._thread.join()

    def _work(self) -> None:
        while jobs := self._take():
            self._tell(self._settle, jobs, self._outcomes([ask for ask, _ in jobs]))
        self._end()
        self._tell(self._ended.set_result, None)

    def _take(self) -> list[Job[AskT, AnswerT]]:
        """Wait for one, and take what waits beside it; none when there will be no more."""
        jobs: list[Job[AskT, AnswerT]] = []
        while len(jobs) < self._most:
            try:
                job = self._waiting.get(block=not jobs)
            except queue.Empty:
                break
            if job is None:
                if jobs:
                    self._waiting.put(None)
                break
            jobs.append(job)
        return jobs

    def _outcomes(self, asks: Sequence[AskT]) -> Sequence[AnswerT | Exception]:
        try:
            return self._answer(asks)
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            return [error] * len(asks)

    def _tell(self, call: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(call, *arguments)

    def _settle(
        self, jobs: Sequence[Job[AskT, AnswerT]], outcomes: Sequence[AnswerT | Exception]
    ) -> None:
        for (_, future), outcome in zip(jobs, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
