"""The shipped conformance suite, for every store."""

import asyncio
import itertools
from pathlib import Path

import pytest

from brimline.store.base import Store
from brimline.store.memory import MemoryStore
from brimline.store.metered import MeteredStore
from brimline.store.sqlite import SqliteStore
from brimline.testing.store import CHECKS, PAIR_CHECKS, Check, Make, PairCheck


@pytest.fixture(params=["memory", "metered", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """A function that makes a new, empty store."""
    names = itertools.count()

    async def memory() -> Store:
        return MemoryStore()

    async def metered() -> Store:
        return MeteredStore(MemoryStore())

    async def sqlite() -> Store:
        return await SqliteStore.open(tmp_path / f"{next(names)}.db")

    return {"memory": memory, "metered": metered, "sqlite": sqlite}[request.param]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_store_passes_the_conformance_check(check: Check, make: Make) -> None:
    asyncio.run(_checked(check, make))


async def _checked(check: Check, make: Make) -> None:
    await check(make)


@pytest.mark.parametrize("check", PAIR_CHECKS, ids=lambda check: check.__name__)
def test_two_stores_on_one_file_pass_the_conformance_check(
    check: PairCheck, tmp_path: Path
) -> None:
    async def pair() -> tuple[Store, Store]:
        path = tmp_path / "brimline.db"
        return await SqliteStore.open(path), await SqliteStore.open(path)

    async def checked() -> None:
        await check(pair)

    asyncio.run(checked())


def test_every_conformance_check_has_a_docstring() -> None:
    assert all(check.__doc__ for check in (*CHECKS, *PAIR_CHECKS))
    assert len({check.__name__ for check in CHECKS}) == len(CHECKS)
