"""Kimi Code's hooks: Claude Code's input without a transcript's path, and answers of its own.

Kimi Code takes the answers to UserPromptSubmit and Stop, and those to PreToolUse, which refuse the
tool; all others are dropped (2.1.0). So nothing is said within a turn, and no hook is installed for
tools and compactions: the transcript has both.

A subagent's hooks look like those of its session, and an answer to its Stop goes to the subagent.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.agents.compaction_setting import CompactionSetting
from brimline.agents.hook_adapter import HookAdapter, HookInput, HookRequest
from brimline.agents.hook_command import HOOK_TIMEOUT_S, Hook, HookCommand
from brimline.agents.install_spec import InstallSpec
from brimline.agents.kimi.paths import WIRE_NAME, folders, root
from brimline.agents.observations import Observation, Reply
from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN
from brimline.context.window import ResolveContext
from brimline.files.foreign_json import JsonDecoder


class KimiAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an answer that keeps a turn from ending."""

    permission_decision: str
    permission_decision_reason: str


class KimiOutput(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What Kimi Code takes: a text for the model, or a reason to continue."""

    message: str | None = None
    hook_specific_output: KimiAnswer | None = None


_hook_input = JsonDecoder(HookInput)


class KimiHooks(HookAdapter):
    """Hooks name no transcript: it follows from the session's id."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        observation = self.observe_main(request, _hook_input.decode(request.body), at, late)
        if observation is None:
            return None
        path = observation.transcript or _find_main(request, observation.session)
        if observation.kind == "stopped" and path is not None and _is_in_subagent(path):
            return None
        return msgspec.structs.replace(observation, transcript=path)

    def may_read_files(self, request: HookRequest) -> bool:
        return True  # the names of the workspaces, and the times of a session's files

    def encode_reply(self, hook_event: str, reply: Reply) -> bytes:
        if reply.stop_feedback is not None:
            output = KimiOutput(hook_specific_output=KimiAnswer("deny", reply.stop_feedback))
        elif reply.context is not None:
            output = KimiOutput(message=reply.context)
        else:
            return b""
        return msgspec.json.encode(output) + b"\n"


def _find_main(request: HookRequest, session: str) -> str | None:
    """Return the main thread's file of a session, which is in the folder of some workspace."""
    for folder in folders(Places(Path.home(), request.env)):
        try:
            workspaces = list(os.scandir(folder))
        except OSError:
            continue
        files = (os.path.join(one.path, session, "agents", MAIN, WIRE_NAME) for one in workspaces)
        if found := next(filter(os.path.isfile, files), None):
            return found
    return None


def _is_in_subagent(path: str) -> bool:
    """Whether a subagent's file was written after that of the main thread: then it has stopped.

    If a subagent works in the background and that is wrong, the messages come with the next prompt.
    """
    try:
        own = os.stat(path).st_mtime_ns
        return any(written > own for written in _written_times(Path(path).parents[1]))
    except OSError:
        return False


def _written_times(folder: Path) -> Iterator[int]:
    for file in folder.glob(f"*/{WIRE_NAME}"):
        yield file.stat().st_mtime_ns


HOOKS = KimiHooks(
    events={"UserPromptSubmit": "prompt", "Stop": "stopped", "SessionEnd": "ended"}, starts={}
)


def _plain_hook(command: HookCommand) -> Hook:
    return Hook(command=command.shell, timeout=HOOK_TIMEOUT_S)


INSTALL_SPEC = InstallSpec(
    agent="kimi",
    user_file=lambda places: root(places) / "config.toml",
    project_file=None,
    is_toml=True,
    events=("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
    hook=_plain_hook,
    next_step="Open sessions need a restart.",
)


def compaction_setting(
    places: Places, project: str | None, known: ResolveContext
) -> CompactionSetting | None:
    """Return how much it keeps free of every model's window; no project has its own.

    Not the share: below 85 % of the window it may drop the summary (README.md).
    """
    if project is not None:
        return None
    return CompactionSetting(
        field="reserve",
        key=("loop_control.reserved_context_size",),
        file=root(places) / "config.toml",
        dialect=None,
        note="the same reserve in every model's window",
    )
