"""What to say and what to do at a reading: levels, and when to compact. Pure."""

from brimline.policy.compaction import Basis, CompactionPolicy, Decision, Rule
from brimline.policy.levels import LEVELS, checked, reached

__all__ = [
    "LEVELS",
    "Basis",
    "CompactionPolicy",
    "Decision",
    "Rule",
    "checked",
    "reached",
]
