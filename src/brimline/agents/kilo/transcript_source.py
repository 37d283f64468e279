"""Kilo CLI: its files and streams are opencode's."""

from brimline.agents.kilo.paths import PATHS
from brimline.agents.opencode.transcript_source import Opencode

SOURCE = Opencode(PATHS)
