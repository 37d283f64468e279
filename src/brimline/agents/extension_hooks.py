"""What our own extensions tell: in the words of the others' hooks, and the window beside."""

import msgspec

from brimline.agents.hook_adapter import HookRequest
from brimline.agents.hook_payloads import HookInput
from brimline.events import WindowReported


class ExtensionInput(HookInput, frozen=True):
    """What an extension of ours writes; `context_window` is the client's own figure."""

    context_window: int | None = None


_input = msgspec.json.Decoder(ExtensionInput)


def decode_extension_input(request: HookRequest) -> ExtensionInput:
    """An extension's input; raises msgspec.DecodeError where it is none."""
    return _input.decode(request.body)


def reported_window(hook_input: ExtensionInput) -> tuple[WindowReported, ...]:
    """The window of the model, as far as the client knows it."""
    if not hook_input.context_window or hook_input.model is None:
        return ()
    return (WindowReported(tokens=hook_input.context_window, model=hook_input.model),)
