"""The results of jobs that were carried out together, for those who wait for them."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TypeVar

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")


def set_results(
    batch: Iterable[tuple[JobT, asyncio.Future[ResultT]]], results: Sequence[ResultT | Exception]
) -> None:
    """Set the result or the error of each job, unless its caller was cancelled."""
    for (_, future), result in zip(batch, results, strict=True):
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
