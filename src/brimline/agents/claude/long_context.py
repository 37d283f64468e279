"""Evidence in a transcript that a model ran with a window of 1M tokens.

The records of calls have the plain model id, also if the long window was asked for. Other records
say which it was: the result of a subagent names the model that was resolved, and `/model` prints
what it set (Claude Code 2.1). A commit trailer is only a hint: another session may have written it.
"""

import re
from functools import cache

from brimline.context.window import ResolveContext, Window, clients, limit_of

# One of these is in each record with evidence; long ones, so that the line filter stays fast.
RESOLVED_KEY = b'"resolvedModel"'
COMMAND_OUTPUT = b"<local-command-stdout>"
TRAILER_END = b"(1M context) <noreply@"

_RESOLVED = re.compile(rb'"resolvedModel"\s*:\s*"([^"\\]+)\[1m\]"')
_PRINTED = re.compile(
    rb"<local-command-stdout>(?:Kept model as|Set model to) (?:\\u001b\[1m)?"
    rb"(?:Default \()?([A-Z][a-z]+ [0-9.]+) \(1M context\)"
)
_TRAILER = re.compile(rb"Co-Authored-By: Claude ([A-Z][a-z]+ [0-9.]+) \(1M context\) <noreply@")


def may_have_evidence(record: bytes) -> bool:
    """Whether a record has to be searched for evidence."""
    return RESOLVED_KEY in record or COMMAND_OUTPUT in record or TRAILER_END in record


def proved_models(record: bytes) -> set[str]:
    """The models that a record proves to run with the long window."""
    resolved = {model.decode("utf-8", "replace") for model in _RESOLVED.findall(record)}
    return resolved | {_model_id(name) for name in _PRINTED.findall(record)}


def hinted_models(record: bytes) -> set[str]:
    """The models that a commit trailer in a record names with the long window."""
    return {_model_id(name) for name in _TRAILER.findall(record)}


@cache
def short_limit(model: str | None, version: str | None) -> int:
    """Where this version of the client compacts a model in the smaller of its two windows."""
    window = Window(min(clients().sizes["claude"]), "client", "the smaller of its windows")
    limit = limit_of(ResolveContext(agent="claude", model=model, version=version), window)
    return limit.tokens if limit else window.tokens


def _model_id(display_name: bytes) -> str:
    """`Opus 4.8` -> `claude-opus-4-8`."""
    return "claude-" + display_name.decode().lower().replace(" ", "-").replace(".", "-")
