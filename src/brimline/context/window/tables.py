"""Tables of clients and models, from `data/`, and which of their rows applies.

`make catalogue` takes the model registries of the pinned clients into data/registries: windows by
provider and model, as a client ships them. Each is compressed: most commands need none of them.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec

DATE_SUFFIX = re.compile(r"([-@]\d{8}|-\d{4}-\d{2}-\d{2}|[-@]latest|@default)$")
LONG_CONTEXT_SUFFIX = "[1m]"  # marks a long window, behind a model's id

# Bedrock writes a region and the maker before an id, and a revision behind it:
# `us.anthropic.claude-sonnet-4-5-20250929-v1:0`. OpenRouter adds a variant: `qwen3-coder:free`.
BEDROCK_PREFIX = re.compile(r"^(?:[a-z]{2,6}(?:-gov)?\.)?[a-z0-9]+\.(?=[a-z])")
REVISION_SUFFIX = re.compile(r"(?:-v\d+)?(?::[a-z0-9]+)*$")
# A variant, or the tag of a local model (`gpt-oss:20b`), may have another window.
VARIANT_SUFFIX = re.compile(r":(?!\d+(?::\d+k)?$)")

DATA = Path(__file__).parents[2] / "data"


class Price(msgspec.Struct, frozen=True, array_like=True):
    """USD per million tokens, since a day, for calls whose prompt is above a size.

    `cache_read` is None if the catalogue has no price of cached tokens. `service_tier` is None for
    the standard one.
    """

    since: str
    above: int
    input: float
    cache_read: float | None
    cache_write: float
    output: float
    cache_write_1h: float
    service_tier: str | None = None

    @property
    def cached(self) -> float:
        """The price of a cached token: that of input if no other is known."""
        return self.input if self.cache_read is None else self.cache_read


class Model(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of the catalogue: total window, cap on the prompt, longest reply, prices.

    `origin` is set if the row is not from the catalogue's source. `provider` is the model's maker,
    who serves it with this window.
    """

    window: int | None = None
    input_cap: int | None = None
    max_output: int | None = None
    origin: str | None = None
    prices: tuple[Price, ...] = ()
    provider: str | None = None


class Catalogue(msgspec.Struct, frozen=True):
    """Models by exact id and by prefix, written by `make catalogue`."""

    made_from: str
    exact: dict[str, Model]
    prefix: dict[str, Model]


class ClientWindow(msgspec.Struct, frozen=True):
    """The window that a client gives to a model.

    `provider` limits it to one of the client's providers. `foreign_to` limits it to ids that begin
    otherwise or are not in the catalogue: the client knows none of them and assumes this window.
    `remedy` is the variable to set to the window of a model that has less; it takes no less than
    `remedy_from`.
    """

    agent: str
    model: str
    window: int
    seen: str
    date: str
    how: str
    foreign_to: str | None = None
    remedy: str | None = None
    remedy_from: int = 0
    provider: str | None = None
    since: str | None = None
    until: str | None = None


class ClientLimit(msgspec.Struct, frozen=True):
    """Where a client compacts: fraction x base - margin - min(longest reply, output_cap).

    The base is the window, or the cap on the prompt if `of` is `input`. The client keeps at least
    `reserve` free, if the base is larger than that.
    `granted` is the part of the raw window that the client reports as the window.
    """

    agent: str
    model: str
    seen: str
    date: str
    how: str
    fraction: float = 1.0
    granted: float = 1.0
    margin: int = 0
    output_cap: int = 0
    reserve: int = 0
    enforced: bool = True
    of: Literal["window", "input"] = "window"
    provider: str | None = None
    since: str | None = None
    until: str | None = None

    def tokens(self, window: int, max_output: int | None) -> int:
        """The limit in a window of this size; a longest reply that is unknown counts as the cap."""
        reply = self.output_cap if max_output is None else min(max_output, self.output_cap)
        limit = round(self.fraction * window / self.granted) - self.margin - reply
        return self.keep_reserve(limit, window)

    def keep_reserve(self, limit: int, window: int) -> int:
        """The limit, or what the reserve leaves of the window if that is less."""
        return min(limit, window - self.reserve) if 0 < self.reserve < window else limit


# The parts of what a client compares with its limit.
ComparedPart: TypeAlias = Literal["sent", "held", "pending", "earlier reasoning"]


class ClientDisplay(msgspec.Struct, frozen=True):
    """How a client computes the percentage that it shows itself.

    It takes `reserved_tokens` off the window first.
    """

    shows: Literal["left", "used"]
    reserved_tokens: int


class Clients(msgspec.Struct, frozen=True):
    """What is known of the clients. `models_dev`: the one whose registry is that of models.dev.

    `compares`: the parts whose sum a client compares with its limit; `held` if it is not there.
    """

    about: str
    models_dev: str
    sizes: dict[str, tuple[int, ...]]
    compares: dict[str, tuple[ComparedPart, ...]]
    displays: dict[str, ClientDisplay]
    windows: tuple[ClientWindow, ...]
    limits: tuple[ClientLimit, ...]


@cache
def catalogue() -> Catalogue:
    return msgspec.json.decode(_read_data("catalogue.json"), type=Catalogue)


@cache
def clients() -> Clients:
    return msgspec.json.decode(_read_data("clients.json"), type=Clients)


def _read_data(name: str) -> bytes:
    return DATA.joinpath(name).read_bytes()


@cache
def normalize_model(model: str) -> str:
    """A model's id as its maker writes it.

    Without the path, ARN or region of a provider, its revision, and the mark of a long window; in
    lower case, and Claude's versions with hyphens.
    """
    name = _without_path(model)
    if ":" in name or BEDROCK_PREFIX.match(name):
        name = REVISION_SUFFIX.sub("", BEDROCK_PREFIX.sub("", name))
    return name.replace(".", "-") if name.startswith("claude-") else name


def _without_path(model: str) -> str:
    return model.lower().removesuffix(LONG_CONTEXT_SUFFIX).rpartition("/")[2]


@cache
def model_aliases(model: str) -> tuple[str, ...]:
    """The names that settings may use for a model: its id, normalized, and without its date."""
    name = normalize_model(model)
    return tuple(dict.fromkeys((model, name, DATE_SUFFIX.sub("", name))))


def short_model(model: str | None) -> str:
    """The name of a model on every surface: `sonnet-4-5[1m]`, `gpt-5.3-codex`, `unknown`."""
    if model is None:
        return "unknown"
    mark = LONG_CONTEXT_SUFFIX if model.lower().endswith(LONG_CONTEXT_SUFFIX) else ""
    return model_aliases(model)[-1].removeprefix("claude-") + mark


def is_same_model(first: str | None, second: str | None) -> bool:
    """Whether two ids name one model: in other forms, or one with its date; None fits every id."""
    if first is None or second is None:
        return True
    return model_aliases(first)[-1] == model_aliases(second)[-1]


@cache
def requested_id(requested: str, model: str | None) -> str | None:
    """The requested id of a model, if it says more than the reply's id: `[1m]`, a provider."""
    if model is None or requested in model_aliases(model):
        return None
    return requested if is_same_model(requested, model) else None


@cache
def find_model(model: str, provider: str | None = None) -> Model | None:
    """The catalogue's row of a model, by its id in any form; never that of a similar name.

    The catalogue has what a model's maker serves: no other provider has a row.
    """
    table = catalogue()
    rows = (table.exact.get(name) or table.prefix.get(name) for name in listed_names(model))
    row = next((row for row in rows if row), None)
    return row if row is None or provider in (None, row.provider) else None


def listed_names(model: str) -> tuple[str, ...]:
    """The names under which a table may list a model; a variant has no other name."""
    name = _without_path(model)
    if VARIANT_SUFFIX.search(name):
        return (name,)
    names = (name, normalize_model(model))
    return (*names, *(DATE_SUFFIX.sub("", each) for each in names))


@cache
def find_priced_model(model: str) -> Model | None:
    """The row whose prices count: the exact id, the id without its date, the longest prefix.

    The prefixes are those by which genai-prices finds a price.
    """
    table = catalogue()
    names = (_without_path(model), normalize_model(model))
    for name in (*names, *(DATE_SUFFIX.sub("", name) for name in names)):
        if name in table.exact:
            return table.exact[name]
    for name in names:
        if fitting := [prefix for prefix in table.prefix if name.startswith(prefix)]:
            return table.prefix[max(fitting, key=len)]
    return None


REGISTRIES = DATA / "registries"


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
    return frozenset(path.name.partition(".")[0] for path in REGISTRIES.iterdir())


@cache
def _read_shipped(agent: str) -> Registry:
    data = REGISTRIES.joinpath(f"{agent}.json.z").read_bytes()
    return msgspec.json.decode(zlib.decompress(data), type=Registry)


RowT = TypeVar("RowT", ClientWindow, ClientLimit)


@cache
def find_window_row(
    agent: str | None, provider: str | None, model: str | None, version: str | None
) -> ClientWindow | None:
    """The row of a client's windows for this version that matches the model best."""
    rows = (row for row in clients().windows if _is_foreign(model, row.foreign_to))
    return _best_row(rows, agent, provider, model, version)


def _is_foreign(model: str | None, family: str | None) -> bool:
    """Whether a client that knows a family of models does not know this one."""
    if family is None:
        return True
    if model is None:
        return False
    return find_model(model) is None or not normalize_model(model).startswith(family)


@cache
def find_limit_row(
    agent: str | None,
    provider: str | None,
    model: str | None,
    version: str | None,
    has_input_limit: bool,
    enforced_only: bool,
) -> ClientLimit | None:
    """The row of a client's limits for this version that matches the model best."""
    rows = (
        row
        for row in clients().limits
        if (has_input_limit or row.of == "window") and (row.enforced or not enforced_only)
    )
    capped_first = sorted(rows, key=lambda row: row.of != "input")
    return _best_row(capped_first, agent, provider, model, version)


def _best_row(
    rows: Iterable[RowT],
    agent: str | None,
    provider: str | None,
    model: str | None,
    version: str | None,
) -> RowT | None:
    """The row that matches the model best; those of the provider go before all others."""
    applicable = [
        row
        for row in rows
        if row.agent == agent and row.provider in (None, provider) and _applies_to(row, version)
    ]
    matching = [row for row in applicable if _match_score(row.model, model) >= 0]
    return max(
        matching,
        key=lambda row: (row.provider is not None, _match_score(row.model, model)),
        default=None,
    )


def _applies_to(row: ClientWindow | ClientLimit, version: str | None) -> bool:
    """Whether a row applies to a version; an unknown version counts as the newest."""
    if version is None:
        return row.until is None
    parts = _parse_version(version)
    since = row.since is None or _parse_version(row.since) <= parts
    return since and (row.until is None or parts < _parse_version(row.until))


def _match_score(pattern: str, model: str | None) -> int:
    """How well a pattern matches a model: an exact id best, then the longest prefix; -1 if not."""
    if pattern == "*":
        return 0
    if model is None:
        return -1
    if pattern == f"*{LONG_CONTEXT_SUFFIX}":
        return 1_000 if model.endswith(LONG_CONTEXT_SUFFIX) else -1
    if not pattern.endswith("*"):
        name = normalize_model(model)
        return 500 if pattern in (name, DATE_SUFFIX.sub("", name)) else -1
    return len(pattern) if normalize_model(model).startswith(pattern[:-1]) else -1


@cache
def _parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("-")[0]))
