"""Which signals a reading causes, and when to compact. Pure."""

from brimline.context.policy.compaction import Basis, CompactionPolicy, Decision, Rule
from brimline.context.policy.levels import DEFAULT_LEVELS, check_levels, highest_reached

__all__ = [
    "DEFAULT_LEVELS",
    "Basis",
    "CompactionPolicy",
    "Decision",
    "Rule",
    "check_levels",
    "highest_reached",
]
