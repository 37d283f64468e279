"""A headless agent under our eyes: its output goes through untouched, its context is tracked."""

from brimline.run.result import SessionResult

__all__ = ["SessionResult"]
