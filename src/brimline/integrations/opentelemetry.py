"""OpenTelemetry: a span processor that reads the spans of model calls (`gen_ai`)."""

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from brimline.context.events import MAIN
from brimline.context.providers.opentelemetry import CALL_OPERATIONS, OPERATION, has_span_usage
from brimline.integrations.answer_observer import AnswerObserver
from brimline.sdk import Tracker

# Spans around calls and tools: their usage is the sum of the calls below, or none at all.
OTHERS = frozenset(
    {"create_agent", "embeddings", "execute_tool", "invoke_agent", "invoke_workflow", "retrieval"}
)


class BrimlineSpanProcessor(SpanProcessor):
    """Observes every span of a model call when it ends.

    `thread_attribute` names an attribute that separates agents, as `gen_ai.agent.name` or
    `gen_ai.conversation.id`; spans without it belong to `main`.
    """

    def __init__(self, tracker: Tracker, thread_attribute: str | None = None) -> None:
        self._observer = AnswerObserver(tracker)
        self._thread_attribute = thread_attribute

    def on_end(self, span: ReadableSpan) -> None:
        """Observe the span of a call; the span of an agent has the sum of its calls."""
        attributes = span.attributes or {}
        operation = attributes.get(OPERATION)
        if not has_span_usage(attributes) or operation in OTHERS:
            return
        if operation not in CALL_OPERATIONS:
            reason = f"{OPERATION} is {operation!r}, which may be a sum of calls"
            self._observer.warn_once(str(operation), reason)
            return
        thread = attributes.get(self._thread_attribute) if self._thread_attribute else None
        self._observer.observe(attributes, MAIN if thread is None else str(thread))
