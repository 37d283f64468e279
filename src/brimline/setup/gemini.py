"""Gemini CLI: hooks in settings.json, which may have comments.

It gives the command to a shell and counts the timeout in milliseconds. PreCompress is left out: it
fires before every call, whether anything is compressed or not. So is AfterModel: every piece of an
answer waits for it, and the usage, which the last one has, is in the chat's file as soon.
"""

from pathlib import Path

from brimline.agents.gemini.paths import root
from brimline.jsonc import Dialect
from brimline.setup.command import HOOK_NAME, SECONDS, Hook, HookCommand
from brimline.setup.recipe import Recipe, Switch
from brimline.transcripts.source import Places

EVENTS = ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd")


def _file(places: Places) -> Path:
    return root(places) / "settings.json"


def _hook(command: HookCommand) -> Hook:
    timeout = SECONDS * 1000
    return Hook(type="command", name=HOOK_NAME, command=command.shell, timeout=timeout)


RECIPE = Recipe(
    agent="gemini",
    user=_file,
    project=".gemini/settings.json",
    dialect=Dialect(comments=True),
    events=EVENTS,
    hook=_hook,
    switch=Switch(("hooksConfig", "enabled"), off=False, names=("hooksConfig", "disabled")),
    then="Sessions that are open have to be started anew.",
)
