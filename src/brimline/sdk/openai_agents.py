"""The `openai-agents` package: responses of a model, and the events of a run's stream."""

from collections.abc import Sequence

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.rows import get_path, get_text
from brimline.sdk import openai
from brimline.sdk.counts import check_single_request
from brimline.sdk.memory import StreamMemory

# Events of a run that only repeat what raw events said.
SILENT_EVENTS = frozenset({"agent_updated_stream_event", "run_item_stream_event"})


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a response or a stream event, or None."""
    match get_path(seen, "type"):
        case "raw_response_event":
            return openai.read(get_path(seen, "data"), memory, thread) or []
        case kind if isinstance(kind, str) and kind in SILENT_EVENTS:
            return []
        case _:
            return _response(seen, memory, thread) if hasattr(seen, "response_id") else None


def _response(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    reported = get_path(seen, "usage")
    if not hasattr(seen, "output") or not hasattr(reported, "requests"):
        return None
    if not get_path(reported, "requests"):  # the provider reported no usage
        return []
    check_single_request(reported)
    name = get_text(seen, "response_id")
    if name is None or name == openai.SHARED_ID:
        name = memory.new_call_id()
    return [Call(id=name, usage=openai.RESPONSES.usage(reported), thread=thread)]
