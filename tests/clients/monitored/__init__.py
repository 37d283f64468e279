"""The real clients with our hooks and a real daemon, one class each: what is special about them."""

from __future__ import annotations

from .base import Monitored
from .claude import Claude
from .codex import Codex
from .gemini import Gemini
from .opencode import Opencode
from .pi import Pi

AGENTS: tuple[type[Monitored], ...] = (Claude, Codex, Gemini, Opencode, Pi)
AT_ONCE: tuple[type[Monitored], ...] = (Codex, Gemini, Opencode, Pi)
"""Those of which a call is known before its tools have run."""

__all__ = ["AGENTS", "AT_ONCE", "Claude", "Codex", "Gemini", "Monitored", "Opencode", "Pi"]
