"""Baseline: what a fresh session of an agent holds before the first prompt."""

from brimline.agents.fresh_session.answers import Category, FreshPart
from brimline.agents.fresh_session.measure import (
    Baseline,
    CachedAnswer,
    answers_changed_at,
    baseline,
    can_be_asked,
    find_answer,
    read_answers,
)

__all__ = [
    "Baseline",
    "CachedAnswer",
    "Category",
    "FreshPart",
    "answers_changed_at",
    "baseline",
    "can_be_asked",
    "find_answer",
    "read_answers",
]
