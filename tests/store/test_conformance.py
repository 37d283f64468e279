"""The shipped conformance suite, for every store."""

import asyncio
import itertools
from pathlib import Path

import pytest

from brimline.store.base import Store
from brimline.store.metered import MeteredStore
from brimline.store.postgres import open_postgres
from brimline.store.sqlite import MemoryStore, SqliteStore
from brimline.testing.store import CHECKS, PAIR_CHECKS, Check, Make, MakePair, PairCheck

NAMES = itertools.count(1)


@pytest.fixture(params=["memory", "metered", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """A function that makes a new, empty store."""

    async def memory() -> Store:
        return MemoryStore()

    async def metered() -> Store:
        return MeteredStore(MemoryStore())

    async def sqlite() -> Store:
        return await SqliteStore.open(tmp_path / f"{next(NAMES)}.db")

    async def postgres() -> Store:
        return await open_postgres(database, f"organisation {next(NAMES)}")

    database = request.getfixturevalue("shared_database") if request.param == "postgres" else ""
    return {"memory": memory, "metered": metered, "sqlite": sqlite, "postgres": postgres}[
        request.param
    ]


@pytest.fixture(params=["sqlite", "postgres"])
def make_pair(request: pytest.FixtureRequest, tmp_path: Path) -> MakePair:
    """A function that makes two stores on the same, empty file or database."""

    async def sqlite() -> tuple[Store, Store]:
        path = tmp_path / "brimline.db"
        return await SqliteStore.open(path), await SqliteStore.open(path)

    async def postgres() -> tuple[Store, Store]:
        name = f"organisation {next(NAMES)}"
        return await open_postgres(database, name), await open_postgres(database, name)

    database = request.getfixturevalue("shared_database") if request.param == "postgres" else ""
    return {"sqlite": sqlite, "postgres": postgres}[request.param]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_store_passes_the_conformance_check(check: Check, make: Make) -> None:
    asyncio.run(_checked(check, make))


async def _checked(check: Check, make: Make) -> None:
    await check(make)


@pytest.mark.parametrize("check", PAIR_CHECKS, ids=lambda check: check.__name__)
async def test_two_stores_on_one_database_pass_the_conformance_check(
    check: PairCheck, make_pair: MakePair
) -> None:
    await check(make_pair)


def test_every_conformance_check_has_a_docstring() -> None:
    assert all(check.__doc__ for check in (*CHECKS, *PAIR_CHECKS))
    assert len({check.__name__ for check in CHECKS}) == len(CHECKS)
