"""Track the context of agents that you build, by the objects of their SDK."""

from brimline.observe.service import ContextService, ContextStats, TokenUsage
from brimline.observe.stream import Tracked
from brimline.observe.tracker import LevelReached, Tracker

__all__ = ["ContextService", "ContextStats", "LevelReached", "TokenUsage", "Tracked", "Tracker"]
