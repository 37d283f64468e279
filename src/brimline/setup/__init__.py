"""Our hooks and status line in the agents' settings: put in, and taken out without a trace."""

from brimline.setup.command import HookCommand, Program, installed
from brimline.setup.found import Found, find
from brimline.setup.job import Wish
from brimline.setup.kept import Mode, StatusLine, status_line
from brimline.setup.plan import RECIPES, Change, apply, plan, plan_beside
from brimline.setup.recipe import Scope

__all__ = [
    "RECIPES",
    "Change",
    "Found",
    "HookCommand",
    "Mode",
    "Program",
    "Scope",
    "StatusLine",
    "Wish",
    "apply",
    "find",
    "installed",
    "plan",
    "plan_beside",
    "status_line",
]
