"""How many objects an object holds: whether that grows is what memory tests ask."""

import asyncio
import gc
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

# Everything can be reached from these.
SKIPPED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, asyncio.Task)


def count_reachable(root: object, without: object = None) -> int:
    """The objects that can be reached from one, but for those behind another."""
    seen = {id(without)}
    left, objects = [root], 0
    while left:
        each = left.pop()
        if id(each) not in seen and not isinstance(each, SKIPPED):
            seen.add(id(each))
            objects += 1
            left += gc.get_referents(each)
    return objects
