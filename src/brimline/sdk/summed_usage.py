"""Sums of several calls, as frameworks report them for a run: no occupancy, so they are refused."""

from brimline.context.providers.rows import get_items, get_path
from brimline.errors import InvalidUsage, SummedUsage

REQUESTS_HINT = (
    "Pass the last answer: `result.raw_responses[-1]` of the OpenAI Agents SDK, "
    "`result.response` of Pydantic AI."
)
CREWAI_HINT = (
    "Attach `brimline.integrations.crewai`, or pass the `usage` of each `LLMCallCompletedEvent`."
)
STRANDS_HINT = (
    "Attach `brimline.integrations.strands`, or pass the usage of the last call: "
    "`result.metrics.agent_invocations[-1].cycles[-1].usage`."
)
AGNO_HINT = (
    "Pass the answers of the provider's client. The metrics of one of Agno's messages, "
    "`run.messages[-1].metrics`, can be observed if they have no cached tokens."
)


# Classes whose usage is a sum, by the package and the name, and where that of the last call is.
TYPES = {
    ("crewai", "CrewOutput"): CREWAI_HINT,
    ("crewai", "LiteAgentOutput"): CREWAI_HINT,
    ("crewai", "UsageMetrics"): CREWAI_HINT,
    ("strands", "AgentInvocation"): STRANDS_HINT,
    ("strands", "AgentResult"): STRANDS_HINT,
    ("strands", "EventLoopMetrics"): STRANDS_HINT,
    ("agno", "ModelMetrics"): AGNO_HINT,
    ("agno", "RunMetrics"): AGNO_HINT,
    ("agno", "RunOutput"): AGNO_HINT,
    ("agno", "SessionMetrics"): AGNO_HINT,
    ("agno", "TeamRunOutput"): AGNO_HINT,
}

# Fields that only a sum has, of the same objects as dicts, and of those of other versions.
FIELDS = (
    ("token_usage.successful_requests", CREWAI_HINT),
    ("accumulated_usage", STRANDS_HINT),
    ("metrics.accumulated_usage", STRANDS_HINT),
)
# Counts of the calls in a sum; one is no sum.
COUNTS = (
    ("requests", REQUESTS_HINT),
    ("successful_requests", CREWAI_HINT),
    ("num_turns", "Observe each message: the result of Claude Code has the sum of its calls."),
)


def check_type(seen: object) -> None:
    """Refuse an object whose class has the usage of a run. Raises SummedUsage."""
    name = type(seen).__name__
    hint = TYPES.get((_package_of(seen), name))
    if hint is not None:
        raise SummedUsage(name, hint=hint)


def check_one_call(seen: object) -> None:
    """Refuse the usage of a run, and one that may be read in two ways. Raises InvalidUsage."""
    for field, hint in FIELDS:
        if get_path(seen, field) is not None:
            raise SummedUsage(field, hint=hint)
    for field, hint in COUNTS:
        count = get_path(seen, field)
        if isinstance(count, int) and count > 1:
            raise SummedUsage(field, count, hint)
    if get_items(seen, "details.model"):
        raise SummedUsage("details", hint=AGNO_HINT)
    if _package_of(seen) == "agno":
        _check_no_cache(seen)


def _check_no_cache(metrics: object) -> None:
    """Agno 3.1 has Anthropic's input without the cache, and that of other providers with it."""
    for field in ("cache_read_tokens", "cache_write_tokens"):
        count = get_path(metrics, field)
        if count:
            expected = "0, because Agno does not say whether the input includes the cache"
            raise InvalidUsage(field, count, expected, AGNO_HINT)


def _package_of(seen: object) -> str:
    return type(seen).__module__.partition(".")[0]
