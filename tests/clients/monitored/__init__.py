"""The real clients with our hooks and a real daemon: one class per client."""

from __future__ import annotations

from .base import MonitoredClient
from .claude import Claude
from .codex import Codex
from .copilot import Copilot
from .gemini import Gemini
from .kimi import Kimi
from .opencode import Kilo, Opencode
from .pi import Pi
from .qwen import Qwen

# Messages reach the agent with a tool's result.
WITHIN_TURNS: tuple[type[MonitoredClient], ...] = (
    Claude,
    Codex,
    Copilot,
    Gemini,
    Kilo,
    Opencode,
    Pi,
    Qwen,
)
AGENTS: tuple[type[MonitoredClient], ...] = (*WITHIN_TURNS, Kimi)
# The usage of a call is known before its tools run.
WITHOUT_DELAY: tuple[type[MonitoredClient], ...] = (
    Codex,
    Copilot,
    Gemini,
    Kilo,
    Opencode,
    Pi,
    Qwen,
)

__all__ = [
    "AGENTS",
    "WITHIN_TURNS",
    "WITHOUT_DELAY",
    "Claude",
    "Codex",
    "Copilot",
    "Gemini",
    "Kilo",
    "Kimi",
    "MonitoredClient",
    "Opencode",
    "Pi",
    "Qwen",
]
