"""Baseline: what a fresh session of an agent holds before the first prompt."""

from brimline.agents.fresh_session.answers import Category
from brimline.agents.fresh_session.measure import Baseline, baseline

__all__ = ["Baseline", "Category", "baseline"]
