"""Pi's hooks, which are our own extension's (extension.js).

The end of a compaction is answered: the extension puts the document before the next request.
"""

from brimline.agents.hook_adapter import STARTS, ExtensionHooks

HOOKS = ExtensionHooks(starts={**STARTS, "new": "cleared"}, unanswerable=frozenset())
