"""The `ollama` package: answers, and the chunks of a stream; the last one has the usage."""

from collections.abc import Sequence

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.rows import CountRow, UsageShape, get_path, get_text
from brimline.sdk.memory import StreamMemory

# The cache is not reported. Some versions leave out the count of a prompt that was cached: such an
# answer is refused.
ANSWER = UsageShape(
    "disjoint",
    (
        CountRow("input", ("prompt_eval_count",), required=True),
        CountRow("output", ("eval_count",), required=True),
    ),
)


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of an answer, or None."""
    done, at = get_path(seen, "done"), get_text(seen, "created_at")
    if not isinstance(done, bool) or at is None:
        return None
    if not done:
        return []
    model = get_text(seen, "model")
    # An answer has no id: its time, to the nanosecond, stands for it.
    return [Call(id=f"{model}-{at}", usage=ANSWER.usage(seen), model=model, thread=thread)]
