"""The shipped suite, for every store there is."""

import asyncio
import itertools
from pathlib import Path

import pytest

from brimline.store.base import Store
from brimline.store.memory import MemoryStore
from brimline.store.sqlite import SqliteStore
from brimline.testing.store import CHECKS, PAIR_CHECKS, Check, Make, PairCheck


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """What makes a new, empty store."""
    names = itertools.count()

    async def memory() -> Store:
        return MemoryStore()

    async def sqlite() -> Store:
        return await SqliteStore.open(tmp_path / f"{next(names)}.db")

    return {"memory": memory, "sqlite": sqlite}[request.param]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_store(check: Check, make: Make) -> None:
    """Every store passes every check of the suite."""
    asyncio.run(_checked(check, make))


async def _checked(check: Check, make: Make) -> None:
    await check(make)


@pytest.mark.parametrize("check", PAIR_CHECKS, ids=lambda check: check.__name__)
def test_two_stores_on_one_file(check: PairCheck, tmp_path: Path) -> None:
    """Two SQLite stores on one file pass every check for pairs."""

    async def pair() -> tuple[Store, Store]:
        path = tmp_path / "brimline.db"
        return await SqliteStore.open(path), await SqliteStore.open(path)

    async def checked() -> None:
        await check(pair)

    asyncio.run(checked())


def test_every_check_names_its_property() -> None:
    """Each check of the suite says in a docstring what holds."""
    assert all(check.__doc__ for check in (*CHECKS, *PAIR_CHECKS))
    assert len({check.__name__ for check in CHECKS}) == len(CHECKS)
