"""Resolve the window and the limit of a thread: the order of their origins is here alone."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal, TypeAlias

import msgspec

from brimline.context.usage import format_tokens
from brimline.context.window.tables import (
    LONG_CONTEXT_SUFFIX,
    ClientLimit,
    ClientWindow,
    Model,
    Registry,
    RegistryModel,
    catalogue,
    clients,
    find_limit_row,
    find_model,
    find_window_row,
    model_aliases,
    normalize_model,
    shipped_registry,
)

WindowOrigin: TypeAlias = Literal["set", "reported", "client", "catalogue", "default", "observed"]
LimitOrigin: TypeAlias = Literal[
    "set", "reported", "configured", "learned", "known", "off", "not enforced"
]
UNENFORCED = ("off", "not enforced")  # the limits that are the window itself
REPORTED = "reported by the client"
EVIDENCE = "proved by other records of the session"
UNREACHABLE = "unreachable"  # how the warning about a limit that is too low begins
# This many automatic compactions in a row, this close to each other, go before a rule.
CONSISTENT_COMPACTIONS, CONSISTENT_WITHIN = 2, 0.05
LONG_WINDOW = 1_000_000  # of a model whose id has the suffix for a long context


class Window(msgspec.Struct, frozen=True):
    """The size of a context window, its origin, and the reason in words."""

    tokens: int
    origin: WindowOrigin
    why: str


class Limit(msgspec.Struct, frozen=True):
    """The point at which the client compacts, its origin, and the reason in words.

    `warning` says what speaks against it: it is unreachable, or compactions were seen elsewhere.
    """

    tokens: int
    origin: LimitOrigin
    why: str
    warning: str | None = None

    @property
    def is_enforced(self) -> bool:
        """Whether the client compacts there; otherwise it is the window."""
        return self.origin not in UNENFORCED

    @property
    def is_unreachable(self) -> bool:
        """Whether the context began above it."""
        return self.warning is not None and self.warning.startswith(UNREACHABLE)

    @property
    def explanation(self) -> str:
        """The reason, and the warning if there is one."""
        return f"{self.why}; {self.warning}" if self.warning else self.why


class ClientSettings(msgspec.Struct, frozen=True):
    """The client's own settings for windows and compaction; None if unset.

    The maps are by model, or by `provider/model`; a key that ends with `*` is a prefix, `*` is for
    every model. `registry` is the client's refreshed copy of its model registry.
    `part` is the fraction of the window, without the room for a reply, at which the client compacts
    at the latest. `input_reserve` is what it keeps free below a model's longest prompt.
    """

    auto_compact: bool | None = None
    auto_compact_windows: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    limit: int | None = None
    reserve: int | None = None
    fraction: float | None = None
    part: float | None = None
    windows: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    max_outputs: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    input_limits: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    input_reserve: int | None = None
    place: str = "the client's settings"
    registry: Registry | None = None


NO_CLIENT_SETTINGS = ClientSettings()


class Overrides(msgspec.Struct, frozen=True):
    """Brimline's own settings; keys are a model, an agent, `agent/model`, or `*`."""

    windows: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    limits: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    default_window: int | None = None


NO_OVERRIDES = Overrides()


class ResolveContext(msgspec.Struct, frozen=True):
    """What is known about a thread whose window and limit are resolved.

    `observed` is a window that other records of the client prove.
    `provider` is the client's name of who serves the model. `most_sent` is the most that the thread
    ever sent: a smaller window is then wrong.
    `compacted_at` is what it held when the client last compacted by itself, oldest first. Two calls
    in a row sent `sustained` or more since then, without a compaction. The first call of the cycle
    sent `first_sent`: the context holds no less. `max_output` and `input_limit` are the model's
    longest reply and its longest prompt as the client reported them; it reports a reply for each.
    """

    agent: str | None = None
    model: str | None = None
    version: str | None = None
    reported: int | None = None
    observed: int | None = None
    reported_limit: int | None = None
    most_sent: int = 0
    compacted_at: tuple[int, ...] = ()
    sustained: int = 0
    first_sent: int | None = None
    settings: ClientSettings = NO_CLIENT_SETTINGS
    provider: str | None = None
    max_output: int | None = None
    input_limit: int | None = None


def window_of(known: ResolveContext, overrides: Overrides = NO_OVERRIDES) -> Window | None:
    """The window: set by the user > reported > proved > the client's > the catalogue's > unknown.

    The client's is what its settings say, then its model registry, then what is known of it. What
    it assumes about a model that it does not know counts unless the catalogue knows less.

    If the thread sent more than that size, the next larger known size is taken and marked as
    observed; a size that the user set is kept, and the excess is shown.
    """
    if tokens := _override(overrides.windows, known):
        return Window(tokens, "set", "set in Brimline's settings")
    window = (
        _overestimated_window(known)
        or _reported_window(known)
        or _proved_window(known)
        or _client_window(known)
        or _catalogue_window(known)
        or _default_window(overrides)
    )
    if window and known.most_sent > window.tokens:
        return _observed_window(window, known)
    return window


def _reported_window(known: ResolveContext) -> Window | None:
    if known.reported is None or known.reported <= 0:
        return None
    return Window(known.reported, "reported", REPORTED)


def _proved_window(known: ResolveContext) -> Window | None:
    return Window(known.observed, "observed", EVIDENCE) if known.observed else None


def _overestimated_window(known: ResolveContext) -> Window | None:
    """The catalogue's window of a model for which the client assumes a larger one."""
    row, window = _assumed_row(known), _catalogue_window(known)
    if row is None or window is None or window.tokens >= row.window:
        return None
    return Window(window.tokens, window.origin, f"{window.why}; the client assumes {row.window:,}")


def _assumed_row(known: ResolveContext) -> ClientWindow | None:
    """The row by which the client assumes the window of a model that it does not know."""
    row = find_window_row(known.agent, known.provider, known.model, known.version)
    if row is None or row.foreign_to is None or known.reported not in (None, row.window):
        return None
    return None if _value_for_model(known.settings.windows, known) else row


def _client_window(known: ResolveContext) -> Window | None:
    tokens = _value_for_model(known.settings.windows, known)
    if tokens:
        return Window(tokens, "client", f"set in {known.settings.place}")
    for registry in _registries(known):
        if listed := registry.find(known.provider, known.model or ""):
            return Window(listed.window, "client", f"its model registry ({registry.made_from})")
    row = find_window_row(known.agent, known.provider, known.model, known.version)
    if not row:
        return None
    return Window(row.window, "client", f"{row.how} ({row.agent} {row.seen}, {row.date})")


def _registries(known: ResolveContext) -> Iterator[Registry]:
    """Yield the client's refreshed registry, then the one that it was shipped with."""
    if known.settings.registry:
        yield known.settings.registry
    if shipped := shipped_registry(known.agent):
        yield shipped


def _listed_model(known: ResolveContext) -> RegistryModel | Model | None:
    """The row of a model in the client's registry, else in the catalogue."""
    if known.model is None:
        return None
    listed = (registry.find(known.provider, known.model) for registry in _registries(known))
    return next((row for row in listed if row), None) or find_model(known.model, known.provider)


def _catalogue_window(known: ResolveContext) -> Window | None:
    """The window that the model's maker gives it, else the one of the provider."""
    if known.model is None:
        return None
    row = find_model(known.model, known.provider)
    if not row or not row.window:
        return _provider_window(known.provider, known.model)
    if known.model.lower().endswith(LONG_CONTEXT_SUFFIX) and row.window < LONG_WINDOW:
        return Window(LONG_WINDOW, "catalogue", f"the model's id ends with {LONG_CONTEXT_SUFFIX}")
    return Window(row.window, "catalogue", row.origin or catalogue().made_from)


def _provider_window(provider: str | None, model: str) -> Window | None:
    """The window by models.dev, whose names of providers other clients use, too."""
    registry = shipped_registry(clients().models_dev) if provider else None
    listed = registry.find(provider, model) if registry else None
    if registry is None or listed is None:
        return None
    return Window(listed.window, "catalogue", f"models.dev in {registry.made_from}")


def _default_window(overrides: Overrides) -> Window | None:
    if overrides.default_window is None:
        return None
    return Window(overrides.default_window, "default", "the default window of Brimline's settings")


def _observed_window(window: Window, known: ResolveContext) -> Window:
    row = find_model(known.model, known.provider) if known.model else None
    own = {row.window} if row and row.window else set[int]()
    sizes = own | {*clients().sizes.get(known.agent or "", () if own else _all_sizes())}
    larger = [size for size in sizes if size >= known.most_sent]
    reason = f"{window.why} says {window.tokens:,}, but {known.most_sent:,} were sent"
    if not larger:
        return Window(
            known.most_sent, "observed", f"{reason}: at least that, no larger size is known"
        )
    return Window(min(larger), "observed", f"{reason}: the next known size")


@cache
def _all_sizes() -> frozenset[int]:
    return frozenset(size for sizes in clients().sizes.values() for size in sizes)


def limit_of(
    known: ResolveContext, window: Window | None, overrides: Overrides = NO_OVERRIDES
) -> Limit | None:
    """The limit: set > reported > the client's settings > seen > the client's rule > unknown.

    Where the last automatic compactions agree, that goes before a rule. Calls beyond a limit
    without a compaction disprove it, unless it is set here. If compaction is off or not enforced,
    the limit is the window, with that origin.
    """
    limit = _resolve_limit(known, window, overrides)
    if limit is None or limit.tokens <= 0:
        return None
    if warning := _limit_warning(limit, known, window):
        return msgspec.structs.replace(limit, warning=warning)
    return limit


def _resolve_limit(
    known: ResolveContext, window: Window | None, overrides: Overrides
) -> Limit | None:
    if tokens := _override(overrides.limits, known):
        return Limit(tokens, "set", "set in Brimline's settings")
    if known.settings.auto_compact is False:
        why = f"auto-compaction is off, set in {known.settings.place}: the window"
        return Limit(window.tokens, "off", why) if window else None
    limits = _possible_limits(known, window)
    enforced = (limit for limit in limits if not _is_disproved(limit, known))
    if (limit := next(enforced, None)) or not limits or window is None:
        return limit
    why = f"calls above {limits[0].tokens:,} without a compaction, it may be off: the window"
    return Limit(window.tokens, "not enforced", why)


def _possible_limits(known: ResolveContext, window: Window | None) -> list[Limit]:
    """Return the limits that are tried in order, until one is not disproved.

    What was seen goes before a rule. Of what was seen and what the client says or its user set, the
    lower comes first: the settings may be newer than the compactions.
    """
    expected, rule = _expected_limit(known, window), _default_limit(known, window)
    first = [limit for limit in (_seen_limit(known, expected), expected) if limit]
    if expected and expected.origin in ("reported", "configured"):
        first.sort(key=lambda limit: limit.tokens)
    return [*first, rule] if rule else first


def _expected_limit(known: ResolveContext, window: Window | None) -> Limit | None:
    """Return the limit by what the client says, by its settings or by its rule."""
    if known.reported_limit is not None:
        return Limit(known.reported_limit, "reported", REPORTED)
    return (
        _configured_tokens(known, window)
        or _configured_limit(known, window)
        or _default_limit(known, window)
        or _learned_limit(known)
    )


def _seen_limit(known: ResolveContext, expected: Limit | None) -> Limit | None:
    """Return where the client really compacts, if its last compactions agree on that.

    The call that reaches a limit also exceeds it: a little above the expected limit, the
    compactions confirm it.
    """
    last = known.compacted_at[-CONSISTENT_COMPACTIONS:]
    lowest, highest = min(last, default=0), max(last, default=0)
    if len(last) < CONSISTENT_COMPACTIONS or highest > (1 + CONSISTENT_WITHIN) * lowest:
        return None
    why = f"the lower of the last two automatic compactions, at {last[0]:,} and {last[1]:,}"
    if expected is None or expected.origin == "learned":
        return Limit(lowest, "learned", why)
    if expected.tokens <= lowest <= (1 + CONSISTENT_WITHIN) * expected.tokens:
        return None
    warning = f"but {expected.tokens:,} is expected: {expected.why}"
    return Limit(lowest, "learned", why, warning)


def _is_disproved(limit: Limit, known: ResolveContext) -> bool:
    """Whether calls went beyond a limit; what a context begins with, no compaction removes."""
    if limit.origin == "not enforced" or _is_unreachable(limit, known):
        return False
    return limit.tokens < known.sustained


def _is_unreachable(limit: Limit, known: ResolveContext) -> bool:
    return known.first_sent is not None and limit.tokens <= known.first_sent


def _limit_warning(limit: Limit, known: ResolveContext, window: Window | None) -> str | None:
    """Return what speaks against a limit, the most important first."""
    if window and limit.tokens > window.tokens and (row := _assumed_row(known)):
        size = format_tokens(window.tokens)
        full = f"the client will not compact before the model is full at {size}"
        can_be_set = row.remedy is not None and window.tokens >= row.remedy_from
        return f"{full}; set {row.remedy}={window.tokens}" if can_be_set else full
    if _is_unreachable(limit, known):
        return f"{UNREACHABLE}: the context began with {known.first_sent:,} tokens"
    if _is_disproved(limit, known):
        return f"but two calls sent {known.sustained:,} tokens or more without a compaction"
    last = known.compacted_at[-1] if known.compacted_at else limit.tokens
    is_far = abs(last - limit.tokens) > CONSISTENT_WITHIN * limit.tokens
    if is_far and limit.origin not in ("learned", "off"):
        return f"but the last automatic compaction was at {last:,}"
    return limit.warning


def _configured_tokens(known: ResolveContext, window: Window | None) -> Limit | None:
    settings = known.settings
    if settings.limit is None:
        return None
    why = f"set in {settings.place}"
    if window and window.tokens < settings.limit:
        more = f"{settings.limit:,} {why}, more than the window: the window"
        return Limit(window.tokens, "configured", more)
    return Limit(settings.limit, "configured", why)


def _configured_limit(known: ResolveContext, window: Window | None) -> Limit | None:
    settings = known.settings
    if window is None:
        return None
    why = f"set in {settings.place}"
    base = _value_for_model(settings.auto_compact_windows, known)
    # A window that the user set is enforced for every model (Claude Code 2.1.325); a share only
    # lowers a limit that is enforced.
    row = _limit_row(known, enforced_only=bool(base))
    if row and row.enforced and (base or settings.part):
        assumed = _assumed_size(known, window)
        tokens = row.tokens(min(base or assumed, assumed), find_max_output(known))
        how = [row.how, *([f"window {base:,} {why}"] if base else [])]
        if base and base > assumed:
            how.append(f"of which the model has {assumed:,}")
        if settings.part:
            tokens = min(tokens, int((tokens + row.margin) * settings.part))
            how += [f"or at {settings.part:.0%} before that", *([] if base else [why])]
        return Limit(tokens, "configured", ", ".join(how))
    known_row = _limit_row(known)
    share = settings.fraction
    if settings.reserve is not None:
        tokens = window.tokens - settings.reserve
        if known_row and known_row.reserve:  # the client takes the smaller of both
            by_share = round((share or known_row.fraction) * window.tokens)
            # A reserve as large as the window, of a larger model, is ignored (Kimi Code 2.1.0).
            tokens = min(tokens, by_share) if tokens > 0 else by_share
        return Limit(tokens, "configured", f"a reserve of {settings.reserve:,}, {why}")
    if share is not None:
        tokens = round(share * window.tokens)
        tokens = known_row.keep_reserve(tokens, window.tokens) if known_row else tokens
        return Limit(tokens, "configured", why)
    return None


def _learned_limit(known: ResolveContext) -> Limit | None:
    if not known.compacted_at:
        return None
    # The lower median; importing statistics would take 5 ms.
    tokens = sorted(known.compacted_at)[(len(known.compacted_at) - 1) // 2]
    return Limit(tokens, "learned", "the median of the last automatic compactions seen")


def _default_limit(known: ResolveContext, window: Window | None) -> Limit | None:
    row = _limit_row(known)
    if not row or window is None:
        return None
    why = f"{row.how} ({row.agent} {row.seen}, {row.date})"
    if not row.enforced:
        return Limit(window.tokens, "not enforced", f"{why}: the window")
    base = find_input_limit(known) if row.of == "input" else None
    base = base or _assumed_size(known, window)
    if row.of == "input" and known.settings.input_reserve is not None:
        reserve, place = known.settings.input_reserve, known.settings.place
        why = f"input limit - a reserve of {reserve:,}, set in {place}"
        return Limit(base - reserve, "configured", why)
    return Limit(row.tokens(base, find_max_output(known)), "known", why)


def _assumed_size(known: ResolveContext, window: Window) -> int:
    """The window that the client reckons with, which may be larger than the model's."""
    row = _assumed_row(known)
    return row.window if row else window.tokens


def find_input_limit(known: ResolveContext) -> int | None:
    """The model's longest prompt, if that is less than its window."""
    if known.max_output:  # the client has reported the sizes of this model
        return known.input_limit
    if tokens := _value_for_model(known.settings.input_limits, known):
        return tokens
    row = _listed_model(known)
    return row.input_cap if row else None


def find_max_output(known: ResolveContext) -> int | None:
    tokens = known.max_output or _value_for_model(known.settings.max_outputs, known)
    if tokens:
        return tokens
    row = _listed_model(known)
    return row.max_output if row else None


def _override(table: Mapping[str, int], known: ResolveContext) -> int | None:
    agent, model = known.agent or "", known.model or ""
    keys = [key for name in model_aliases(model) for key in (f"{agent}/{name}", name)]
    return next((table[key] for key in (*keys, agent, "*") if key in table), None)


def _value_for_model(table: Mapping[str, int], known: ResolveContext) -> int | None:
    model = known.model or ""
    name = normalize_model(model)
    for key in (f"{known.provider}/{model}", model, name):
        if key in table:
            return table[key]
    if known.provider is None and model:  # all providers that have the model must agree
        sizes = {size for key, size in table.items() if key.partition("/")[2] == model}
        if sizes:
            return sizes.pop() if len(sizes) == 1 else None
    fitting = [key for key in table if key.endswith("*") and name.startswith(key[:-1])]
    return table[max(fitting, key=len)] if fitting else None


def _limit_row(known: ResolveContext, enforced_only: bool = False) -> ClientLimit | None:
    """The row of its limits; rows of the longest prompt only if that is known, and then first."""
    has_input_limit = find_input_limit(known) is not None
    return find_limit_row(
        known.agent, known.provider, known.model, known.version, has_input_limit, enforced_only
    )
