"""What the agents say in their streams, one file an agent."""

from importlib import import_module
from typing import cast

from brimline.run.said.base import QUIET, Ear, Said, Told
from brimline.sources import known

__all__ = ["QUIET", "Ear", "Said", "Told", "ear"]


def ear(agent: str) -> Ear:
    """A new ear for one run of an agent."""
    return cast("Ear", import_module(f"brimline.run.said.{known(agent)}").EAR())
