"""Whether a context fits another model, before the user switches to it."""

import msgspec

from brimline.context.usage import format_tokens
from brimline.context.window.resolve import Limit, Window


class ModelSwitch(msgspec.Struct, frozen=True):
    """The model that a user asks for, and the tokens that its first call would send."""

    model: str
    tokens: int


class SwitchWarning(msgspec.Struct, frozen=True):
    """What to tell the user. The client shows a text of 73 columns if the context overflows."""

    text: str
    overflows: bool


def warn_of_switch(
    switch: ModelSwitch, window: Window | None, limit: Limit | None
) -> SwitchWarning | None:
    """Return a warning if the context does not fit, or is compacted at once; None if neither."""
    tokens = f"[brimline] {format_tokens(switch.tokens)} of context, that model"
    if window is not None and switch.tokens > window.tokens:
        text = f"{tokens} takes {format_tokens(window.tokens)}: go back and /compact"
        return SwitchWarning(text, overflows=True)
    if limit is None or not limit.is_enforced or switch.tokens < limit.tokens:
        return None
    text = (
        f"{tokens} is compacted at {format_tokens(limit.tokens)}: with your next prompt. "
        "Go back to keep it."
    )
    return SwitchWarning(text, overflows=False)
