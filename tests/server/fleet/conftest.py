"""One PostgreSQL database and one event loop for the tests of a module."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from brimline.server.fleet.server import FleetApp, ListenAddress
from brimline.settings import Settings
from brimline.store.postgres.database import PostgresDatabase
from fleet_server import FleetReply, add_token, ask

ResultT = TypeVar("ResultT")

OWN_PAGE = {"sec-fetch-site": "same-origin"}  # what a browser sends from a page of the server


class Fleet:
    """A server's application; `run` runs a coroutine in the loop of its connections."""

    def __init__(self, url: str, runner: asyncio.Runner) -> None:
        self.url, self._runner = url, runner
        self.database = self.run(PostgresDatabase.open(url))
        self.app = self.create_app(Settings())

    def create_app(
        self, settings: Settings, is_behind_proxy: bool = True, is_stopping: bool = True
    ) -> FleetApp:
        """Return an application; by default it is stopping, so that its streams end."""
        address = ListenAddress("127.0.0.1", 443, is_behind_proxy=is_behind_proxy)
        return FleetApp(self.database, settings, address, lambda: is_stopping)

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return self._runner.run(work)

    def ask(
        self, method: str, path: str, token: str | None = None, body: object = None, **more: Any
    ) -> FleetReply:
        return self.run(ask(more.pop("app", self.app), method, path, token, body, **more))

    def token(self, organisation: str = "default", *scopes: Any, **more: Any) -> str:
        return self.run(add_token(self.database, organisation, *scopes, **more))

    def close(self) -> None:
        self.run(self.app.organisations.close())
        self.run(self.database.close())


@pytest.fixture(scope="module")
def database_url(postgres: str) -> Iterator[str]:
    """The URL of an empty database."""
    from postgres_server import new_schema

    with new_schema(postgres) as url:
        yield url


@pytest.fixture(scope="module")
def fleet(database_url: str) -> Iterator[Fleet]:
    with asyncio.Runner() as runner:
        fleet = Fleet(database_url, runner)
        yield fleet
        fleet.close()
