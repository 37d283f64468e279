"""Helpers that use a store in a file."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from brimline.store.base import Store
from brimline.store.sqlite import SqliteStore

T = TypeVar("T")

CHECK_BUDGET_S = 60.0  # generous: a busy machine is slow, not wrong


def use_store(path: Path, use: Callable[[Store], Awaitable[T]]) -> T:
    """Run a coroutine function with the store in a file; returns its result."""

    async def used() -> T:
        store = await SqliteStore.open(path, CHECK_BUDGET_S)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(used())
