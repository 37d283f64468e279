"""Baseline: what a fresh session of an agent holds before the first prompt."""

from brimline.baselines.answers import Category
from brimline.baselines.measure import Baseline, baseline

__all__ = ["Baseline", "Category", "baseline"]
