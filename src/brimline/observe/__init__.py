"""What people who build agents hold: a tracker of what their SDK hands them."""

from brimline.observe.service import ContextService, ContextStats, TokenUsage
from brimline.observe.stream import Tracked
from brimline.observe.tracker import LevelReached, Tracker

__all__ = ["ContextService", "ContextStats", "LevelReached", "TokenUsage", "Tracked", "Tracker"]
