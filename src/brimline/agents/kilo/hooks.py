"""Kilo CLI's hooks, which are our plugin's for opencode, in Kilo CLI's folder of plugins."""

from functools import partial

from brimline.agents.kilo.paths import PATHS
from brimline.agents.opencode.hooks import OpencodeHooks, find_compaction_setting, install_spec

HOOKS = OpencodeHooks(PATHS.name)
INSTALL_SPEC = install_spec(PATHS)
compaction_setting = partial(find_compaction_setting, PATHS)
