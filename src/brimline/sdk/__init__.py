"""The library for people who build agents: `Tracker`, and how the objects of each SDK are read.

Callbacks and wrappers that import a framework belong to `integrations/`.
"""

from brimline.sdk.service import ContextService, ContextStats, TokenUsage
from brimline.sdk.stream import Tracked
from brimline.sdk.tracker import LevelReached, Tracker

__all__ = ["ContextService", "ContextStats", "LevelReached", "TokenUsage", "Tracked", "Tracker"]
