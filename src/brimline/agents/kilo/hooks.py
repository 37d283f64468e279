"""Kilo CLI's hooks, which are our plugin's for opencode, in Kilo CLI's folder of plugins."""

from brimline.agents.kilo.paths import PATHS
from brimline.agents.opencode.hooks import OpencodeHooks, install_spec

HOOKS = OpencodeHooks(PATHS.name)
INSTALL_SPEC = install_spec(PATHS)
