"""Gemini CLI: hooks in settings.json, which may have comments.

Commands are run by a shell, and the timeout is in milliseconds. PreCompress is not installed: it
fires before every call, whether anything is compressed or not. Nor is AfterModel: every part of an
answer waits for it, and the chat's file has the usage as soon as its last part.
"""

from pathlib import Path

from brimline.agents.gemini.paths import root
from brimline.agents.hook_command import HOOK_NAME, HOOK_TIMEOUT_S, Hook, HookCommand
from brimline.agents.install_spec import DisableSetting, InstallSpec
from brimline.agents.transcripts.source import Places
from brimline.files.jsonc import Dialect

EVENTS = ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd")


def _user_file(places: Places) -> Path:
    return root(places) / "settings.json"


def _hook(command: HookCommand) -> Hook:
    timeout = HOOK_TIMEOUT_S * 1000
    return Hook(type="command", name=HOOK_NAME, command=command.shell, timeout=timeout)


INSTALL_SPEC = InstallSpec(
    agent="gemini",
    user_file=_user_file,
    project_file=".gemini/settings.json",
    dialect=Dialect(comments=True),
    events=EVENTS,
    hook=_hook,
    disable_setting=DisableSetting(
        ("hooksConfig", "enabled"), off=False, names_path=("hooksConfig", "disabled")
    ),
    next_step="Open sessions need a restart.",
)
