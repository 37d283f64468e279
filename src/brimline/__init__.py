"""Brimline measures how full the context windows of AI coding agents are.

    from brimline import Session, fold, read, source

Names are imported when they are first used, so that `import brimline` costs next to nothing.
"""

from brimline._version import __version__

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than all of this
if TYPE_CHECKING:
    from brimline.agents import source
    from brimline.agents.fresh_session import Baseline, Category, baseline
    from brimline.api.client.session import DaemonSession
    from brimline.context.formulas import Formulas, audit
    from brimline.context.inbox import Message
    from brimline.context.policy.compaction import CompactionPolicy, Decision
    from brimline.context.tracker import Compaction, Reading, Session, Thread, fold, read
    from brimline.context.usage import Usage, context_line, percent, percent_raw
    from brimline.context.window import Limit, Window, limit_of, window_of
    from brimline.errors import (
        BaselineFailed,
        BrimlineError,
        CommandFailed,
        InvalidPolicy,
        InvalidSettings,
        InvalidState,
        InvalidUsage,
        UnknownAgent,
        UnknownSession,
        UnreadableTranscript,
        UnrecognisedFormat,
        UnrecognisedObject,
    )
    from brimline.run import SessionResult
    from brimline.sdk import (
        DEFAULT_CONTEXT_WINDOW,
        MODEL_CONTEXT_WINDOWS,
        ContextService,
        ContextStats,
        LevelReached,
        TokenUsage,
        Tracker,
    )
    from brimline.settings import Settings

__all__ = [
    "DEFAULT_CONTEXT_WINDOW",
    "MODEL_CONTEXT_WINDOWS",
    "Baseline",
    "BaselineFailed",
    "BrimlineError",
    "Category",
    "CommandFailed",
    "Compaction",
    "CompactionPolicy",
    "ContextService",
    "ContextStats",
    "DaemonSession",
    "Decision",
    "Formulas",
    "InvalidPolicy",
    "InvalidSettings",
    "InvalidState",
    "InvalidUsage",
    "LevelReached",
    "Limit",
    "Message",
    "Reading",
    "Session",
    "SessionResult",
    "Settings",
    "Thread",
    "TokenUsage",
    "Tracker",
    "UnknownAgent",
    "UnknownSession",
    "UnreadableTranscript",
    "UnrecognisedFormat",
    "UnrecognisedObject",
    "Usage",
    "Window",
    "__version__",
    "audit",
    "baseline",
    "context_line",
    "fold",
    "limit_of",
    "percent",
    "percent_raw",
    "read",
    "source",
    "window_of",
]

_PACKAGES = {
    "agents": ("source",),
    "agents.fresh_session": ("Baseline", "Category", "baseline"),
    "api.client.session": ("DaemonSession",),
    "errors": (
        "BaselineFailed",
        "BrimlineError",
        "CommandFailed",
        "InvalidPolicy",
        "InvalidSettings",
        "InvalidState",
        "InvalidUsage",
        "UnknownAgent",
        "UnknownSession",
        "UnreadableTranscript",
        "UnrecognisedFormat",
        "UnrecognisedObject",
    ),
    "context.formulas": ("Formulas", "audit"),
    "context.inbox": ("Message",),
    "sdk": (
        "DEFAULT_CONTEXT_WINDOW",
        "MODEL_CONTEXT_WINDOWS",
        "ContextService",
        "ContextStats",
        "LevelReached",
        "TokenUsage",
        "Tracker",
    ),
    "context.policy.compaction": ("CompactionPolicy", "Decision"),
    "run": ("SessionResult",),
    "settings": ("Settings",),
    "context.tracker": ("Compaction", "Reading", "Session", "Thread", "fold", "read"),
    "context.usage": ("Usage", "context_line", "percent", "percent_raw"),
    "context.window": ("Limit", "Window", "limit_of", "window_of"),
}

_PACKAGE_OF = {name: package for package, names in _PACKAGES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module 'brimline' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"brimline.{_PACKAGE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
