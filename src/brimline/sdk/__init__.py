"""The library for people who build agents: `Tracker`, and how the objects of each SDK are read.

Callbacks and wrappers that import a framework belong to `integrations/`.
"""

from brimline.sdk.listeners import LevelReached
from brimline.sdk.service import (
    DEFAULT_CONTEXT_WINDOW,
    MODEL_CONTEXT_WINDOWS,
    ContextService,
    ContextStats,
    TokenUsage,
)
from brimline.sdk.stream import Tracked
from brimline.sdk.tracker import Tracker

__all__ = [
    "DEFAULT_CONTEXT_WINDOW",
    "MODEL_CONTEXT_WINDOWS",
    "ContextService",
    "ContextStats",
    "LevelReached",
    "TokenUsage",
    "Tracked",
    "Tracker",
]
