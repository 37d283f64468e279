"""Which signals a reading causes, and when to compact. Pure."""

from brimline.policy.compaction import Basis, CompactionPolicy, Decision, Rule
from brimline.policy.levels import DEFAULT_LEVELS, check_levels, highest_reached

__all__ = [
    "DEFAULT_LEVELS",
    "Basis",
    "CompactionPolicy",
    "Decision",
    "Rule",
    "check_levels",
    "highest_reached",
]
