"""Every agent that has hooks, by its name: one door for the daemon."""

from brimline.errors import UnknownAgent
from brimline.hooks import claude, codex, gemini, opencode, pi
from brimline.hooks.dialect import Hooks
from brimline.hooks.protocol import Request
from brimline.hooks.statusline import Told
from brimline.observations import Observation, Reply

HOOKS: dict[str, Hooks] = {
    "claude": claude.HOOKS,
    "codex": codex.HOOKS,
    "gemini": gemini.HOOKS,
    "pi": pi.HOOKS,
    "opencode": opencode.HOOKS,
}
STATUS_LINES = ("claude",)
"""Whose clients run a command for a status line."""


def may_read_files(request: Request) -> bool:
    """Whether `heard` may look at a client's files: those of its subagents."""
    return request.agent == "gemini" or (
        request.agent == "claude" and b'"agent_id"' in request.body
    )


def heard(request: Request, at: float, late: bool = False) -> Observation | None:
    """What a hook tells; None where that is nothing to us.

    Raises UnknownAgent, and msgspec.DecodeError or InvalidUsage where it is no hook's input.
    """
    return _of(request).heard(request, at, late)


def answer(request: Request, reply: Reply) -> bytes:
    """A reply as the request's client takes it; nothing where there is nothing to say."""
    return _of(request).answer(request, reply)


def heard_status(request: Request, at: float, late: bool = False) -> tuple[Observation, Told]:
    """What a status line tells; raises as `heard` does."""
    if request.agent not in STATUS_LINES:
        raise UnknownAgent(request.agent, STATUS_LINES)
    return claude.heard_status(request, at, late)


def _of(request: Request) -> Hooks:
    found = HOOKS.get(request.agent)
    if found is None:
        raise UnknownAgent(request.agent, HOOKS)
    return found
