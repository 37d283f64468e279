"""Run a headless agent: its output is forwarded untouched, and its context is tracked."""

from brimline.run.result import SessionResult

__all__ = ["SessionResult"]
