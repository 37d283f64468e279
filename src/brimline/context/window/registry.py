"""The model registries of clients: windows by provider and model, as a client ships them.

`make catalogue` takes them from the pinned clients into data/registries, each compressed: most
commands need none of them.
"""

import zlib
from collections.abc import Iterator, Mapping
from functools import cache

import msgspec

from brimline.context.window.tables import DATA, DATE_SUFFIX, listed_names

FOLDER = DATA / "registries"


class RegistryModel(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of a registry: total window, longest reply, cap on the prompt."""

    window: int
    max_output: int | None = None
    input_cap: int | None = None


class Registry(msgspec.Struct, frozen=True):
    """The rows of one client, by provider and id; a client without providers has one, `""`.

    `made_at` is when the client's own source made them, in seconds; None if it does not say.
    """

    made_from: str
    models: Mapping[str, Mapping[str, RegistryModel]]
    made_at: float | None = None

    def ids(self) -> Iterator[tuple[str, str]]:
        """Yield the provider and the id of every model."""
        for provider, rows in self.models.items():
            yield from ((provider, id) for id in rows)

    def find(self, provider: str | None, model: str) -> RegistryModel | None:
        """The row of a model: by its id, else without its date; None if there is none.

        If the provider is not known, all that have the model must agree on its window.
        """
        if provider is not None:
            rows = self.models.get(provider, {})
            return rows.get(model) or rows.get(DATE_SUFFIX.sub("", model))
        for name in (model, *listed_names(model)):
            if sizes := {rows[name].window for rows in self.models.values() if name in rows}:
                return RegistryModel(*sizes) if len(sizes) == 1 else None
        return None


def shipped_registry(agent: str | None) -> Registry | None:
    """The registry of an agent's pinned client; None if it has none."""
    return _read_shipped(agent) if agent and agent in _shipped_agents() else None


@cache
def _shipped_agents() -> frozenset[str]:
    return frozenset(path.name.partition(".")[0] for path in FOLDER.iterdir())


@cache
def _read_shipped(agent: str) -> Registry:
    data = FOLDER.joinpath(f"{agent}.json.z").read_bytes()
    return msgspec.json.decode(zlib.decompress(data), type=Registry)
