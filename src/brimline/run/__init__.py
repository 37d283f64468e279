"""Run a headless agent: its output is forwarded untouched, and its context is tracked.

The command line and what it prints belong to `cli/`, an agent's stream format to `agents/`.
"""

from brimline.run.result import SessionResult

__all__ = ["SessionResult"]
